//! Exchanges: what one bidder lacks, others may give.
//!
//! The bidders that got least of what they would choose at the prices go first. Each tries its
//! better patterns, best first, on free GPUs, or with the wins of one or two others taken back, who
//! then get what is best left for them. What raises the sum of log V stands. Groups that can't gain
//! are passed over: at the price of a GPU, the best surpluses of all in it bound what they can have.
//!
//! Cost: [`STEPS`] groups and placements at most, counted, never timed. Guarantee: not worse than what it was
//! given, and feasible throughout.

use super::Bid;
use super::greedy::Greedy;
use super::prices::Prices;
use super::solution::Solution;
use crate::app::Pattern;
use crate::cluster::FreeSet;

/// Groups and placements tried at most.
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
    let wants = bids.iter().map(|bid| Wants::at(bid, prices.gpu())).collect();
    let state = Greedy::resume(offer, bids, known);
    let mut exchanges = Exchanges { bids, state, wants, gpu: prices.gpu(), left: STEPS / thrift };
    while exchanges.round(0) || exchanges.round(1) || exchanges.round(2) {}
    exchanges.state.fill()
}

/// What a bidder would choose at the price of a GPU: surplus and pattern, best first.
struct Wants(Vec<(f64, Option<usize>)>);

impl Wants {
    fn at(bid: &Bid<'_>, gpu: f64) -> Self {
        let worth = |(at, pattern): (usize, &Pattern)| {
            (pattern.log_v - gpu * f64::from(pattern.gpus()), Some(at))
        };
        let mut all: Vec<(f64, Option<usize>)> =
            bid.patterns.iter().enumerate().map(worth).collect();
        all.push((bid.nothing, None));
        all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        Self(all)
    }

    fn most(&self) -> f64 {
        self.0[0].0
    }
}

/// An allocation, and what everybody would rather have.
struct Exchanges<'a> {
    bids: &'a [Bid<'a>],
    state: Greedy<'a>,
    wants: Vec<Wants>,
    /// The price of a GPU.
    gpu: f64,
    left: u32,
}

impl Exchanges<'_> {
    /// Serves one bidder better by taking back the wins of so many others; whether that was found.
    fn round(&mut self, others: usize) -> bool {
        let lacking = self.lacking();
        lacking.into_iter().any(|bidder| {
            let winners: Vec<usize> = (0..self.bids.len())
                .filter(|other| *other != bidder && self.state.solution().wins[*other].is_some())
                .collect();
            match others {
                0 => self.deal_again(&[bidder]),
                1 => winners.iter().any(|other| self.deal_again(&[bidder, *other])),
                _ => winners.iter().enumerate().any(|(at, one)| {
                    winners[at + 1..].iter().any(|other| self.deal_again(&[bidder, *one, *other]))
                }),
            }
        })
    }

    /// What a bidder's best choice at the price is worth above what it has.
    fn lack(&self, bidder: usize) -> f64 {
        let paid = self.gpu * f64::from(self.state.gpus(bidder));
        self.wants[bidder].most() - (self.state.solution().log_v[bidder] - paid)
    }

    /// All bidders, those that lack most first.
    fn lacking(&self) -> Vec<usize> {
        let mut all: Vec<(f64, usize)> =
            (0..self.bids.len()).map(|bidder| (self.lack(bidder), bidder)).collect();
        all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        all.into_iter().map(|(_, bidder)| bidder).collect()
    }

    /// Deals what a group has, and what is free, again, the first served better; undone unless the
    /// sum rises.
    fn deal_again(&mut self, group: &[usize]) -> bool {
        let could: f64 = group.iter().map(|bidder| self.lack(*bidder)).sum();
        if could + self.gpu * self.state.idle() <= LEAST_GAIN || !self.spend() {
            return false;
        }
        let log_v = &self.state.solution().log_v;
        let (now, sum) = (log_v[group[0]], group.iter().map(|bidder| log_v[*bidder]).sum::<f64>());
        let before: Vec<_> = group.iter().map(|bidder| self.state.release(*bidder)).collect();
        if self.deal(group, now + LEAST_GAIN, sum + LEAST_GAIN) {
            return true;
        }
        for (bidder, win) in group.iter().zip(before) {
            self.state.put_back(*bidder, win);
        }
        false
    }

    /// Gives the bidders of a group, one after another, the best that leads to more than `enough`
    /// in all, the first more than `least`; whether there is such a deal. If not, all have nothing.
    fn deal(&mut self, group: &[usize], least: f64, enough: f64) -> bool {
        let Some((bidder, others)) = group.split_first() else { return enough < 0.0 };
        let most: f64 = others.iter().map(|other| self.wants[*other].most()).sum();
        let limit = enough - most - self.gpu * self.state.idle();
        for at in 0..self.wants[*bidder].0.len() {
            let (surplus, pattern) = self.wants[*bidder].0[at];
            if surplus <= limit {
                break;
            }
            if pattern.is_some_and(|pattern| !self.serve(*bidder, pattern, least)) {
                continue;
            }
            let got = self.state.solution().log_v[*bidder];
            if got > least && self.deal(others, f64::NEG_INFINITY, enough - got) {
                return true;
            }
            self.state.release(*bidder);
        }
        false
    }

    /// Places a pattern that is worth more than `least`, within the budget.
    fn serve(&mut self, bidder: usize, pattern: usize, least: f64) -> bool {
        let wanted = &self.bids[bidder].patterns[pattern];
        let open = wanted.log_v > least && f64::from(wanted.gpus()) <= self.state.idle();
        open && self.spend() && self.state.try_step(bidder, pattern)
    }

    /// Counts a step; false when there are none left.
    fn spend(&mut self) -> bool {
        let more = self.left > 0;
        self.left -= u32::from(more);
        more
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
            .map(|bidder| Bid::none(bidder, offer.topology()).on(&offer, &chunks, false));
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

    #[test]
    fn two_give_way_to_one_that_needs_both() {
        let spec = MachineSpec { rack: 0, gpus: 2, slot_gpus: 2 };
        let offer = FreeSet::full(Arc::new(Topology::new(&[spec]).expect("valid")));
        let chunks = Chunks::of(&offer, &[1, 2], &[]);
        let one = |gang, work, rho| {
            let jobs = vec![Job::waiting(gang, gang, work, Profile::PERFECT)];
            Bidder::App(AppState::new(0.0, 100.0, Stopping::All, jobs).with_rho_empty(Some(rho)))
        };
        // Each of the first two gains a factor of 2, the third one of 50.
        let bidders = [one(1, 1000.0, 20.0), one(1, 1000.0, 20.0), one(2, 2000.0, 500.0)];
        let bids = bidders
            .each_ref()
            .map(|bidder| Bid::none(bidder, offer.topology()).on(&offer, &chunks, false));
        let mut state = Greedy::new(&offer, &bids);
        assert!(state.try_step(0, 0) && state.try_step(1, 0));
        let known = state.fill();
        assert!(known.wins[2].is_none());
        let after = improve(&offer, &bids, &Prices::zero(3, &[]), known, 1);
        assert!(after.wins[2].is_some() && after.wins[0].is_none() && after.wins[1].is_none());
    }
}
