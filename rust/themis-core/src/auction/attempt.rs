//! One attempt to pack asks: the room that fits each best, then others, as long as steps are left.
//!
//! It turns back where asks of one kind have no room, and, if it was told what to expect, where all of
//! them need more GPUs than they can use: beside three of four GPUs, the fourth is of no use to pairs.

use super::packing::Packing;
use super::rooms::{Rooms, WHOLE};

/// Rooms that are looked at in a step.
pub(super) const ROOMS_A_STEP: u32 = 16;
/// Bits of a room's number, and of what is left in it.
const ROOM_BITS: u32 = 16;

/// What asks need that lie within parts of a level.
#[derive(Clone, Copy, Debug)]
struct Need {
    /// GPUs of all of them.
    gpus: u32,
    /// The least GPUs of one.
    least: u32,
    /// GPUs of all of them are multiples of this.
    unit: u32,
}

/// A packing under way.
#[derive(Debug)]
pub(super) struct Attempt {
    /// GPUs of every room; of the whole, which is not counted, more than anybody asks for.
    free: Vec<u32>,
    /// Of the last so many asks that are sought for: what they need of slots, machines and racks.
    needs: Vec<[Need; 3]>,
    /// GPUs left in every room.
    left: Vec<u32>,
    pub(super) packing: Packing,
    /// Steps of searches since they were last counted.
    pub(super) steps: u32,
}

impl Attempt {
    /// Nothing is packed.
    pub(super) fn new(rooms: &Rooms) -> Self {
        let mut free: Vec<u32> = rooms.all.iter().map(|room| room.free).collect();
        free[usize::from(WHOLE)] = u32::MAX;
        Self { left: free.clone(), free, needs: Vec::new(), packing: Packing::new(), steps: 0 }
    }

    /// Starts from a packing.
    pub(super) fn lay(&mut self, rooms: &Rooms, packing: &[(u16, u16)]) {
        self.needs.clear();
        self.left.clone_from(&self.free);
        self.packing.clear();
        for (kind, room) in packing {
            self.take(rooms, *kind, *room);
        }
    }

    /// Adds an ask where it fits best; nothing else moves.
    pub(super) fn add(&mut self, rooms: &Rooms, kind: u16) -> bool {
        let best = self.best(rooms, kind, 0, 0);
        best.is_some_and(|fit| {
            self.take(rooms, kind, fit as u16);
            true
        })
    }

    /// Learns what the asks need that are sought for next, in this order.
    pub(super) fn expect(&mut self, rooms: &Rooms, asks: &[u16]) {
        let mut needs = [Need { gpus: 0, least: u32::MAX, unit: 0 }; 3];
        self.needs.push(needs);
        for alike in asks.chunk_by(|a, b| a == b).rev() {
            let kind = &rooms.kinds[usize::from(alike[0])];
            let levels = kind.within.level as usize..;
            for need in &mut needs[levels.clone()] {
                need.least = need.least.min(kind.gpus);
                need.unit = greatest_divisor(need.unit, kind.gpus);
            }
            for _ in alike {
                needs[levels.clone()].iter_mut().for_each(|need| need.gpus += kind.gpus);
                self.needs.push(needs);
            }
        }
    }

    /// Whether parts of every level have as many GPUs as the last so many asks can use of them, where all
    /// of these are of a multiple of some number of GPUs: what is left over lies idle.
    fn has_enough(&self, rooms: &Rooms, asks: usize) -> bool {
        let units = |needs: &&[Need; 3]| needs.iter().any(|need| need.unit > 1);
        let Some(needs) = self.needs.get(asks).filter(units) else { return true };
        let mut there = [0; 3];
        for (room, left) in rooms.all.iter().zip(&self.left).skip(1) {
            let level = room.level as usize;
            let Need { least, unit, .. } = needs[level];
            if *left >= least {
                there[level] += left - left % unit;
            }
        }
        needs.iter().zip(there).all(|(need, there)| need.gpus <= there)
    }

    /// Packs asks in this order, the first not in `banned` rooms (a bit each, by place in its list).
    pub(super) fn seek(
        &mut self,
        rooms: &Rooms,
        asks: &[u16],
        mut banned: u64,
        left: &mut u32,
    ) -> bool {
        let Some((kind, rest)) = asks.split_first() else { return true };
        let mut best = self.best(rooms, *kind, 0, banned);
        while let Some(fit) = best.filter(|_| *left > 0) {
            *left -= 1;
            let looked_at = rooms.kinds[usize::from(*kind)].rooms.len() as u32;
            self.steps += 1 + looked_at / ROOMS_A_STEP;
            self.take(rooms, *kind, fit as u16);
            let same = rest.first() == Some(kind);
            let banned_next = if same { banned } else { 0 };
            if (same || self.has_enough(rooms, rest.len()))
                && self.could_have(rooms, rest)
                && self.seek(rooms, rest, banned_next, left)
            {
                return true;
            }
            self.take_back(rooms);
            if *left == 0 {
                break;
            }
            // Rooms with as much left in the same part are alike: what lies inside them came before.
            // Asks of one kind change places freely: none of the next needs to lie here either.
            let alike = fit >> ROOM_BITS;
            banned |= self.alike(rooms, *kind, alike);
            best = self.best(rooms, *kind, (alike + 1) << ROOM_BITS, banned);
        }
        false
    }

