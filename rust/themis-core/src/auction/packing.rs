//! Whether many asks fit at once, and in which rooms: best fit first, then other ways, in two orders.
//!
//! The same asks are met again and again in one search, and in the next: what was found is kept, and
//! what needs more than there is ([`super::limits`]), does not fit beside fewer asks, or would where a
//! harder ask did, is not looked for. Cost: O(rooms of the kind) an ask; where best fit fails, twice as
//! much for all asks and [`SPARE`] more ([`super::attempt`]).

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use smallvec::SmallVec;

use super::attempt::{Attempt, ROOMS_A_STEP};
use super::limits::Limits;
use super::rooms::Rooms;
use crate::cluster::Locality;

/// Rooms tried in one search for a packing, beside one for every ask.
const SPARE: u32 = 4;
/// No packing was found.
const NONE: u32 = u32::MAX;
/// None was looked for.
const UNKNOWN: u32 = u32::MAX - 1;

/// (kind, room) of every ask that is bound to rooms.
pub(super) type Packing = SmallVec<[(u16, u16); 8]>;

/// Packings that were looked for, by number; number 0 has no asks.
#[derive(Debug)]
pub(super) struct Packings {
    found: Vec<Packing>,
    /// Of each of these: the sum of the marks of its asks.
    marks: Vec<u64>,
    /// Of each of these and every kind that could be added: the packing with it.
    with: Vec<u32>,
    /// By the sums of marks. Sets of asks whose sums met by chance would share a packing, and be
    /// given whatever GPUs are free when they are placed.
    by_marks: HashMap<u64, u32, Mixing>,
    /// Of every kind that failed once: the kinds that are harder to have.
    harder: Vec<Option<Box<[u16]>>>,
    /// The place of every kind in each order in which asks are packed, once there was need.
    orders: [Vec<u16>; 2],
    /// Of all asks together, from then on.
    limits: Limits,
    attempt: Attempt,
    /// Steps that were taken.
    pub(super) steps: u32,
}

/// Of small keys, soon made.
pub(super) type Mixing = BuildHasherDefault<Mixed>;

#[derive(Debug, Default)]
pub(super) struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mark(self.0 ^ number);
    }
}

