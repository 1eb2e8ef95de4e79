//! Exchanges: what one bidder lacks, another may give.
//!
//! The bidders that got least of what they would choose at the prices go first. Each tries its
//! better patterns, best first, on free GPUs or with another bidder's win taken back, who then gets
//! the best that is left for it. What raises the sum of log V stands.
//!
//! Cost: [`STEPS`] exchanges and placements at most, counted, never timed. Guarantee: not worse than
//! what it was given, and feasible throughout.

use super::Bid;
use super::greedy::Greedy;
use super::prices::Prices;
use super::solution::Solution;
use crate::cluster::FreeSet;

/// Exchanges and placements tried at most.
const STEPS: u32 = 2_000;
/// Gains below this are rounding.
const LEAST_GAIN: f64 = 1e-9;

/// The same allocation after the exchanges that raise its sum of log V, by 1 / `thrift` of the steps.
pub(super) fn improve(
    offer: &FreeSet,
    bids: &[Bid<'_>],
    prices: &Prices,
    known: Solution,
    thrift: u32,
) -> Solution {
    let mut floor = Floor { bids, state: Greedy::resume(offer, bids, known), left: STEPS / thrift };
    while floor.lacking(prices).into_iter().any(|bidder| floor.serve(bidder, prices)) {}
    floor.state.fill()
}

struct Floor<'a> {
    bids: &'a [Bid<'a>],
    state: Greedy<'a>,
    left: u32,
}

impl Floor<'_> {
    /// All bidders, those first whose choice at the prices is worth most more than what they have.
    fn lacking(&self, prices: &Prices) -> Vec<usize> {
        let now = &self.state.solution().log_v;
        let lack = |(at, bid): (usize, &Bid<'_>)| {
            let choices = bid.choices(at, prices);
            let best = choices.map(|choice| choice.surplus).fold(f64::NEG_INFINITY, f64::max);
            (best - now[at] + f64::from(self.state.gpus(at)) * prices.gpu(), at)
        };
        let mut all: Vec<(f64, usize)> = self.bids.iter().enumerate().map(lack).collect();
        all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        all.into_iter().map(|(_, bidder)| bidder).collect()
    }

    /// Serves a bidder better, if that raises the sum.
    fn serve(&mut self, bidder: usize, prices: &Prices) -> bool {
        let now = self.state.solution().log_v[bidder];
        let patterns = &self.bids[bidder].patterns;
        let mut better: Vec<usize> =
            (0..patterns.len()).filter(|at| patterns[*at].log_v > now + LEAST_GAIN).collect();
        let surplus = |at: &usize| patterns[*at].log_v - prices.cost(bidder, &patterns[*at]);
        better.sort_by(|a, b| surplus(b).total_cmp(&surplus(a)).then(a.cmp(b)));
        let others: Vec<usize> = (0..self.bids.len())
            .filter(|other| *other != bidder && self.state.solution().wins[*other].is_some())
            .collect();
        better.into_iter().any(|pattern| {
            self.attempt(bidder, pattern)
                || others.iter().any(|other| self.exchange(bidder, pattern, *other))
        })
    }

    /// Counts a step; false when there are none left.
    fn spend(&mut self) -> bool {
        let more = self.left > 0;
        self.left -= u32::from(more);
        more
    }

    /// Places a pattern, within the budget.
    fn attempt(&mut self, bidder: usize, pattern: usize) -> bool {
        self.spend() && self.state.try_step(bidder, pattern)
    }

    /// Places a pattern with the win of another bidder taken back; undone unless the sum rises.
    fn exchange(&mut self, bidder: usize, pattern: usize, other: usize) -> bool {
        let log_v = &self.state.solution().log_v;
        let enough = log_v[bidder] + log_v[other] + LEAST_GAIN;
        let wanted = &self.bids[bidder].patterns[pattern];
        let room = self.state.free_without([bidder, other]);
        if wanted.gpus() > room || !self.spend() {
            return false;
        }
        let before = (self.state.release(bidder), self.state.release(other));
        if self.attempt(bidder, pattern) {
            let least = enough - self.state.solution().log_v[bidder];
            if self.settle(other, room - wanted.gpus(), least) {
                return true;
            }
        }
        self.state.release(bidder);
        self.state.put_back(bidder, before.0);
        self.state.put_back(other, before.1);
        false
    }

    /// Gives a bidder the best of so many GPUs; whether that is worth more than `least`.
    fn settle(&mut self, bidder: usize, gpus: u32, least: f64) -> bool {
        let patterns = &self.bids[bidder].patterns;
        let fits = |at: &usize| patterns[*at].log_v > least && patterns[*at].gpus() <= gpus;
        let mut open: Vec<usize> = (0..patterns.len()).filter(fits).collect();
        open.sort_by(|a, b| patterns[*b].log_v.total_cmp(&patterns[*a].log_v).then(a.cmp(b)));
        let nothing = self.bids[bidder].bidder.log_v_empty() > least;
        open.into_iter().any(|at| self.attempt(bidder, at)) || nothing
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::Bidder;
    use super::*;
    use crate::app::{AppState, Job, Profile, Stopping};
    use crate::cluster::{Chunks, MachineSpec, Topology, TypeSet};

    fn app(work: f64, far: f64) -> Bidder {
        let profile = Profile::new([1.0, 1.0, far, far]).expect("valid");
        let jobs = vec![Job::waiting(2, 2, work, profile)];
        let app = AppState::new(10.0, 100.0, Stopping::All, jobs);
        Bidder::App(app.with_rho_empty(Some(1e3)))
    }

    #[test]
    fn a_machine_goes_to_whom_it_helps_and_the_other_spreads() {
        let spec = |gpus| MachineSpec { rack: 0, gpus, slot_gpus: 2 };
        let topology = Topology::new(&[spec(2), spec(1), spec(1)]).expect("valid");
        let offer = FreeSet::full(Arc::new(topology));
        let chunks = Chunks::of(&offer, &[2], &[TypeSet::ALL]);
        let bidders = [app(1000.0, 1.0), app(1000.0, 4.0)];
        let bids = bidders
            .each_ref()
            .map(|bidder| Bid { bidder, patterns: bidder.patterns(&offer, &chunks) });
        // The one that feels no distance has the only machine of two; the other is spread.
        let mut state = Greedy::new(&offer, &bids);
        assert!(state.try_step(0, 0));
        assert!(state.try_step(1, 0));
        let known = state.fill();
        let before = known.objective();
        let after = improve(&offer, &bids, &Prices::zero(2, &[]), known, 1);
        assert!((after.objective() - before - (2010.0_f64 / 510.0).ln()).abs() < 1e-9);
        let slots =
            |at: usize| after.wins[at].as_ref().map(|win| win.parts[0].bundle.iter().count());
        assert_eq!((slots(0), slots(1)), (Some(2), Some(1)));
    }
}
