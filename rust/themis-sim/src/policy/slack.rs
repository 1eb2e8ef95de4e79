//! Least slack first: the order of the filter without the auction (ours; see docs/policies.md).

use super::{Policy, in_order};
use crate::plan::Plan;
use crate::view::View;

/// The app whose best case is worst goes first and takes all that it can use, then the next: the
/// rho that it would have if the whole cluster were its own from now on says how little time is
/// left to lose. What it holds now counts for nothing, whatever the filter key is: with
/// `filter_key = "best_case"` the order is that of `max_rho`. Ties: earlier arrival, then app id.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slack;

impl Policy for Slack {
    fn name(&self) -> &'static str {
        "slack"
    }

    fn decide(&mut self, view: &View<'_>) -> Plan {
        in_order::worst_off_first(view, |app| (view.best_case(app), 0.0))
    }
}