/// A number that tells one from others, even in sums (`SplitMix64`).
fn mark(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

impl Packings {
    /// Nothing was looked for.
    pub(super) fn new(rooms: &Rooms) -> Self {
        Self {
            found: vec![Packing::new()],
            marks: vec![0],
            with: vec![UNKNOWN; rooms.kinds.len()],
            by_marks: HashMap::default(),
            harder: vec![None; rooms.kinds.len()],
            orders: [Vec::new(), Vec::new()],
            limits: Limits::default(),
            attempt: Attempt::new(rooms),
            steps: 0,
        }
    }

    /// A packing by its number.
    pub(super) fn get(&self, number: u32) -> &Packing {
        &self.found[number as usize]
    }

    /// The number of a packing that is known from elsewhere.
    pub(super) fn of(&mut self, rooms: &Rooms, packing: Packing) -> u32 {
        let marks = packing.iter().map(|(kind, _)| mark(u64::from(*kind)));
        let marks = marks.fold(0, u64::wrapping_add);
        let known = self.by_marks.get(&marks).copied().filter(|known| *known != NONE);
        known.unwrap_or_else(|| {
            self.with.resize(self.with.len() + rooms.kinds.len(), UNKNOWN);
            self.add(packing, marks)
        })
    }

    /// Keeps a packing; its number.
    fn add(&mut self, packing: Packing, marks: u64) -> u32 {
        let number = self.found.len() as u32;
        self.found.push(packing);
        self.marks.push(marks);
        self.by_marks.insert(marks, number);
        number
    }

    /// The packing with more asks, so many of each kind; `None` when no way was found.
    pub(super) fn with_all(
        &mut self,
        rooms: &Rooms,
        number: u32,
        asks: &[(u16, u16)],
    ) -> Option<u32> {
        let mut kinds = asks.iter().flat_map(|(kind, count)| (0..*count).map(|_| *kind));
        kinds.try_fold(number, |number, kind| self.with(rooms, number, kind))
    }

    /// The packing with one more ask; `None` when no way was found.
    pub(super) fn with(&mut self, rooms: &Rooms, number: u32, kind: u16) -> Option<u32> {
        if !rooms.is_bound(kind) {
            return Some(number);
        }
        let at = number as usize * rooms.kinds.len() + usize::from(kind);
        if self.with[at] == UNKNOWN {
            self.with[at] = self.look_up(rooms, number, kind);
        }
        (self.with[at] != NONE).then_some(self.with[at])
    }

    fn look_up(&mut self, rooms: &Rooms, number: u32, kind: u16) -> u32 {
        let marks = self.marks[number as usize].wrapping_add(mark(u64::from(kind)));
        if let Some(known) = self.by_marks.get(&marks) {
            return *known;
        }
        let packing = &self.found[number as usize];
        self.steps += 1 + (packing.len() + rooms.all.len()) as u32 / ROOMS_A_STEP;
        self.attempt.lay(rooms, packing);
        let row = number as usize * rooms.kinds.len();
        if self.attempt.add(rooms, kind) || self.pack(rooms, number, kind) {
            // What fits beside fewer asks no more does not fit beside more.
            let with_more = self.with.len();
            self.with.extend_from_within(row..row + rooms.kinds.len());
            for with in &mut self.with[with_more..] {
                *with = if *with == NONE { NONE } else { UNKNOWN };
            }
            return self.add(Packing::from_slice(&self.attempt.packing), marks);
        }
        let harder = &mut self.harder[usize::from(kind)];
        for kind in harder.get_or_insert_with(|| rooms.harder(kind)) {
            self.with[row + usize::from(*kind)] = NONE;
        }
        self.by_marks.insert(marks, NONE);
        NONE
    }

    /// Packs asks from the start: small rooms first, then those with a single room, then large asks;
    /// where that comes to no end, those with a single room first, then large asks.
    fn pack(&mut self, rooms: &Rooms, number: u32, kind: u16) -> bool {
        let packing = self.found[number as usize].iter();
        let mut asks: SmallVec<[u16; 16]> = packing.map(|(kind, _)| *kind).collect();
        asks.push(kind);
        if self.orders[0].is_empty() {
            (self.orders, self.limits) = (orders(rooms), Limits::of(rooms));
        }
        if !self.limits.have(&asks) {
            return false;
        }
        for way in 0..2 {
            asks.sort_unstable_by_key(|kind| self.orders[way][usize::from(*kind)]);
            self.attempt.lay(rooms, &[]);
            if way == 0 {
                self.attempt.expect(rooms, &asks);
            }
            let mut left = asks.len() as u32 + SPARE;
            let found = self.attempt.could_have(rooms, &asks)
                && self.attempt.seek(rooms, &asks, 0, &mut left);
            self.steps += std::mem::take(&mut self.attempt.steps);
            if found || left > 0 {
                return found;
            }
        }
        false
    }
}

/// The place of every kind in each order in which asks are packed.
fn orders(rooms: &Rooms) -> [Vec<u16>; 2] {
    [false, true].map(|large_first| {
        let mut kinds: Vec<u16> = (0..rooms.kinds.len() as u16).collect();
        kinds.sort_by_key(|at| {
            let kind = &rooms.kinds[usize::from(*at)];
            let level = kind.within.level;
            let inner = if large_first { Locality::Slot } else { level };
            (inner, kind.rooms.len() > 1, Reverse(kind.gpus), level, *at)
        });
        let mut places = vec![0; kinds.len()];
        (0..).zip(kinds).for_each(|(place, kind)| places[usize::from(kind)] = place);
        places
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::auction::bid::Ask;
    use crate::cluster::{Bundle, Chunks, FreeSet, Locality, MachineSpec, Topology, Within};
    use crate::ids::SlotId;

    /// Racks of two and one machines of 3 or 4 GPUs, a part of which is free; numbers by Lehmer.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, limit: u64) -> u32 {
            self.0 = self.0 * 48_271 % 0x7fff_ffff;
            (self.0 % limit) as u32
        }
    }

    fn draw(dice: &mut Dice) -> (FreeSet, Vec<Ask>) {
        let spec = |(rack, gpus)| MachineSpec { rack, gpus, slot_gpus: 2 };
        let topology = Topology::new(&[(0, 4), (0, 3), (1, 4)].map(spec)).expect("valid");
        let free = (0..topology.slots() as u32).map(SlotId);
        let free = free.map(|slot| (slot, dice.below(u64::from(topology.slot_gpus(slot)) + 1)));
        let free: Bundle = free.collect();
        let offer = FreeSet::of(Arc::new(topology), &free);
        let asks = (0..2 + dice.below(4)).map(|job| {
            let level = Locality::ALL[dice.below(4) as usize];
            let near = (dice.below(3) == 0).then(|| SlotId(dice.below(6)));
            let gpus = 1 + dice.below(3);
            Ask { job: job as usize, gpus, within: Within::from(level), near }
        });
        (offer, asks.collect())
    }

    /// Whether each ask can be given GPUs of its own, slot by slot: all ways are tried.
    fn fit(free: &mut Vec<u32>, topology: &Topology, asks: &[Ask]) -> bool {
        let Some((ask, rest)) = asks.split_first() else { return true };
        let part = |slot| topology.part_of(slot, ask.within.level);
        let all = || (0..topology.slots() as u32).map(SlotId);
        let mut parts: Vec<u32> =
            all().filter(|s| ask.near.is_none_or(|n| part(n) == part(*s))).map(part).collect();
        parts.dedup();
        parts.iter().any(|one| {
            let slots: Vec<usize> = all().filter(|s| part(*s) == *one).map(SlotId::index).collect();
            give(free, &slots, ask.gpus, &mut |free| fit(free, topology, rest))
        })
    }

    /// Whether `then` holds after some way to take so many GPUs of these slots.
    fn give(
        free: &mut Vec<u32>,
        slots: &[usize],
        gpus: u32,
        then: &mut dyn FnMut(&mut Vec<u32>) -> bool,
    ) -> bool {
        let Some((slot, rest)) = slots.split_first() else { return gpus == 0 && then(free) };
        (0..=free[*slot].min(gpus)).any(|taken| {
            free[*slot] -= taken;
            let works = give(free, rest, gpus - taken, then);
            free[*slot] += taken;
            works
        })
    }

    #[test]
    fn asks_are_packed_if_and_only_if_they_fit() {
        let mut dice = Dice(7);
        let mut fitting = 0;
        for round in 0..2_000 {
            let (offer, asks) = draw(&mut dice);
            let chunks = Chunks::of(&offer, &[], &[]);
            let mut rooms = Rooms::of(&offer);
            let kinds: Vec<u16> = asks.iter().map(|a| rooms.kind(&offer, &chunks, a)).collect();
            let mut packings = Packings::new(&rooms);
            let in_all: u32 = asks.iter().map(|ask| ask.gpus).sum();
            let packed =
                kinds.iter().try_fold(0, |number, kind| packings.with(&rooms, number, *kind));
            // The search counts GPUs in all by itself.
            let packed = packed.is_some() && in_all <= offer.total();
            let mut free: Vec<u32> =
                (0..offer.topology().slots() as u32).map(|slot| offer.slot(SlotId(slot))).collect();
            assert_eq!(packed, fit(&mut free, offer.topology(), &asks), "round {round}: {asks:?}");
            fitting += u32::from(packed);
        }
        assert!((200..1_800).contains(&fitting), "{fitting}");
    }

    #[test]
    fn what_was_ruled_out_for_fewer_or_easier_asks_fits_nowhere() {
        let mut dice = Dice(11);
        let mut ruled_out = 0;
        for round in 0..1_000 {
            let (offer, asks) = draw(&mut dice);
            let chunks = Chunks::of(&offer, &[], &[]);
            let mut rooms = Rooms::of(&offer);
            let kinds: Vec<u16> = asks.iter().map(|a| rooms.kind(&offer, &chunks, a)).collect();
            let mut packings = Packings::new(&rooms);
            let mut number = Some(0);
            for beside in 0..asks.len() {
                let Some(before) = number else { break };
                // Every ask beside the first ones: what one failure rules out, others come to next.
                for (ask, kind) in asks.iter().zip(&kinds) {
                    let mut all = asks[..beside].to_vec();
                    all.push(*ask);
                    if all.iter().map(|ask| ask.gpus).sum::<u32>() > offer.total() {
                        continue;
                    }
                    let row = before as usize * rooms.kinds.len();
                    ruled_out += u32::from(packings.with[row + usize::from(*kind)] == NONE);
                    let packed = packings.with(&rooms, before, *kind).is_some();
                    let slots = (0..offer.topology().slots() as u32).map(SlotId);
                    let mut free: Vec<u32> = slots.map(|slot| offer.slot(slot)).collect();
                    assert_eq!(packed, fit(&mut free, offer.topology(), &all), "round {round}");
                }
                number = packings.with(&rooms, before, kinds[beside]);
            }
        }
        assert!(ruled_out > 300, "{ruled_out}");
    }
}
