//! Better allocations by way of those without a winner.
//!
//! Where no few bidders can choose anything better ([`super::nearby`]), a winner is left out for a
//! while: the others take what is best without it, and it comes back to what they then leave or give
//! up. Those that win most go first. What is better stands.
//!
//! Cost: [`STEPS`] at most, counted, never timed. Guarantee: not worse than the allocation.

use std::cmp::Reverse;

use super::few::{Auction, FULL_EFFORT, Few};
use super::nearby::{self, First};
use super::packed::Packed;
use super::search::LEAST_GAIN;
use super::solution::Solution;

/// Steps of searches nearby, fewer with more than [`FULL_EFFORT`] bidders, and of a single one.
const STEPS: u32 = 30_000;
const EACH: u32 = 1_500;

impl Few {
    /// The better of an allocation and what detours lead to, by 1 / `thrift` of the steps.
    pub(super) fn improve_by_detours(
        &mut self,
        auction: Auction<'_>,
        known: Solution,
        thrift: u32,
    ) -> Solution {
        let (offer, _, bids) = auction;
        let mut left = self.effort(STEPS, FULL_EFFORT) / thrift;
        let mut best = Packed::of(&self.menus, offer.topology(), bids, &known);
        let mut log_v = best.log_v(&self.menus, None);
        let gpus = |bidder: &usize| best.choice(&self.menus, *bidder).gpus;
        let mut winners: Vec<usize> = (0..bids.len()).filter(|bidder| gpus(bidder) > 0).collect();
        winners.sort_by_key(|bidder| (Reverse(gpus(bidder)), *bidder));
        for winner in winners {
            let start = best.clone();
            let without = self.go(Some(winner), start, First::Sets, &mut left);
            let with = self.go(None, without, First::Gains, &mut left);
            let found = with.log_v(&self.menus, None);
            if found > log_v + LEAST_GAIN {
                (best, log_v) = (with, found);
            }
            if left == 0 {
                break;
            }
        }
        self.or_packed(auction, known, &best)
    }

    /// What a search nearby comes to, of some of the steps that are left.
    fn go(
        &mut self,
        without: Option<usize>,
        start: Packed,
        first: First,
        left: &mut u32,
    ) -> Packed {
        let steps = EACH.min(*left);
        let (task, ..) = self.task(without, 0.0, 0.0, steps);
        let (packed, _, unused) = nearby::improve(&task, start, first);
        *left -= steps - unused;
        packed
    }
}

#[cfg(test)]
mod tests {
    use super::super::few::tests::{draw, solved};
    use super::super::{Bid, dual};
    use super::*;
    use crate::cluster::{Chunks, TypeSet};

    #[test]
    fn from_nothing_detours_come_to_the_best_mostly_and_never_above_it() {
        let (mut best, mut better) = (0, 0);
        for seed in 0..60 {
            let (offer, bidders) = draw(seed);
            let chunks = Chunks::of(&offer, &[1, 2, 3, 4], &[TypeSet::ALL]);
            let bid = |bidder| Bid::none(bidder, offer.topology()).on(&offer, &chunks, false);
            let bids: Vec<Bid<'_>> = bidders.iter().map(bid).collect();
            let exact = solved(&offer, &chunks, &bids).0.objective();
            let nothing = Solution::nothing(&bids);
            let dual = dual::minimise(&offer, &chunks, &bids, None);
            let mut few = Few::new(&offer, &chunks, &bids, &dual, &nothing);
            let start = Packed::of(&few.menus, offer.topology(), &bids, &nothing);
            let (task, ..) = few.task(None, 0.0, 0.0, 20);
            let (short, known, _) = nearby::improve(&task, start, First::Sets);
            let auction = (&offer, &chunks, &bids[..]);
            let solution = few.or_packed(auction, nothing, &short);
            let found = few.improve_by_detours(auction, solution, 1).objective();
            assert!(found >= known - 1e-9 && found <= exact + 1e-9, "seed {seed}");
            better += u32::from(found > known + 1e-9);
            best += u32::from(found > exact - 1e-9);
        }
        assert!(best > 55 && better > 10, "{best} {better}");
    }
}
