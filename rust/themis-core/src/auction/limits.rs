//! What asks need together of the parts of an offer, whichever rooms they lie in.
//!
//! Slots, or machines, or racks hold so many bundles of g GPUs, and an ask of g GPUs or more that lies
//! within one of them takes the place of some of these: a whole part's if it leaves less than g GPUs
//! there. So does an ask that may lie in several, but for what each of them can spare. Asks that need
//! more than there is do not fit, and no rooms have to be tried.
//!
//! Cost: O(kinds x (limits + rooms)) once, O(limits) an ask. There are three limits a size of asks.

use super::rooms::{Kind, Rooms, WHOLE};
use crate::cluster::Locality;

/// Bundles of so many GPUs within parts of a locality.
#[derive(Clone, Copy)]
struct Limit {
    gpus: u32,
    level: Locality,
}

/// How much there is of each limit, and how much an ask of each kind needs of it.
#[derive(Debug, Default)]
pub(super) struct Limits {
    there: Vec<u32>,
    needs: Vec<u32>,
}

impl Limits {
    /// For all asks that are bound to rooms.
    pub(super) fn of(rooms: &Rooms) -> Self {
        let bound = (0..).zip(&rooms.kinds).filter(|(at, _)| rooms.is_bound(*at));
        let mut sizes: Vec<u32> = bound.map(|(_, kind)| kind.gpus).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let levels = [Locality::Slot, Locality::Machine, Locality::Rack];
        let of_size = |gpus: u32| levels.map(|level| Limit { gpus, level });
        let limits: Vec<Limit> = sizes.into_iter().flat_map(of_size).collect();
        let inside: Vec<Vec<(u32, u32)>> = limits.iter().map(|limit| limit.inside(rooms)).collect();
        let there = limits.iter().map(|limit| limit.there(rooms)).collect();
        let of_kind = |kind| {
            let limits = limits.iter().zip(&inside);
            limits.map(move |(limit, inside)| limit.need(rooms, inside, kind))
        };
        let needs = rooms.kinds.iter().flat_map(of_kind).collect();
        Self { there, needs }
    }

    /// Whether there is as much as these asks need.
    pub(super) fn have(&self, asks: &[u16]) -> bool {
        self.there.iter().enumerate().all(|(limit, there)| {
            let need = |kind: &u16| self.needs[usize::from(*kind) * self.there.len() + limit];
            asks.iter().map(need).sum::<u32>() <= *there
        })
    }
}

impl Limit {
    fn there(self, rooms: &Rooms) -> u32 {
        let parts = rooms.all.iter().filter(|room| room.level == self.level);
        parts.map(|room| room.free / self.gpus).sum()
    }

    /// How many of its bundles every room holds in the parts inside it, and in how many parts.
    fn inside(self, rooms: &Rooms) -> Vec<(u32, u32)> {
        let mut inside = vec![(0, 0); rooms.all.len()];
        for room in rooms.all.iter().filter(|room| room.level == self.level) {
            for at in room.path.iter().filter(|at| **at != WHOLE) {
                let (bundles, parts) = &mut inside[usize::from(*at)];
                *bundles += room.free / self.gpus;
                *parts += 1;
            }
        }
        inside
    }

