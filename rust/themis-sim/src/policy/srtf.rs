//! Shortest remaining time first, as the paper emulates it (section 8.1).

use super::Policy;
use super::greedy::{Claim, lines, serve, whole_app};
use super::in_order::millionths;
use crate::plan::Plan;
use crate::view::{Candidate, View};

/// Each app says how long it would still take with what it holds and all that it could use of the
/// offer, placed as well as that allows; the shortest gets it, then the others say anew. Ties:
/// earlier arrival, then app id.
///
/// Cost: work left tells apps apart, so that each in want is valued for itself: O(apps) a decision,
/// and for every claim granted those that it voids.
#[derive(Clone, Copy, Debug)]
pub(super) struct Srtf;

impl Policy for Srtf {
    fn name(&self) -> &'static str {
        "srtf"
    }

    fn decide(&mut self, view: &View<'_>) -> Plan {
        let time_left = |candidate: &Candidate, claim: &Claim| {
            let mut state = candidate.state.clone();
            for (job, bundle) in claim {
                state.hold(*job, bundle);
            }
            millionths(state.time_left(&state.held_rates(view.topology())))
        };
        let lines = lines(view, |app| view.reported(app), |_| false);
        serve(view, lines, whole_app, time_left)
    }
}
