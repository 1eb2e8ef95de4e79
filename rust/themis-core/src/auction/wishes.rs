//! Better allocations by what bidders would rather have.
//!
//! A bidder that gives up something gets what it would rather have, whoever has it
//! ([`super::clearing`]). Those who had to go have what they had, too, where it finds other rooms, or
//! nothing. All others choose again around it, then it does. Those that give up most go first. What is
//! better stands, and all begins anew.
//!
//! Cost: the steps given at most, counted, never timed, and a clearing for each wish. Guarantee: not worse
//! than the start, and it packs.

use super::clearing::Clearing;
use super::few::{A_STEP, CLOSEST, Few};
use super::menus::regret;
use super::nearby::First;
use super::packed::Packed;
use super::search::LEAST_GAIN;

/// Of so many of its best choices a bidder has a wish.
const MOST_WISHES: usize = 3;

/// A bidder, and the place of what it would rather have on its menu.
type Wish = (usize, u32);

impl Few {
    /// The better of a selection and what wishes lead to, by the steps of searches nearby that are left.
    pub(super) fn grant_wishes(&mut self, mut best: Packed, left: &mut u32) -> Packed {
        let mut log_v = best.log_v(&self.menus, None);
        let mut tried = Vec::new();
        while *left > 0
            && !self.is_within(CLOSEST, log_v)
            && let Some(wish) = self.wish(&best, &tried)
        {
            tried.push(wish);
            let Some(granted) = self.granted(&best, wish, left) else { continue };
            let around = self.go(granted, (None, Some(wish.0)), First::Gains, left);
            let found = self.go(around, (None, None), First::Gains, left);
            let better = found.log_v(&self.menus, None);
            if better > log_v + LEAST_GAIN {
                (best, log_v) = (found, better);
                tried.clear();
            }
        }
        best
    }

    /// The wish that gives up most less than what its bidder has. Ties: the order of bidders, then of
    /// their ways.
    fn wish(&self, packed: &Packed, tried: &[Wish]) -> Option<Wish> {
        let mut first: Option<(f64, Wish)> = None;
        for (bidder, ways) in self.ways.iter().enumerate() {
            let now = regret(ways, packed.choices[bidder]).unwrap_or(0.0);
            for way in ways.1.iter().take(MOST_WISHES) {
                let (less, wish) = (now - way.regret, (bidder, way.choice));
                let is_first = less > first.map_or(LEAST_GAIN, |(most, _)| most);
                if is_first && !tried.contains(&wish) {
                    first = Some((less, wish));
                }
            }
        }
        first.map(|(_, wish)| wish)
    }

    /// A selection in which a bidder has what it wishes, and others what they had, as far as it fits;
    /// `None` where it has no room even so.
    fn granted(&mut self, now: &Packed, wish: Wish, left: &mut u32) -> Option<Packed> {
        let Self { menus, packings, gpus, .. } = self;
        let (bidder, choice) = wish;
        let mut clearing = Clearing::of(menus, now.clone(), *gpus);
        clearing.grant(bidder, choice)?;
        let Clearing { mut packed, mut idle, mut out, .. } = clearing;
        let worth =
            |bidder: &usize| now.worth(menus, *bidder) / f64::from(now.choice(menus, *bidder).gpus);
        out.sort_by(|a, b| worth(b).total_cmp(&worth(a)).then(a.cmp(b)));
        let before = packings.steps;
        let put = packed.places.iter().flatten().copied().collect();
        let mut number = packings.of(&menus.rooms, put);
        for bidder in out {
            let choice = now.choice(menus, bidder);
            if choice.gpus <= idle
                && let Some(with) = packings.with_all(&menus.rooms, number, &choice.asks)
            {
                (number, idle) = (with, idle - choice.gpus);
                packed.choices[bidder] = now.choices[bidder];
            }
        }
        *left = left.saturating_sub(A_STEP * (packings.steps - before));
        packed.lay(menus, packings.get(number).clone())
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
    fn wishes_come_to_the_best_mostly() {
        let (better, best) = better_and_best(Few::grant_wishes);
        assert!(best > 50 && better > 10, "{best} {better}");
    }

    #[test]
    fn what_is_granted_packs_beside_as_much_as_others_can_keep() {
        let (mut kept, mut lost) = (0, 0);
        for seed in 0..60 {
            let (offer, bidders) = draw(seed);
            let chunks = Chunks::of(&offer, &[1, 2, 3, 4], &[TypeSet::ALL]);
            let bid = |bidder| Bid::none(bidder, offer.topology()).on(&offer, &chunks, false);
            let bids: Vec<Bid<'_>> = bidders.iter().map(bid).collect();
            let (best, mut few) = solved(&offer, &chunks, &bids);
            let now = Packed::of(&few.menus, offer.topology(), &bids, &best);
            let bidder = seed as usize % bids.len();
            for choice in 0..few.menus.of[bidder].len() as u32 {
                let mut left = 1_000;
                let granted =
                    few.granted(&now, (bidder, choice), &mut left).expect("it fits alone");
                assert_packs(&few.menus, &granted);
                assert_eq!(granted.choices[bidder], choice);
                for other in (0..bids.len()).filter(|other| *other != bidder) {
                    let (had, has) = (now.choices[other], granted.choices[other]);
                    assert!(has == had || has == 0, "seed {seed}");
                    kept += u32::from(has > 0);
                    lost += u32::from(has < had);
                }
            }
        }
        assert!(kept > 1_000 && lost > 200, "{kept} {lost}");
    }
}
