//! First in, first out with backfill: EASY (Lifka 1995; Mu'alem and Feitelson 2001).

use super::Policy;
use super::in_line::{Reservation, serve};
use crate::plan::Plan;
use crate::view::View;

/// Fifo, but while the head of the line waits for its gang, jobs behind it start if that can't
/// delay it: they end before it could start, or leave it GPUs enough of the types that it waits for. Judged by requested times,
/// not true ones ([`View::requested_us`]); a job that has overrun its request is expected to end
/// any moment, and none is killed for it. The head has the only reservation. Ties as in fifo.
#[derive(Clone, Copy, Debug)]
pub(super) struct FifoBackfill;

impl Policy for FifoBackfill {
    fn name(&self) -> &'static str {
        "fifo_backfill"
    }

    fn leases(&self) -> bool {
        false
    }

    fn decide(&mut self, view: &View<'_>) -> Plan {
        serve(view, |grants, head| Reservation::of(view, grants, head))
    }
}