    /// Whether asks fit as far as those of one kind alone tell.
    pub(super) fn could_have(&self, rooms: &Rooms, asks: &[u16]) -> bool {
        asks.chunk_by(|a, b| a == b).all(|alike| {
            let kind = &rooms.kinds[usize::from(alike[0])];
            let mut lacking = alike.len() as u32 * kind.gpus;
            kind.paths.iter().any(|path| {
                let left = path.map(|room| self.left[usize::from(room)]);
                let least = left[0].min(left[1]).min(left[2]);
                // A division takes long, and mostly there is no room, or enough of it.
                if least >= lacking {
                    return true;
                }
                if least >= kind.gpus {
                    lacking -= least - least % kind.gpus;
                }
                false
            })
        })
    }

    /// The room that fits an ask best, of those that fit no better than `next` and are not banned. The
    /// least fits best: by the GPUs left in the room, in the part around it, then that part and the
    /// room by number.
    fn best(&self, rooms: &Rooms, kind: u16, next: u64, banned: u64) -> Option<u64> {
        let kind = &rooms.kinds[usize::from(kind)];
        let mut best = u64::MAX;
        for (at, path) in kind.paths.iter().enumerate() {
            let here = self.left[usize::from(path[0])];
            // Most rooms are passed over by what is left in them alone.
            if here < kind.gpus || u64::from(here) > best >> (3 * ROOM_BITS) {
                continue;
            }
            let fit = self.fit(*path, kind.gpus);
            if fit < best && fit >= next && banned & bit(at) == 0 {
                best = fit;
            }
        }
        (best < u64::MAX).then_some(best)
    }

    /// The rooms of a kind, a bit each, that have an ask and fit it as well but for their number.
    fn alike(&self, rooms: &Rooms, kind: u16, alike: u64) -> u64 {
        let kind = &rooms.kinds[usize::from(kind)];
        let places = (0..).zip(&kind.paths);
        let fits = places.filter(|(_, path)| self.fit(**path, kind.gpus) >> ROOM_BITS == alike);
        fits.fold(0, |bits, (at, _)| bits | bit(at))
    }

    /// How well a room with those around it fits an ask: the less the better.
    fn fit(&self, path: [u16; 3], gpus: u32) -> u64 {
        let [here, around, beyond] = path.map(|room| self.left[usize::from(room)]);
        if here.min(around).min(beyond) < gpus {
            return u64::MAX;
        }
        let left = |left: u32| u64::from(left.min(u32::from(u16::MAX)));
        let parts = [left(here), left(around), path[1].into(), path[0].into()];
        parts.iter().fold(0, |fit, part| fit << ROOM_BITS | part)
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

/// The greatest number that divides both; the second of 0 and another.
fn greatest_divisor(mut a: u32, mut b: u32) -> u32 {
    while a != 0 {
        (a, b) = (b % a, a);
    }
    b
}

/// The bit of a place; of those beyond the last, none.
fn bit(at: usize) -> u64 {
    1_u64.checked_shl(at as u32).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::bid::Ask;
    use super::*;
    use crate::cluster::{Chunks, FreeSet, Locality, MachineSpec, Topology, Within};

    #[test]
    fn what_nothing_can_use_is_not_enough_though_every_kind_alone_would_fit() {
        let spec = MachineSpec { rack: 0, gpus: 4, slot_gpus: 4 };
        let offer = FreeSet::full(Arc::new(Topology::new(&[spec, spec]).expect("valid")));
        let chunks = Chunks::of(&offer, &[], &[]);
        let mut rooms = Rooms::of(&offer);
        let asks = [(3, Locality::Slot), (2, Locality::Slot), (2, Locality::Machine)];
        let [three, pair, near] = asks.map(|(gpus, level)| {
            let ask = Ask { job: 0, gpus, within: Within::from(level), near: None };
            rooms.kind(&offer, &chunks, &ask)
        });
        let mut attempt = Attempt::new(&rooms);
        for (asks, enough) in
            [(vec![three, pair, near], true), (vec![three, pair, near, near], false)]
        {
            attempt.lay(&rooms, &[]);
            attempt.expect(&rooms, &asks);
            assert!(attempt.has_enough(&rooms, asks.len()));
            assert!(attempt.add(&rooms, three) && attempt.could_have(&rooms, &asks[1..]));
            // One GPU beside three is of no use to pairs.
            assert_eq!(attempt.has_enough(&rooms, asks.len() - 1), enough);
            attempt.lay(&rooms, &[]);
            attempt.expect(&rooms, &asks);
            assert_eq!(attempt.seek(&rooms, &asks, 0, &mut 100), enough);
        }
    }
}
