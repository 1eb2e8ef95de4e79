//! First in, first out, strictly: what most clusters do today.

use super::{Policy, in_line};
use crate::plan::Plan;
use crate::view::View;

/// Jobs in the order of submission (ties: app, then job), each until it ends; nobody overtakes a
/// job that waits for a gang, except where the cap of its own app holds it back. An elastic job
/// takes what speeds it up most when it starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fifo;

impl Policy for Fifo {
    fn name(&self) -> &'static str {
        "fifo"
    }

    fn leases(&self) -> bool {
        false
    }

    fn decide(&mut self, view: &View<'_>) -> Plan {
        in_line::serve(view, |_, _| None)
    }
}
