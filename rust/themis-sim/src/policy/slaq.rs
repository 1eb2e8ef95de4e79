//! Largest loss decrease first: what the paper takes from SLAQ (Zhang et al., `SoCC` 2017; section
//! 8.1).

use super::Policy;
use super::greedy::{Claim, lines, one_job, serve};
use super::in_order::millionths;
use crate::plan::Plan;
use crate::view::{Candidate, View};

/// Each app says by how much the loss of its next job would fall over the next lease with the GPUs
/// that it would take, more than without; the largest gets them, then the others say anew.
/// Forecasts are exact, and losses are not normalised. Jobs without a loss curve promise nothing
/// and come last. Ties: earlier arrival, then app id.
///
/// Cost: that of [`serve`]; apps without a curve that wait and ask for the same are one line, one
/// with a curve is a line of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slaq;

impl Policy for Slaq {
    fn name(&self) -> &'static str {
        "slaq"
    }

    fn asks_by_lines(&self) -> bool {
        true
    }

    fn decide(&mut self, view: &View<'_>) -> Plan {
        let decrease = |candidate: &Candidate, claim: &Claim| -> f64 {
            let fall = |(at, bundle): &(usize, _)| {
                let (job, number) = (&candidate.state.jobs[*at], candidate.jobs[*at]);
                let mut all = job.held.clone();
                all.merge(bundle);
                let loss = |bundle| {
                    let rate = job.rate_on(view.topology(), bundle);
                    view.loss_after(number, rate * view.lease_s())
                };
                Some(loss(&job.held)? - loss(&all)?)
            };
            claim.iter().filter_map(fall).sum()
        };
        let lines = lines(view, |app| view.reported(app), |app| !view.knows_loss(app));
        // In billionths: losses hardly fall any more towards the end.
        serve(view, lines, one_job, |candidate, claim| {
            -millionths(1e3 * decrease(candidate, claim))
        })
    }
}
