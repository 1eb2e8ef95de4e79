//! A selection as it packs: what every bidder chooses, and in which rooms that lies.

use smallvec::SmallVec;

use super::Bid;
use super::floor::Places;
use super::menus::{Choice, Menus};
use super::packing::Packing;
use super::rooms::{Rooms, WHOLE};
use super::solution::Solution;
use crate::app::Placed;
use crate::cluster::{Bundle, Topology};

/// The place of every bidder's choice on its menu, the first for nothing, and the rooms of its asks.
#[derive(Clone, Debug)]
pub(super) struct Packed {
    pub(super) choices: Vec<u32>,
    pub(super) places: Vec<Places>,
}

impl Packed {
    /// What bidders win in an allocation, as far as it is on their menus; else nothing.
    pub(super) fn of(
        menus: &Menus,
        topology: &Topology,
        bids: &[Bid<'_>],
        solution: &Solution,
    ) -> Self {
        let (choices, places) = (vec![0; bids.len()], vec![Places::new(); bids.len()]);
        let mut packed = Self { choices, places };
        for (bidder, bid) in bids.iter().enumerate() {
            let Some(win) = &solution.wins[bidder] else { continue };
            let (gpus, bundles) = (win.gpus(), bundles(win, bid.bidder.is_table()));
            let mut best = f64::NEG_INFINITY;
            for (at, choice) in (0..).zip(&menus.of[bidder]) {
                if choice.gpus == gpus
                    && choice.log_v > best
                    && let Some(places) = places_of(&menus.rooms, topology, choice, &bundles)
                {
                    best = choice.log_v;
                    (packed.choices[bidder], packed.places[bidder]) = (at, places);
                }
            }
        }
        packed
    }

    /// Gives bidders the rooms of their asks in a packing; `None` where it is not one of them all.
    pub(super) fn lay(mut self, menus: &Menus, mut packing: Packing) -> Option<Self> {
        for bidder in 0..self.choices.len() {
            let asks = self.choice(menus, bidder).asks.iter();
            let bound = asks.filter(|(kind, _)| menus.rooms.is_bound(*kind));
            let kinds = bound.flat_map(|(kind, count)| (0..*count).map(|_| *kind));
            let room = |kind: u16| {
                let at = packing.iter().position(|(other, _)| *other == kind)?;
                Some(packing.swap_remove(at))
            };
            self.places[bidder] = kinds.map(room).collect::<Option<_>>()?;
        }
        Some(self)
    }

    /// The choice of a bidder.
    pub(super) fn choice<'a>(&self, menus: &'a Menus, bidder: usize) -> &'a Choice {
        &menus.of[bidder][self.choices[bidder] as usize]
    }

    /// log V of what a bidder has, above that of nothing.
    pub(super) fn worth(&self, menus: &Menus, bidder: usize) -> f64 {
        self.choice(menus, bidder).log_v - menus.of[bidder][0].log_v
    }

    /// The sum of log V of all but one bidder.
    pub(super) fn log_v(&self, menus: &Menus, without: Option<usize>) -> f64 {
        menus.log_v(&self.choices, without)
    }

    /// The pattern of every bidder, and where all lie.
    pub(super) fn patterns(&self, menus: &Menus) -> (Vec<Option<usize>>, Packing) {
        let all = 0..self.choices.len();
        let patterns = all.map(|bidder| self.choice(menus, bidder).pattern).collect();
        (patterns, self.places.iter().flatten().copied().collect())
    }
}

/// What is won job by job; of a table, slot by slot.
fn bundles(win: &Placed, is_table: bool) -> SmallVec<[Bundle; 4]> {
    if is_table {
        let slots = win.parts.iter().flat_map(|part| part.bundle.iter());
        return slots.map(|slot| std::iter::once(slot).collect()).collect();
    }
    let mut jobs: SmallVec<[(usize, Bundle); 4]> = SmallVec::new();
    for part in &win.parts {
        match jobs.iter_mut().find(|(job, _)| *job == part.job) {
            Some((_, bundle)) => bundle.merge(&part.bundle),
            None => jobs.push((part.job, part.bundle.clone())),
        }
    }
    jobs.into_iter().map(|(_, bundle)| bundle).collect()
}

