//! Whether many asks fit at once, and in which rooms: best fit first, then other ways, in two orders.
//!
//! The same asks are met again and again in one search, and in the next: what was found is kept, and
//! what does not fit beside fewer asks, or would where a harder ask did, is not looked for. Cost:
//! O(rooms of the kind) an ask; where best fit fails, twice as much for all asks and [`SPARE`] more.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use smallvec::SmallVec;

use super::rooms::{Rooms, WHOLE};
use crate::cluster::Locality;

/// Rooms tried in one search for a packing, beside one for every ask.
const SPARE: u32 = 4;
/// Rooms that are looked at in a step.
const ROOMS_A_STEP: u32 = 16;
/// Bits of a room's number, and of what is left in it.
const ROOM_BITS: u32 = 16;
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
            attempt: Attempt::default(),
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
            for kind in row..row + rooms.kinds.len() {
                let none = self.with[kind] == NONE;
                self.with.push(if none { NONE } else { UNKNOWN });
            }
            return self.add(self.attempt.packing.clone(), marks);
        }
        let harder = &mut self.harder[usize::from(kind)];
        for kind in harder.get_or_insert_with(|| rooms.harder(kind)) {
            self.with[row + usize::from(*kind)] = NONE;
        }
        self.by_marks.insert(marks, NONE);
        NONE
    }

    /// Packs asks from the start: small rooms first, then those with a single room, then large asks;
    /// where that fails, those with a single room first, then large asks.
    fn pack(&mut self, rooms: &Rooms, number: u32, kind: u16) -> bool {
        let packing = self.found[number as usize].iter();
        let mut asks: SmallVec<[u16; 16]> = packing.map(|(kind, _)| *kind).collect();
        asks.push(kind);
        if self.orders[0].is_empty() {
            self.orders = orders(rooms);
        }
        (0..2).any(|way| {
            asks.sort_unstable_by_key(|kind| self.orders[way][usize::from(*kind)]);
            self.attempt.lay(rooms, &[]);
            let most = asks.len() as u32 + SPARE;
            let mut left = most;
            let found = self.attempt.could_have(rooms, &asks)
                && self.attempt.seek(rooms, &asks, 0, &mut left);
            self.steps += std::mem::take(&mut self.attempt.steps);
            found
        })
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

/// A packing under way.
#[derive(Debug, Default)]
struct Attempt {
    /// GPUs left in every room; of the whole, which is not counted, more than anybody asks for.
    left: Vec<u32>,
    packing: Packing,
    /// Steps of searches since they were last counted.
    steps: u32,
}

impl Attempt {
    /// Starts from a packing.
    fn lay(&mut self, rooms: &Rooms, packing: &[(u16, u16)]) {
        self.left.clear();
        self.left.extend(rooms.all.iter().map(|room| room.free));
        self.left[usize::from(WHOLE)] = u32::MAX;
        self.packing.clear();
        for (kind, room) in packing {
            self.take(rooms, *kind, *room);
        }
    }

    /// Adds an ask where it fits best; nothing else moves.
    fn add(&mut self, rooms: &Rooms, kind: u16) -> bool {
        let best = self.open(rooms, kind).map(|(fit, _)| fit).min();
        best.is_some_and(|fit| {
            self.take(rooms, kind, fit as u16);
            true
        })
    }

    /// Packs asks in this order, the first not in `banned` rooms (a bit each, by place in its list).
    fn seek(&mut self, rooms: &Rooms, asks: &[u16], mut banned: u64, left: &mut u32) -> bool {
        let Some((kind, rest)) = asks.split_first() else { return true };
        let bit = |at: usize| 1_u64.checked_shl(at as u32).unwrap_or(0);
        let mut next = 0;
        loop {
            let open = self.open(rooms, *kind).filter(|(fit, _)| *fit >= next);
            let best = open.filter(|(_, at)| banned & bit(*at) == 0).map(|(fit, _)| fit).min();
            let Some(best) = best.filter(|_| *left > 0) else { return false };
            *left -= 1;
            let looked_at = rooms.kinds[usize::from(*kind)].rooms.len() as u32;
            self.steps += 1 + looked_at / ROOMS_A_STEP;
            self.take(rooms, *kind, best as u16);
            let banned_next = if rest.first() == Some(kind) { banned } else { 0 };
            if self.could_have(rooms, rest) && self.seek(rooms, rest, banned_next, left) {
                return true;
            }
            self.take_back(rooms);
            // Rooms with as much left in the same part are alike: what lies inside them came before.
            // Asks of one kind change places freely: none of the next needs to lie here either.
            let alike = best >> ROOM_BITS;
            let places = self.open(rooms, *kind).filter(|(fit, _)| fit >> ROOM_BITS == alike);
            banned |= places.fold(0, |bits, (_, at)| bits | bit(at));
            next = (alike + 1) << ROOM_BITS;
        }
    }

    /// Whether asks fit as far as those of one kind alone tell.
    fn could_have(&self, rooms: &Rooms, asks: &[u16]) -> bool {
        asks.chunk_by(|a, b| a == b).all(|alike| {
            let kind = &rooms.kinds[usize::from(alike[0])];
            let mut lacking = alike.len() as u32;
            kind.paths.iter().any(|path| {
                let left = path.map(|room| self.left[usize::from(room)]);
                lacking = lacking.saturating_sub(left[0].min(left[1]).min(left[2]) / kind.gpus);
                lacking == 0
            })
        })
    }

    /// The rooms that have an ask, and their places in the list of its kind. The least fits best: by
    /// the GPUs left in the room, in the part around it, then that part and the room by number.
    fn open(&self, rooms: &Rooms, kind: u16) -> impl Iterator<Item = (u64, usize)> {
        let kind = &rooms.kinds[usize::from(kind)];
        kind.paths.iter().enumerate().filter_map(|(at, path)| {
            let [here, around, beyond] = path.map(|room| self.left[usize::from(room)]);
            if here.min(around).min(beyond) < kind.gpus {
                return None;
            }
            let left = |left: u32| u64::from(left.min(u32::from(u16::MAX)));
            let parts = [left(here), left(around), path[1].into(), path[0].into()];
            Some((parts.iter().fold(0, |fit, part| fit << ROOM_BITS | part), at))
        })
    }

    fn take(&mut self, rooms: &Rooms, kind: u16, room: u16) {
        let gpus = rooms.kinds[usize::from(kind)].gpus;
        rooms.around(room).iter().for_each(|room| self.left[*room] -= gpus);
        self.packing.push((kind, room));
    }

    fn take_back(&mut self, rooms: &Rooms) {
        let Some((kind, room)) = self.packing.pop() else { return };
        let gpus = rooms.kinds[usize::from(kind)].gpus;
        rooms.around(room).iter().for_each(|room| self.left[*room] += gpus);
    }
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
