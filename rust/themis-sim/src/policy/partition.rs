//! A static partition: the 1/N share that sharing has to beat (paper, section 3).

use super::Policy;
use super::greedy::one_step;
use crate::plan::{Grant, Plan};
use crate::view::View;

/// Each of the N active apps gets up to floor(GPUs / N), with weights floor(GPUs x its fair share), in the order of (arrival, app id), and
/// what it can't use of that stands idle. Then an app that still has nothing, since its smallest
/// gang or a share below one GPU keeps it out, gets one gang if there is one; who had the fewest
/// GPUs until now goes first, so that nobody waits for ever. N changes with arrivals and ends, a share when leases end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Partition;

impl Policy for Partition {
    fn name(&self) -> &'static str {
        "static"
    }

    fn decide(&mut self, view: &View<'_>) -> Plan {
        let gpus = f64::from(view.gpus());
        let mut free = view.offer().clone();
        let mut plan = Plan::default();
        let mut without = Vec::new();
        for mut candidate in view.wanting().map(|app| view.app(app)) {
            let cap = candidate.state.cap;
            // A hair more: 8 of 24 GPUs for one of three is a little less than 8 in binary.
            let share = (gpus / view.contention(candidate.app) + 1e-9).floor() as u32;
            candidate.state.cap = cap.min(share);
            for (job, bundle) in candidate.state.claim_all(&mut free) {
                plan.grants.push(Grant::new(candidate.app, candidate.jobs[job], bundle));
            }
            if candidate.state.held_gpus() == 0 {
                candidate.state.cap = cap;
                without.push(candidate);
            }
        }
        without.sort_by_key(|candidate| candidate.state.previous_gpus());
        for candidate in without {
            for (job, bundle) in one_step(&candidate.state, &free) {
                free.take_for(candidate.state.tenant, &bundle);
                plan.grants.push(Grant::new(candidate.app, candidate.jobs[job], bundle));
            }
        }
        plan
    }
}
