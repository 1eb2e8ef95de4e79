//! Shortest remaining service first (Gu et al., NSDI 2019: Tiresias with known durations), as the
//! paper emulates it (section 8.1).

use super::Policy;
use super::in_order::{least_first, millionths};
use crate::plan::Plan;
use crate::view::View;

/// The app with the fewest GPU-seconds of work left goes first and takes all that it can use; the
/// phases of a search that are still to come count. Ties: earlier arrival, then app id.
#[derive(Clone, Copy, Debug)]
pub(super) struct Srsf;

impl Policy for Srsf {
    fn name(&self) -> &'static str {
        "srsf"
    }

    fn decide(&mut self, view: &View<'_>) -> Plan {
        least_first(view, |app| millionths(view.reported(app).state.service_left_gpu_s()))
    }
}
