//! Least attained service: the rule of Tiresias (Gu et al., NSDI 2019), as the paper emulates it.

use super::{Policy, in_order};
use crate::plan::Plan;
use crate::view::View;

/// The app that has held the fewest GPU-seconds goes first, at every resource-available event and
/// with the same leases as the others. Continuous, without Tiresias's queues. Ties: earlier
/// arrival, then app id.
#[derive(Clone, Copy, Debug)]
pub(super) struct Las;

impl Policy for Las {
    fn name(&self) -> &'static str {
        "tiresias"
    }

    fn decide(&mut self, view: &View<'_>) -> Plan {
        in_order::least_first(view, |app| view.attained_gpu_us(app))
    }
}