/// The rooms of the asks of a choice, if these bundles are what it asks for.
fn places_of(
    rooms: &Rooms,
    topology: &Topology,
    choice: &Choice,
    bundles: &[Bundle],
) -> Option<Places> {
    let mut asks = choice.asks.clone();
    asks.sort_by_key(|(kind, _)| rooms.kinds[usize::from(*kind)].within.level);
    let mut places = Places::new();
    for bundle in bundles {
        let fits = |(kind, count): &mut (u16, u16)| {
            let of = &rooms.kinds[usize::from(*kind)];
            if *count == 0 || of.gpus != bundle.gpus() {
                return None;
            }
            let parts = bundle.iter().map(|(slot, _)| topology.part_of(slot, of.within.level));
            let mut parts: SmallVec<[u32; 4]> = parts.collect();
            parts.dedup();
            let lies = |room: &&u16| parts[..] == [rooms.all[usize::from(**room)].part];
            let room = of.rooms.iter().find(lies)?;
            *count -= 1;
            Some((*kind, *room))
        };
        let place = asks.iter_mut().find_map(fits)?;
        if place.1 != WHOLE {
            places.push(place);
        }
    }
    Some(places)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::few::tests::{draw, solved};
    use super::*;
    use crate::cluster::{Chunks, TypeSet};

    /// That choices have the rooms that they ask for, and no room more in it than is free.
    pub(in super::super) fn assert_packs(menus: &Menus, packed: &Packed) {
        let mut left: Vec<u32> = menus.rooms.all.iter().map(|room| room.free).collect();
        for (bidder, places) in packed.places.iter().enumerate() {
            let choice = packed.choice(menus, bidder);
            let mut asks: Vec<u16> = Vec::new();
            for (kind, count) in &choice.asks {
                let of = &menus.rooms.kinds[usize::from(*kind)];
                if menus.rooms.is_bound(*kind) {
                    asks.extend((0..*count).map(|_| *kind));
                } else {
                    left[usize::from(WHOLE)] -= of.gpus * u32::from(*count);
                }
            }
            let mut kinds: Vec<u16> = places.iter().map(|(kind, _)| *kind).collect();
            asks.sort_unstable();
            kinds.sort_unstable();
            assert_eq!(asks, kinds);
            for (kind, room) in places {
                let of = &menus.rooms.kinds[usize::from(*kind)];
                assert!(of.rooms.contains(room));
                // The whole fills up a path.
                let mut around = menus.rooms.around(*room).to_vec();
                around.dedup();
                for room in around {
                    left[room] -= of.gpus;
                }
            }
        }
    }

    #[test]
    fn an_allocation_packs_as_it_lies() {
        let mut whole = 0;
        for seed in 0..60 {
            let (offer, bidders) = draw(seed);
            let chunks = Chunks::of(&offer, &[1, 2, 3, 4], &[TypeSet::ALL]);
            let bid = |bidder| Bid::none(bidder, offer.topology()).on(&offer, &chunks, false);
            let bids: Vec<Bid<'_>> = bidders.iter().map(bid).collect();
            let (best, few) = solved(&offer, &chunks, &bids);
            let packed = Packed::of(&few.menus, offer.topology(), &bids, &best);
            assert_packs(&few.menus, &packed);
            for (bidder, win) in best.wins.iter().enumerate() {
                let gpus = packed.choice(&few.menus, bidder).gpus;
                assert!(gpus == 0 || win.as_ref().is_some_and(|win| win.gpus() == gpus));
            }
            whole += u32::from(packed.log_v(&few.menus, None) > best.objective() - 1e-9);
        }
        assert!(whole > 50, "{whole}");
    }
}
