//! Largest marginal gain first: what the paper takes from Optimus (Peng et al., 2018;
//! section 8.1).

use super::Policy;
use super::greedy::{Claim, lines, one_step, serve};
use super::in_order::millionths;
use crate::plan::Plan;
use crate::view::{Candidate, View};
use themis_core::app::AppState;

/// Each app says by which ratio its throughput would grow with its next step, one GPU for a job
/// that runs or a gang for one that waits; the largest gets it, then the others say anew. Without
/// throughput the ratio is unbounded: who has nothing goes first. No model of parameter servers.
/// Ties: the app with the fewest GPUs whose lease just ended, so that equal apps take turns; then
/// earlier arrival, then app id.
///
/// Cost: that of [`serve`]; apps that wait and ask for the same are one line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Optimus;

impl Policy for Optimus {
    fn name(&self) -> &'static str {
        "optimus"
    }

    fn asks_by_lines(&self) -> bool {
        true
    }

    fn decide(&mut self, view: &View<'_>) -> Plan {
        let ratio = |candidate: &Candidate, claim: &Claim| {
            let mut state = candidate.state.clone();
            let throughput =
                |state: &AppState| state.held_rates(view.topology()).iter().sum::<f64>();
            let before = throughput(&state);
            for (job, bundle) in claim {
                state.hold(*job, bundle);
            }
            (millionths(before / throughput(&state)), candidate.state.previous_gpus())
        };
        let lines = lines(view, |app| view.reported(app), |_| true);
        serve(view, lines, one_step, ratio)
    }
}
