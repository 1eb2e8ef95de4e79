//! Where GPUs that are asked for together can lie: the parts of an offer, and what is asked of them.
//!
//! Slots, machines and racks nest, so that asks fit if and only if no part is asked for more than it
//! has, by those in it and in the parts inside it. Of several GPU types, parts count GPUs of all.

use super::bid::Ask;
use crate::cluster::{Chunks, FreeSet, Locality, TypeSet, Use, Within};
use crate::ids::{MachineId, RackId, SlotId};

/// A part of the offer that has free GPUs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) level: Locality,
    /// Its number among the parts of its level.
    pub(super) part: u32,
    pub(super) free: u32,
    /// The room itself and those around it; [`WHOLE`] fills up.
    pub(super) path: [u16; 3],
}

/// Asks that are alike.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    pub(super) gpus: u32,
    pub(super) within: Within,
    /// The part in which they must lie, by its number.
    near: Option<u32>,
    /// What each of them uses of the rows that have prices.
    pub(super) uses: Use,
    /// The parts in which they may lie; the whole offer, if anywhere.
    pub(super) rooms: Vec<u16>,
    /// Each of these rooms with those around it.
    pub(super) paths: Vec<[u16; 3]>,
    /// How many of them fit, each in a room that would be empty but for them.
    pub(super) most: u32,
}

/// The whole offer is the first room.
pub(super) const WHOLE: u16 = 0;

/// The parts of an offer, outer ones first, and the kinds of asks that were met.
#[derive(Clone, Debug)]
pub(super) struct Rooms {
    pub(super) all: Vec<Room>,
    pub(super) kinds: Vec<Kind>,
}

impl Rooms {
    /// Of an offer; nothing is asked yet.
    pub(super) fn of(offer: &FreeSet) -> Self {
        let (level, free, path) = (Locality::Cluster, offer.total(), [WHOLE; 3]);
        let mut rooms = Self { all: vec![Room { level, part: 0, free, path }], kinds: Vec::new() };
        let topology = offer.topology();
        for rack in (0..topology.racks() as u32).map(RackId) {
            let in_rack = rooms.add(Locality::Rack, rack.0, offer.rack(rack, TypeSet::ALL), WHOLE);
            for machine in topology.machines_of(rack).iter().copied() {
                let free = offer.machine(machine);
                let in_machine = rooms.add(Locality::Machine, machine.0, free, in_rack);
                for slot in topology.slots_of(machine) {
                    rooms.add(Locality::Slot, slot.0, offer.slot(slot), in_machine);
                }
            }
        }
        rooms
    }

    /// Adds a part if anything of it is free; the room of what lies in it.
    fn add(&mut self, level: Locality, part: u32, free: u32, outer: u16) -> u16 {
        if free == 0 {
            return outer;
        }
        let room = self.all.len() as u16;
        let [around, beyond, _] = self.all[usize::from(outer)].path;
        self.all.push(Room { level, part, free, path: [room, around, beyond] });
        room
    }

    /// Whether asks of a kind may not lie anywhere.
    pub(super) fn is_bound(&self, kind: u16) -> bool {
        self.kinds[usize::from(kind)].rooms.first() != Some(&WHOLE)
    }

    /// The room that a room lies in.
    pub(super) fn outer(&self, room: u16) -> u16 {
        self.all[usize::from(room)].path[1]
    }

    /// A room, those around it, and the whole offer once or more.
    pub(super) fn around(&self, room: u16) -> [usize; 3] {
        self.all[usize::from(room)].path.map(usize::from)
    }

    /// The number of the kind of an ask.
    pub(super) fn kind(&mut self, offer: &FreeSet, chunks: &Chunks, ask: &Ask) -> u16 {
        let Ask { gpus, mut within, near, .. } = *ask;
        if gpus == 1 && near.is_none() && within.types == TypeSet::ALL {
            within.level = Locality::Cluster;
        }
        let near = near.map(|slot| offer.topology().part_of(slot, within.level));
        let same = |kind: &Kind| kind.gpus == gpus && kind.within == within && kind.near == near;
        let known = self.kinds.iter().position(same);
        let kind = known.unwrap_or_else(|| {
            let mut uses = Use::default();
            chunks.grow(&mut uses, ask.within, 0, gpus);
            let mut kind =
                Kind { gpus, within, near, uses, rooms: Vec::new(), paths: Vec::new(), most: 0 };
            let rooms = (WHOLE..).zip(&self.all);
            kind.rooms =
                rooms.filter(|(_, room)| kind.suits(offer, room)).map(|(at, _)| at).collect();
            kind.paths = kind.rooms.iter().map(|at| self.all[usize::from(*at)].path).collect();
            let free = kind.rooms.iter().map(|room| self.all[usize::from(*room)].free);
            kind.most = free.map(|free| free / gpus).sum();
            self.kinds.push(kind);
            self.kinds.len() - 1
        });
        kind as u16
    }

    /// The most GPUs of asks of these kinds that may not lie anywhere; 0 if there are none.
    pub(super) fn largest(&self, kinds: impl Iterator<Item = u16>) -> u32 {
        let kinds = kinds.map(|kind| &self.kinds[usize::from(kind)]);
        let bound = kinds.filter(|kind| kind.within.level != Locality::Cluster);
        bound.map(|kind| kind.gpus).max().unwrap_or(0)
    }

    /// The kinds whose asks lie nowhere but in rooms of a kind, or inside them, and are no smaller:
    /// where one of these fits, so does one of the kind.
    pub(super) fn harder(&self, than: u16) -> Box<[u16]> {
        let easy = &self.kinds[usize::from(than)];
        let inside = |room: &u16| {
            self.all[usize::from(*room)]
                .path
                .iter()
                .any(|room| easy.rooms.binary_search(room).is_ok())
        };
        let harder = |kind: &Kind| kind.gpus >= easy.gpus && kind.rooms.iter().all(inside);
        let kinds = (0..).zip(&self.kinds);
        kinds.filter(|(_, kind)| harder(kind)).map(|(at, _)| at).collect()
    }
}

impl Kind {
    /// Whether a room has as many GPUs of its types, and is the one that it must be.
    fn suits(&self, offer: &FreeSet, room: &Room) -> bool {
        let topology = offer.topology();
        let is_of = |machine| offer.is_of(machine, self.within.types);
        room.level == self.within.level
            && room.free >= self.gpus
            && self.near.is_none_or(|part| room.part == part)
            && match room.level {
                Locality::Slot => is_of(topology.machine_of(SlotId(room.part))),
                Locality::Machine => is_of(MachineId(room.part)),
                Locality::Rack => offer.rack(RackId(room.part), self.within.types) >= self.gpus,
                Locality::Cluster => offer.total_of(self.within.types) >= self.gpus,
            }
    }
}
