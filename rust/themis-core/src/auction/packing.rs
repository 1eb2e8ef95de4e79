//! Whether many asks fit at once, and in which rooms: best fit first, then all ways that differ.
//!
//! The same asks are met again and again in one search, and in the next: what was found is kept.
//! Cost: O(rooms of the kind) an ask, [`STEPS`] steps more at most where best fit fails.

use std::cmp::Reverse;
use std::collections::HashMap;

use smallvec::SmallVec;

use super::rooms::{Rooms, WHOLE};

/// Steps of one search for a packing.
const STEPS: u32 = 50;
/// Rooms that are looked at in a step.
const ROOMS_A_STEP: u32 = 16;
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
    /// Of each of these and every kind that could be added: the packing with it.
    with: Vec<u32>,
    /// By the kinds of its asks, sorted.
    by_asks: HashMap<SmallVec<[u16; 16]>, u32>,
    floor: Floor,
    /// Steps that were taken.
    pub(super) steps: u32,
}

impl Packings {
    /// Nothing was looked for.
    pub(super) fn new(rooms: &Rooms) -> Self {
        Self {
            found: vec![Packing::new()],
            with: vec![UNKNOWN; rooms.kinds.len()],
            by_asks: HashMap::new(),
            floor: Floor::default(),
            steps: 0,
        }
    }

    /// A packing by its number.
    pub(super) fn get(&self, number: u32) -> &Packing {
        &self.found[number as usize]
    }

    /// The packing with one more ask; `None` when no way was found.
    pub(super) fn with(&mut self, rooms: &Rooms, number: u32, kind: u16) -> Option<u32> {
        if rooms.kinds[usize::from(kind)].rooms.first() == Some(&WHOLE) {
            return Some(number);
        }
        let at = number as usize * rooms.kinds.len() + usize::from(kind);
        if self.with[at] == UNKNOWN {
            self.with[at] = self.look_up(rooms, number, kind);
        }
        (self.with[at] != NONE).then_some(self.with[at])
    }

    fn look_up(&mut self, rooms: &Rooms, number: u32, kind: u16) -> u32 {
        let packing = &self.found[number as usize];
        let mut asks: SmallVec<[u16; 16]> = packing.iter().map(|(kind, _)| *kind).collect();
        asks.push(kind);
        asks.sort_unstable();
        if let Some(known) = self.by_asks.get(&asks) {
            return *known;
        }
        self.steps += 1 + (asks.len() + rooms.all.len()) as u32 / ROOMS_A_STEP;
        self.floor.lay(rooms, packing);
        let mut number = NONE;
        if self.floor.add(rooms, kind) || self.pack(rooms, &asks) {
            number = self.found.len() as u32;
            self.found.push(self.floor.packing.clone());
            self.with.resize(self.with.len() + rooms.kinds.len(), UNKNOWN);
        }
        self.by_asks.insert(asks, number);
        number
    }

    /// Packs asks from the start: small rooms first, then those with a single room, then large asks.
    fn pack(&mut self, rooms: &Rooms, asks: &[u16]) -> bool {
        let mut asks: SmallVec<[u16; 16]> = asks.into();
        asks.sort_by_key(|at| {
            let kind = &rooms.kinds[usize::from(*at)];
            (kind.within.level, kind.rooms.len() > 1, Reverse(kind.gpus), *at)
        });
        self.floor.lay(rooms, &[]);
        let mut left = STEPS;
        let found = self.floor.seek(rooms, &asks, 0, &mut left);
        self.steps += STEPS - left;
        found
    }
}

/// GPUs left in a room, and in the part around it; that part, the room, its place in its kind's list.
type Open = [u16; 5];

/// A packing under way.
#[derive(Debug, Default)]
struct Floor {
    /// GPUs left in every room; of the whole, which is not counted, more than anybody asks for.
    left: Vec<u32>,
    packing: Packing,
}

impl Floor {
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
        let best = self.open(rooms, kind).min();
        best.is_some_and(|[.., room, _]| {
            self.take(rooms, kind, room);
            true
        })
    }

    /// Packs asks in this order, the first not in `banned` rooms (a bit each, by place in its list).
    fn seek(&mut self, rooms: &Rooms, asks: &[u16], mut banned: u64, left: &mut u32) -> bool {
        let Some((kind, rest)) = asks.split_first() else { return true };
        let bit = |at: u16| 1_u64.checked_shl(u32::from(at)).unwrap_or(0);
        let open = self.open(rooms, *kind).filter(|[.., at]| banned & bit(*at) == 0);
        let mut open: SmallVec<[Open; 16]> = open.collect();
        open.sort_unstable();
        // Rooms with as much left in the same part are alike: what lies inside them came before.
        for alike in open.chunk_by(|a, b| (a[0], a[2]) == (b[0], b[2])) {
            if *left == 0 {
                return false;
            }
            *left = left.saturating_sub(
                1 + rooms.kinds[usize::from(*kind)].rooms.len() as u32 / ROOMS_A_STEP,
            );
            self.take(rooms, *kind, alike[0][3]);
            let banned_next = if rest.first() == Some(kind) { banned } else { 0 };
            if self.seek(rooms, rest, banned_next, left) {
                return true;
            }
            self.take_back(rooms);
            // Asks of one kind change places freely: none of the next needs to lie here either.
            for [.., at] in alike {
                banned |= bit(*at);
            }
        }
        false
    }

    /// The rooms that have an ask; the least fits best.
    fn open(&self, rooms: &Rooms, kind: u16) -> impl Iterator<Item = Open> {
        let kind = &rooms.kinds[usize::from(kind)];
        let has = |room: u16| rooms.around(room).iter().all(|room| self.left[*room] >= kind.gpus);
        (0..).zip(&kind.rooms).filter(move |(_, room)| has(**room)).map(|(at, room)| {
            let outer = rooms.outer(*room);
            let left = |room: u16| self.left[usize::from(room)].min(u32::from(u16::MAX)) as u16;
            [left(*room), left(outer), outer, *room, at]
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
    use crate::auction::bidder::Ask;
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
}
