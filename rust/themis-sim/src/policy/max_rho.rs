//! Greedy max-rho: the paper's straw man (section 3.2).

use super::{Policy, in_order};
use crate::plan::Plan;
use crate::view::View;

/// The app that is worst off by the filter key gets all that it can use, then the next. No bids:
/// placement counts for nothing in the choice of the app. Ties: earlier arrival, then app id.
#[derive(Clone, Copy, Debug)]
pub(super) struct MaxRho;

impl Policy for MaxRho {
    fn name(&self) -> &'static str {
        "max_rho"
    }

    fn decide(&mut self, view: &View<'_>) -> Plan {
        in_order::worst_off_first(view, |app| view.rank(app))
    }
}
