//! Better allocations rack by rack.
//!
//! Those that have most of a rack choose again together, and with them those that give up most
//! elsewhere: what they can choose beside all others is searched ([`super::search`]), and packed anew
//! with everybody, in whichever rooms. What is better stands, until no rack leads to anything.
//!
//! Cost: the steps given at most, counted, never timed. Guarantee: not worse than the start, and it packs.

use std::cmp::Reverse;

use super::few::{A_STEP, CLOSEST, Few};
use super::menus::regret;
use super::packed::Packed;
use super::search::{LEAST_GAIN, search_beside};
use crate::cluster::Locality;

/// Bidders that choose again at once, and the steps of their search.
const SIZE: usize = 6;
const EACH: u32 = 1_000;

impl Few {
    /// The better of a selection and what choosing again rack by rack leads to, by the steps of searches
    /// nearby that are left.
    pub(super) fn choose_again_by_rack(&mut self, mut best: Packed, left: &mut u32) -> Packed {
        let rooms = (0..).zip(&self.menus.rooms.all);
        let racks = rooms.filter(|(_, room)| room.level == Locality::Rack);
        let racks: Vec<u16> = racks.map(|(at, _)| at).collect();
        let (mut at, mut in_vain) = (0, 0);
        while in_vain < racks.len()
            && *left > 0
            && !self.is_within(CLOSEST, best.log_v(&self.menus, None))
        {
            let set = self.of_rack(&best, racks[at % racks.len()]);
            match self.choose_again(&best, &set, left) {
                Some(better) => (best, in_vain) = (better, 0),
                None => in_vain += 1,
            }
            at += 1;
        }
        best
    }

    /// Who has most of a rack, then who gives up most. Ties: the order of bidders.
    fn of_rack(&self, packed: &Packed, rack: u16) -> Vec<usize> {
        let Self { menus, ways, .. } = self;
        let gpus = |(kind, room): &(u16, u16)| {
            let lies = menus.rooms.around(*room).contains(&usize::from(rack));
            if lies { menus.rooms.kinds[usize::from(*kind)].gpus } else { 0 }
        };
        let mut set: Vec<(u32, f64, usize)> = (0..packed.choices.len())
            .map(|bidder| {
                let regret = regret(&ways[bidder], packed.choices[bidder]).unwrap_or(0.0);
                (packed.places[bidder].iter().map(gpus).sum(), regret, bidder)
            })
            .filter(|(gpus, regret, _)| *gpus > 0 || *regret > LEAST_GAIN)
            .collect();
        set.sort_by(|a, b| Reverse(a.0).cmp(&Reverse(b.0)).then(b.1.total_cmp(&a.1)));
        set.into_iter().take(SIZE).map(|(.., bidder)| bidder).collect()
    }

    /// What is better when these bidders choose again, if anything is found.
    fn choose_again(&mut self, now: &Packed, set: &[usize], left: &mut u32) -> Option<Packed> {
        let known = now.log_v(&self.menus, None);
        let steps = EACH.min(left.div_ceil(A_STEP));
        let (task, packings, _) = self.task(None, known, 0.0, steps);
        let answer = search_beside(&task, packings, now, set);
        *left = left.saturating_sub(A_STEP * (steps - answer.left).max(1));
        let (chosen, packing) = answer.found?;
        let mut better = now.clone();
        for bidder in set {
            let mut menu = (0..).zip(&self.menus.of[*bidder]);
            let at = menu.find(|(_, choice)| choice.pattern == chosen[*bidder]);
            better.choices[*bidder] = at.map_or(0, |(at, _)| at);
        }
        better.lay(&self.menus, self.packings.get(packing).clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Bid;
    use super::super::few::tests::{draw, solved};
    use super::super::large::tests::better_and_best;
    use super::super::packed::tests::assert_packs;
    use super::*;
    use crate::cluster::{Chunks, TypeSet};

    #[test]
    fn choosing_again_by_rack_comes_to_the_best_mostly() {
        let (better, best) = better_and_best(Few::choose_again_by_rack);
        assert!(best > 50 && better > 10, "{best} {better}");
    }

    #[test]
    fn who_chooses_again_finds_the_best_beside_what_all_others_keep() {
        let mut found = 0;
        for seed in 0..60 {
            let (offer, bidders) = draw(seed);
            let chunks = Chunks::of(&offer, &[1, 2, 3, 4], &[TypeSet::ALL]);
            let bid = |bidder| Bid::none(bidder, offer.topology()).on(&offer, &chunks, false);
            let bids: Vec<Bid<'_>> = bidders.iter().map(bid).collect();
            let (best, mut few) = solved(&offer, &chunks, &bids);
            let best = Packed::of(&few.menus, offer.topology(), &bids, &best);
            let set = [seed as usize % 5, (seed as usize + 2) % 5];
            let mut now = best.clone();
            for bidder in set {
                now.choices[bidder] = 0;
                now.places[bidder].clear();
            }
            let again = few.choose_again(&now, &set, &mut 100_000);
            if best.log_v(&few.menus, None) <= now.log_v(&few.menus, None) + 1e-9 {
                assert!(again.is_none(), "seed {seed}");
                continue;
            }
            let again = again.expect("something better is known");
            assert_packs(&few.menus, &again);
            let [sum, known] = [&again, &best].map(|packed| packed.log_v(&few.menus, None));
            assert!((sum - known).abs() < 1e-9, "seed {seed}: {sum} for {known}");
            for bidder in (0..bids.len()).filter(|bidder| !set.contains(bidder)) {
                assert_eq!(again.choices[bidder], best.choices[bidder], "seed {seed}");
            }
            found += 1;
        }
        assert!(found > 40, "{found}");
    }
}
