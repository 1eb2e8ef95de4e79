//! A static partition: the 1/N share that sharing has to beat (paper, section 3).

use std::collections::BTreeMap;

use super::Policy;
use super::greedy::{Line, lines, one_step};
use crate::plan::{Grant, Plan};
use crate::view::{Candidate, View};

/// Each of the N active apps gets up to floor(GPUs / N), with weights floor(GPUs x its fair share), in the order of (arrival, app id), and
/// what it can't use of that stands idle. Then an app that still has nothing, since its smallest
/// gang or a share below one GPU keeps it out, gets one gang if there is one; who had the fewest
/// GPUs until now goes first, so that nobody waits for ever. N changes with arrivals and ends, a share when leases end.
///
/// Cost: one look at the free GPUs for each app that has or gets some or whose share is one at
/// least, and for each line of others that wait and ask for the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Partition;

impl Policy for Partition {
    fn name(&self) -> &'static str {
        "static"
    }

    fn asks_by_lines(&self) -> bool {
        true
    }

    fn decide(&mut self, view: &View<'_>) -> Plan {
        let gpus = f64::from(view.gpus());
        // A hair more: 8 of 24 GPUs for one of three is a little less than 8 in binary.
        let share = |app: u32| (gpus / view.contention(app) + 1e-9).floor() as u32;
        let mut free = view.offer().clone();
        let mut plan = Plan::default();
        let lines = lines(view, |app| view.app(app), |app| share(app) == 0);
        let mut heads: Vec<(Candidate, Line<'_>)> =
            lines.into_iter().filter_map(|mut line| Some((line.next()?, line))).collect();
        heads.sort_by_key(|(candidate, _)| candidate.app);
        let mut without = BTreeMap::new();
        for (mut candidate, behind) in heads {
            let cap = candidate.state.cap;
            candidate.state.cap = cap.min(share(candidate.app));
            for (job, bundle) in candidate.state.claim_all(&mut free) {
                plan.grants.push(Grant::new(candidate.app, candidate.jobs[job], bundle));
            }
            if candidate.state.held_gpus() == 0 {
                candidate.state.cap = cap;
                without.insert(turn(&candidate), (candidate, behind));
            }
        }
        while let Some((_, (candidate, mut behind))) = without.pop_first() {
            let claim = one_step(&candidate.state, &free);
            if claim.is_empty() {
                continue; // nor is there a gang for those behind it
            }
            for (job, bundle) in claim {
                candidate.state.take(&mut free, job, &bundle);
                plan.grants.push(Grant::new(candidate.app, candidate.jobs[job], bundle));
            }
            if let Some(next) = behind.next() {
                without.insert(turn(&next), (next, behind));
            }
        }
        plan
    }
}

/// When an app without GPUs gets a gang: the least goes first.
fn turn(candidate: &Candidate) -> (u32, u32) {
    (candidate.state.previous_gpus(), candidate.app)
}
