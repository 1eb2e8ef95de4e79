//! Better allocations where no few bidders can choose anything better ([`super::nearby`]).
//!
//! Bidders get what they would rather have ([`super::wishes`]), those of a rack choose again together
//! ([`super::racks`]), and winners are left out for a while ([`super::detours`]), in turn: each finds
//! what the others miss. Where the bound is near what is known, there is less to find: detours end first,
//! at [`super::few::CLOSE`], the others at [`super::few::CLOSEST`].
//!
//! Cost: [`STEPS`] at most, counted, never timed. Guarantee: not worse than the allocation.

use super::few::{Auction, FULL_EFFORT, Few};
use super::nearby::{self, First};
use super::packed::Packed;
use super::solution::Solution;

/// Steps of searches nearby, fewer with more than [`FULL_EFFORT`] bidders, the part of them that is for
/// wishes, and those of a single search.
const STEPS: u32 = 75_000;
const WISHES_SHARE: f64 = 0.8;
const EACH: u32 = 1_500;

impl Few {
    /// The better of an allocation and what larger changes lead to, by 1 / `thrift` of the steps.
    pub(super) fn improve_by_large_changes(
        &mut self,
        auction: Auction<'_>,
        known: Solution,
        thrift: u32,
    ) -> Solution {
        let (offer, _, bids) = auction;
        let steps = self.effort(STEPS, FULL_EFFORT) / thrift;
        let of_wishes = (f64::from(steps) * WISHES_SHARE) as u32;
        let mut left = of_wishes;
        let start = Packed::of(&self.menus, offer.topology(), bids, &known);
        let best = self.grant_wishes(start, &mut left);
        left += steps - of_wishes;
        let best = self.choose_again_by_rack(best, &mut left);
        let best = self.take_detours(best, &mut left);
        self.or_packed(auction, known, &best)
    }

    /// What a search nearby comes to, of some of the steps that are left: without a bidder, or while one
    /// keeps what it has.
    pub(super) fn go(
        &mut self,
        start: Packed,
        (without, fixed): (Option<usize>, Option<usize>),
        first: First,
        left: &mut u32,
    ) -> Packed {
        let steps = EACH.min(*left);
        let (mut task, ..) = self.task(without, 0.0, 0.0, steps);
        task.fixed = fixed;
        let (packed, _, unused) = nearby::improve(&task, start, first);
        *left -= steps - unused;
        packed
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::Bid;
    use super::super::few::tests::{draw, for_each_auction, solved};
    use super::super::packed::tests::assert_packs;
    use super::*;
    use crate::cluster::{Chunks, TypeSet};

    /// Of 60 auctions, after a search of very few steps: in how many some change leads to something
    /// better, and in how many to the best. It leads to nothing worse, and what it leads to packs.
    pub(in super::super) fn better_and_best(
        change: impl Fn(&mut Few, Packed, &mut u32) -> Packed,
    ) -> (u32, u32) {
        let (mut better, mut best) = (0, 0);
        for_each_auction(|seed, few, start| {
            let nothing = start.log_v(&few.menus, None);
            let exact = few.search(None, nothing, 0.01, 1_000_000).objective;
            let (task, ..) = few.task(None, 0.0, 0.0, 20);
            let (short, known, _) = nearby::improve(&task, start.clone(), First::Sets);
            let same = change(few, short.clone(), &mut 0);
            assert!((same.log_v(&few.menus, None) - known).abs() < 1e-12, "seed {seed}");
            let found = change(few, short, &mut 100_000);
            assert_packs(&few.menus, &found);
            let found = found.log_v(&few.menus, None);
            assert!(found >= known - 1e-9 && found <= exact + 1e-9, "seed {seed}");
            better += u32::from(found > known + 1e-9);
            best += u32::from(found > exact - 1e-9);
        });
        (better, best)
    }

    #[test]
    fn an_allocation_only_gets_better() {
        let mut improved = 0;
        for seed in 0..60 {
            let (offer, bidders) = draw(seed);
            let chunks = Chunks::of(&offer, &[1, 2, 3, 4], &[TypeSet::ALL]);
            let bid = |bidder| Bid::none(bidder, offer.topology()).on(&offer, &chunks, false);
            let bids: Vec<Bid<'_>> = bidders.iter().map(bid).collect();
            let (best, mut few) = solved(&offer, &chunks, &bids);
            let auction = (&offer, &chunks, &bids[..]);
            for known in [best.clone(), Solution::nothing(&bids)] {
                let before = known.objective();
                let after = few.improve_by_large_changes(auction, known, 1).objective();
                assert!(after >= before && after <= best.objective() + 1e-9, "seed {seed}");
                improved += u32::from(after > before + 1e-9);
            }
        }
        assert!(improved > 50, "{improved}");
    }
}
