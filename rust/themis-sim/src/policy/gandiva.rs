//! Best placement first: what the paper takes from Gandiva (Xiao et al., OSDI 2018; section 8.1).

use super::Policy;
use super::greedy::{Claim, lines, one_job, serve};
use super::in_order::millionths;
use crate::plan::Plan;
use crate::view::{Candidate, View};

/// Each app says how well its next job would be placed (1 / S of what the job holds and would
/// take); the best placed gets its GPUs, then the others say anew. Two jobs never share a GPU, and
/// nothing is profiled by trial. Ties: the app with the fewest GPUs, those just granted included
/// and those whose lease just ended not; then the fewest of the latter, so that equal apps take
/// turns; then earlier arrival, then app id.
///
/// Cost: that of [`serve`]; apps that wait and ask for the same are one line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gandiva;

impl Policy for Gandiva {
    fn name(&self) -> &'static str {
        "gandiva"
    }

    fn asks_by_lines(&self) -> bool {
        true
    }

    fn decide(&mut self, view: &View<'_>) -> Plan {
        let placement = |candidate: &Candidate, claim: &Claim| {
            let slowdown = claim.iter().map(|(job, bundle)| {
                let job = &candidate.state.jobs[*job];
                let mut all = job.held.clone();
                all.merge(bundle);
                millionths(job.profile.slowdown(view.topology().locality(&all)))
            });
            let state = &candidate.state;
            (slowdown.max(), state.held_gpus(), state.previous_gpus())
        };
        let lines = lines(view, |app| view.reported(app), |_| true);
        serve(view, lines, one_job, placement)
    }
}
