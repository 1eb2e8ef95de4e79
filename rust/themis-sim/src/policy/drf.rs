//! Dominant resource fairness (Ghodsi et al., NSDI 2011) of the GPUs held at one time.

use super::Policy;
use super::greedy::{lines, one_step, serve};
use super::in_order::millionths;
use crate::plan::Plan;
use crate::view::View;

/// The app with the smallest share of the cluster's GPUs goes first and takes one step, one GPU
/// for a job that runs or a gang for one that waits; then the next. GPUs are the only resource, so
/// the share is the number of GPUs held over the app's fair share, those just granted included and those whose lease just
/// ended not. Ties: the app with the fewest of the latter, so that equal apps take turns; then
/// earlier arrival, then app id. No other past counts.
///
/// Cost: that of [`serve`]; apps that wait and ask for the same are one line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drf;

impl Policy for Drf {
    fn name(&self) -> &'static str {
        "drf"
    }

    fn asks_by_lines(&self) -> bool {
        true
    }

    fn decide(&mut self, view: &View<'_>) -> Plan {
        let lines = lines(view, |app| view.app(app), |_| true);
        serve(view, lines, one_step, |candidate, _| {
            let share = |gpus: u32| millionths(f64::from(gpus) * view.contention(candidate.app));
            (share(candidate.state.held_gpus()), share(candidate.state.previous_gpus()))
        })
    }
}