    /// The least that an ask of a kind takes the place of.
    fn need(self, rooms: &Rooms, inside: &[(u32, u32)], kind: &Kind) -> u32 {
        if kind.gpus < self.gpus {
            return 0;
        }
        if kind.within.level < self.level {
            return kind.gpus / self.gpus;
        }
        let in_room = |at: &u16| {
            let (bundles, parts) = inside[usize::from(*at)];
            let alone = rooms.all[usize::from(*at)].free - kind.gpus < self.gpus;
            // One that may lie in several parts may be given what nothing else can use in each.
            let spared = if kind.within.level > self.level { parts * (self.gpus - 1) } else { 0 };
            if alone { bundles } else { kind.gpus.saturating_sub(spared) / self.gpus }
        };
        kind.rooms.iter().map(in_room).min().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::sync::Arc;

    use super::super::attempt::Attempt;
    use super::super::bid::Ask;
    use super::*;
    use crate::cluster::{Chunks, FreeSet, MachineSpec, Topology, TypeSet, Within};

    /// Asks of so many GPUs within a locality, in rooms of machines with a slot of 4 or 2 GPUs for each.
    fn rooms_and_asks(machines: &[u32], asks: &[(u32, Locality)]) -> (Rooms, Vec<u16>) {
        let spec = |gpus: &u32| MachineSpec { rack: 0, gpus: *gpus, slot_gpus: *gpus.min(&4) };
        let specs: Vec<MachineSpec> = machines.iter().map(spec).collect();
        let offer = FreeSet::full(Arc::new(Topology::new(&specs).expect("valid")));
        let chunks = Chunks::of(&offer, &[], &[TypeSet::ALL]);
        let mut rooms = Rooms::of(&offer);
        let ask = |(gpus, level): &(u32, Locality)| {
            let ask = Ask { job: 0, gpus: *gpus, within: Within::from(*level), near: None };
            rooms.kind(&offer, &chunks, &ask)
        };
        let kinds = asks.iter().map(ask).collect();
        (rooms, kinds)
    }

    #[test]
    fn what_needs_more_than_there_is_is_known_without_trying() {
        let (slot, machine) = (Locality::Slot, Locality::Machine);
        let pairs = |count| vec![(2, slot); count];
        // Two machines of 8 in slots of 4, and two single GPUs, which no pair can use.
        let (machines, fewer) = (vec![8, 8, 1, 1], vec![8, 4]);
        let whole = vec![(8, machine), (3, slot)];
        let cases = [
            (pairs(8), true),
            (pairs(9), false),
            ([vec![(8, machine)], pairs(4)].concat(), true),
            ([vec![(8, machine)], pairs(5)].concat(), false),
            // A slot of 4 with 3 of them gone has no pair left.
            ([vec![(3, slot)], pairs(6)].concat(), true),
            ([vec![(3, slot)], pairs(7)].concat(), false),
        ];
        let of_fewer = [
            // What takes a machine leaves no slot of it.
            (whole.clone(), true),
            ([whole, pairs(1)].concat(), false),
            // What a machine has left beside 6 of its GPUs may be one in each slot, or a pair.
            ([vec![(6, machine)], pairs(3)].concat(), true),
            ([vec![(6, machine)], pairs(4)].concat(), false),
        ];
        let cases = cases.map(|case| (&machines, case)).into_iter();
        for (machines, (asks, fits)) in cases.chain(of_fewer.map(|case| (&fewer, case))) {
            let (rooms, kinds) = rooms_and_asks(machines, &asks);
            assert_eq!(Limits::of(&rooms).have(&kinds), fits, "{machines:?} {asks:?}");
        }
    }

    #[test]
    fn what_packs_is_within_the_limits() {
        let levels = [Locality::Slot, Locality::Machine, Locality::Rack];
        let (mut packed, mut ruled_out) = (0, 0);
        for seed in 1..2_000_u64 {
            let mut state = seed * 7_919;
            let mut below = |limit: u64| {
                state = state * 48_271 % 0x7fff_ffff;
                (state % limit) as u32
            };
            let machines: Vec<u32> =
                (0..4).map(|_| [8, 4, 4, 3, 2, 1][below(6) as usize]).collect();
            let asks: Vec<(u32, Locality)> = (0..5)
                .map(|_| ([1, 2, 3, 4, 6, 8][below(6) as usize], levels[below(3) as usize]))
                .collect();
            let (rooms, kinds) = rooms_and_asks(&machines, &asks);
            let mut bound: Vec<u16> =
                kinds.into_iter().filter(|kind| rooms.is_bound(*kind)).collect();
            let inner_first = |kind: &u16| {
                let kind = &rooms.kinds[usize::from(*kind)];
                (kind.within.level, Reverse(kind.gpus))
            };
            bound.sort_by_key(inner_first);
            // All ways are tried, whatever the limits say.
            let mut attempt = Attempt::new(&rooms);
            attempt.lay(&rooms, &[]);
            let fits = attempt.seek(&rooms, &bound, 0, &mut 1_000_000);
            let within = Limits::of(&rooms).have(&bound);
            assert!(within || !fits, "seed {seed}: {machines:?} {asks:?}");
            packed += u32::from(fits);
            ruled_out += u32::from(!within);
        }
        assert!(packed > 250 && ruled_out > 250, "{packed} {ruled_out}");
    }
}
