//! Where the asks of a selection lie, and where another may: with some taken back, or one moved.
//!
//! An ask goes where it fits best. Where it fits nowhere, an ask that lies in its way goes elsewhere.
//! What is in the way of which kind is found once, and serves until what lies where changes for good.
//!
//! Cost: O(rooms of the kind) where an ask fits, else O([`TRIES`] times that of those in its way).
//! Guarantee: no room has more in it than is free there, and what is undone is as it was.

use smallvec::SmallVec;

use super::rooms::{Kind, Rooms, WHOLE};

/// Asks that are moved in vain, at most, to make way for one.
const TRIES: usize = 4;
/// A room or ask that is not looked at in passing counts as so many.
const LOOKS: u32 = 3;
/// GPUs left in the whole, which is not counted: more than anybody asks for.
const PLENTY: u32 = u32::MAX / 2;

/// Kind and room of every ask of a bidder that is bound to rooms.
pub(super) type Places = SmallVec<[(u16, u16); 4]>;

/// A bidder, and which of its asks.
type Place = (usize, usize);

/// Asks in rooms, some of which may be taken back for a while.
#[derive(Debug)]
pub(super) struct Floor<'a> {
    rooms: &'a Rooms,
    /// What every bidder has; of those that were taken back, what they had.
    places: Vec<Places>,
    /// GPUs left in every room, and when nothing was taken back.
    left: Vec<u32>,
    settled: Vec<u32>,
    /// By kind: whether one more fits when nothing is taken back.
    open: Vec<bool>,
    /// By kind, once there was need: the asks in its way when nothing is taken back, and the room that
    /// it has without.
    in_the_way: Vec<Option<Vec<(Place, u16)>>>,
    /// Bidders whose asks were taken back, the rooms of these with those around them, and by level the
    /// least that was left in one.
    taken_back: SmallVec<[usize; 4]>,
    freed: Vec<u16>,
    /// By room: whether it is among these.
    is_freed: Vec<bool>,
    shortest: [u32; 4],
    /// What was done since.
    done: Vec<Done>,
    /// Rooms and asks that were looked at.
    pub(super) looks: u32,
}

/// What can be undone.
#[derive(Clone, Copy, Debug)]
enum Done {
    /// An ask of a kind, and its room.
    Put(u16, u16),
    /// An ask that lay in a room.
    Moved(Place, u16),
}

impl<'a> Floor<'a> {
    pub(super) fn new(rooms: &'a Rooms, places: Vec<Places>) -> Self {
        let mut left: Vec<u32> = rooms.all.iter().map(|room| room.free).collect();
        left[usize::from(WHOLE)] = PLENTY;
        let kinds = rooms.kinds.len();
        let mut floor = Self {
            rooms,
            places,
            left,
            settled: Vec::new(),
            open: vec![false; kinds],
            in_the_way: vec![None; kinds],
            taken_back: SmallVec::new(),
            freed: Vec::new(),
            is_freed: vec![false; rooms.all.len()],
            shortest: [PLENTY; 4],
            done: Vec::new(),
            looks: 0,
        };
        for bidder in 0..floor.places.len() {
            floor.lay(bidder);
        }
        floor.settle();
        floor
    }

    /// What every bidder has.
    pub(super) fn into_places(self) -> Vec<Places> {
        self.places
    }

    /// Takes back what a bidder has.
    pub(super) fn take_back(&mut self, bidder: usize) {
        self.taken_back.push(bidder);
        for at in 0..self.places[bidder].len() {
            let (kind, room) = self.places[bidder][at];
            self.give(kind, room);
            for part in *self.path(room) {
                let level = self.rooms.all[usize::from(part)].level as usize;
                self.shortest[level] = self.shortest[level].min(self.settled[usize::from(part)]);
                let is_freed = &mut self.is_freed[usize::from(part)];
                if part != WHOLE && !*is_freed {
                    *is_freed = true;
                    self.freed.push(part);
                }
            }
        }
    }

    fn forget_freed(&mut self) {
        self.freed.drain(..).for_each(|part| self.is_freed[usize::from(part)] = false);
        self.shortest = [PLENTY; 4];
    }

    /// Undoes all, and gives what was taken back to those who had it.
    pub(super) fn restore(&mut self) {
        self.undo(0);
        while let Some(bidder) = self.taken_back.pop() {
            self.lay(bidder);
        }
        self.forget_freed();
    }

    /// Puts an ask where it fits best, if need be in the place of one that moves; whether it could.
    pub(super) fn put(&mut self, kind: u16) -> bool {
        let Some(room) = self.best(kind).or_else(|| self.make_way(kind)) else { return false };
        self.take(kind, room);
        self.done.push(Done::Put(kind, room));
        true
    }

    /// How many things were done.
    pub(super) fn done(&self) -> usize {
        self.done.len()
    }

    /// Undoes all but the first so many things that were done.
    pub(super) fn undo(&mut self, but: usize) {
        while self.done.len() > but {
            match self.done.pop() {
                Some(Done::Put(kind, room)) => self.give(kind, room),
                Some(Done::Moved((bidder, at), from)) => {
                    let (kind, room) = self.places[bidder][at];
                    self.give(kind, room);
                    self.take(kind, from);
                    self.places[bidder][at].1 = from;
                }
                None => return,
            }
        }
    }

    /// For good: what was put belongs to these bidders, so many asks each, in the order in which they
    /// were put, in the place of what was taken back.
    pub(super) fn keep(&mut self, owners: impl Iterator<Item = (usize, usize)>) {
        let mut put = std::mem::take(&mut self.done).into_iter().filter_map(|done| match done {
            Done::Put(kind, room) => Some((kind, room)),
            Done::Moved(..) => None,
        });
        for (bidder, asks) in owners {
            self.places[bidder] = put.by_ref().take(asks).collect();
        }
        self.taken_back.clear();
        self.forget_freed();
        self.settle();
    }

    /// Learns what fits as things are.
    fn settle(&mut self) {
        self.settled.clone_from(&self.left);
        for (open, kind) in self.open.iter_mut().zip(&self.rooms.kinds) {
            let fits = |path: &[u16; 3]| least(&self.left, *path) >= kind.gpus;
            *open = kind.paths.iter().any(fits);
            self.looks += kind.paths.len() as u32 / 2;
        }
        self.in_the_way.fill(None);
    }

    fn kind(&self, kind: u16) -> &'a Kind {
        &self.rooms.kinds[usize::from(kind)]
    }

    fn path(&self, room: u16) -> &'a [u16; 3] {
        &self.rooms.all[usize::from(room)].path
    }

    fn lay(&mut self, bidder: usize) {
        for at in 0..self.places[bidder].len() {
            let (kind, room) = self.places[bidder][at];
            self.take(kind, room);
        }
    }

    fn give(&mut self, kind: u16, room: u16) {
        let gpus = self.kind(kind).gpus;
        self.looks += LOOKS;
        self.rooms.around(room).iter().for_each(|room| self.left[*room] += gpus);
    }

    fn take(&mut self, kind: u16, room: u16) {
        let gpus = self.kind(kind).gpus;
        self.looks += LOOKS;
        self.rooms.around(room).iter().for_each(|room| self.left[*room] -= gpus);
    }

    /// The room that an ask fits best: by the GPUs left in it, in the part around it, then that part
    /// and the room by number.
    fn best(&mut self, kind: u16) -> Option<u16> {
        let Kind { paths, rooms, .. } = self.kind(kind);
        let few = LOOKS * self.freed.len() as u32;
        let all = paths.len() as u32;
        if few > all || self.open[usize::from(kind)] || self.opens_inside(kind) {
            self.looks += all;
            return self.best_of(kind, paths.iter());
        }
        self.looks += few;
        let own = self.freed.iter().filter(|room| rooms.binary_search(room).is_ok());
        self.best_of(kind, own.map(|room| self.path(*room)))
    }

    fn best_of<'b>(&self, kind: u16, paths: impl Iterator<Item = &'b [u16; 3]>) -> Option<u16> {
        let gpus = self.kind(kind).gpus;
        let mut best = u64::MAX;
        for path in paths {
            let here = self.left[usize::from(path[0])];
            if here < gpus || least(&self.left, *path) < gpus {
                continue;
            }
            let around = self.left[usize::from(path[1])];
            let left = |left: u32| u64::from(left.min(u32::from(u16::MAX)));
            let parts = [left(here), left(around), path[1].into(), path[0].into()];
            best = best.min(parts.iter().fold(0, |fit, part| fit << 16 | part));
        }
        (best != u64::MAX).then_some(best as u16)
    }

    /// Whether a part that was short had something taken back, and may have rooms of a kind inside it.
    fn opens_inside(&self, kind: u16) -> bool {
        let Kind { gpus, within, .. } = self.kind(kind);
        self.shortest[within.level as usize + 1..].iter().any(|least| least < gpus)
    }

    /// Moves an ask that lies in the way of one of a kind: the room that this has then.
    fn make_way(&mut self, kind: u16) -> Option<u16> {
        let at = usize::from(kind);
        let found = self.in_the_way[at].take().unwrap_or_else(|| self.find_in_the_way(kind));
        let here = found.iter().filter(|((bidder, _), _)| !self.taken_back.contains(bidder));
        let tried: SmallVec<[(Place, u16); TRIES]> = here.take(TRIES).copied().collect();
        self.in_the_way[at] = Some(found);
        tried.into_iter().find(|(place, to)| self.moves(kind, *place, *to)).map(|(_, to)| to)
    }

    /// The asks that are in the way of one of a kind when nothing is taken back, those first of whose
    /// kind one more fits, and the room that it has without.
    fn find_in_the_way(&mut self, kind: u16) -> Vec<(Place, u16)> {
        let wanted = self.kind(kind);
        self.looks += LOOKS * (wanted.paths.len() + self.places.len()) as u32;
        // By the innermost part that is short: the least that is missing, and in which room.
        let mut missing = vec![(u32::MAX, 0); self.rooms.all.len()];
        for path in &wanted.paths {
            let short = path.iter().find(|room| self.settled[usize::from(**room)] < wanted.gpus);
            if let Some(short) = short {
                let lacks = wanted.gpus - least(&self.settled, *path);
                let known = &mut missing[usize::from(*short)];
                *known = (lacks, path[0]).min(*known);
            }
        }
        let mut found = Vec::new();
        for (bidder, places) in self.places.iter().enumerate() {
            for (at, (other, from)) in places.iter().enumerate() {
                let enough = |part: &&(u32, u16)| part.0 <= self.kind(*other).gpus;
                let mut parts = self.path(*from).iter().map(|part| &missing[usize::from(*part)]);
                if let Some((_, to)) =
                    parts.find(enough).filter(|_| self.kind(*other).rooms.len() > 1)
                {
                    found.push((!self.open[usize::from(*other)], (bidder, at), *to));
                }
            }
        }
        found.sort_by_key(|(closed, ..)| *closed);
        found.into_iter().map(|(_, place, to)| (place, to)).collect()
    }

    /// Moves an ask, if it fits elsewhere and one of the kind then fits in this room; whether it did.
    fn moves(&mut self, kind: u16, (bidder, at): Place, to: u16) -> bool {
        let (other, from) = self.places[bidder][at];
        self.give(other, from);
        if least(&self.left, *self.path(to)) >= self.kind(kind).gpus {
            self.take(kind, to);
            let elsewhere = self.best(other);
            self.give(kind, to);
            if let Some(elsewhere) = elsewhere {
                self.take(other, elsewhere);
                self.places[bidder][at].1 = elsewhere;
                self.done.push(Done::Moved((bidder, at), from));
                return true;
            }
        }
        self.take(other, from);
        false
    }
}

/// What is left in a room and in those around it.
fn least(left: &[u32], path: [u16; 3]) -> u32 {
    let [here, around, beyond] = path.map(|room| left[usize::from(room)]);
    here.min(around).min(beyond)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::bid::Ask;
    use super::*;
    use crate::cluster::{Chunks, FreeSet, Locality, MachineSpec, Topology, Within};

    /// Asks of so many GPUs in one part of a level, each a kind of its own.
    fn rooms(specs: &[MachineSpec], asks: &[(u32, Locality)]) -> Rooms {
        let offer = FreeSet::full(Arc::new(Topology::new(specs).expect("valid")));
        let chunks = Chunks::of(&offer, &[], &[]);
        let mut rooms = Rooms::of(&offer);
        for (gpus, level) in asks {
            let ask = Ask { job: 0, gpus: *gpus, within: Within::from(*level), near: None };
            rooms.kind(&offer, &chunks, &ask);
        }
        rooms
    }

    fn machine(rack: u32, gpus: u32) -> MachineSpec {
        MachineSpec { rack, gpus, slot_gpus: 2 }
    }

    #[test]
    fn an_ask_moves_out_of_the_way_of_one_that_fits_nowhere_else() {
        let asks = [(2, Locality::Machine), (4, Locality::Machine), (3, Locality::Machine)];
        let rooms = rooms(&[machine(0, 4), machine(0, 2)], &asks);
        let whole = rooms.kinds[1].rooms[0];
        let mut floor = Floor::new(&rooms, vec![[(0, whole)].into_iter().collect(), Places::new()]);
        assert!(floor.put(1) && !floor.put(2));
        let other = rooms.kinds[0].rooms[1];
        assert_eq!(floor.places[0][..], [(0, other)]);
        floor.keep([(1, 1)].into_iter());
        assert_eq!(floor.places[1][..], [(1, whole)]);
        // Nothing else moves now: all is taken.
        assert!(!floor.put(0));
        floor.take_back(0);
        assert!(floor.put(0) && !floor.put(0));
        floor.restore();
        assert_eq!(floor.into_places()[0][..], [(0, other)]);
    }

    #[test]
    fn no_room_is_overfull_and_what_is_undone_is_as_it_was() {
        let mut state = 11_u64;
        let mut below = |limit: usize| {
            state = state * 48_271 % 0x7fff_ffff;
            (state % limit as u64) as usize
        };
        let asks =
            [1, 2, 3, 4, 6].map(|gpus| [Locality::Machine, Locality::Rack].map(|l| (gpus, l)));
        let specs = [machine(0, 4), machine(0, 3), machine(1, 4), machine(1, 6), machine(2, 2)];
        let rooms = rooms(&specs, asks.as_flattened());
        let (kinds, mut moved) = (rooms.kinds.len(), 0);
        let mut floor = Floor::new(&rooms, vec![Places::new(); 4]);
        for round in 0..2_000 {
            let before = (floor.left.clone(), floor.places.clone());
            let owner = below(4);
            floor.take_back(owner);
            let put = (0..3).filter(|_| floor.put(below(kinds) as u16)).count();
            moved += floor.done.len() - put;
            if below(3) == 0 {
                floor.keep([(owner, put)].into_iter());
                let mut left: Vec<u32> = rooms.all.iter().map(|room| room.free).collect();
                left[usize::from(WHOLE)] = PLENTY;
                for (kind, room) in floor.places.iter().flatten() {
                    assert!(rooms.kinds[usize::from(*kind)].rooms.contains(room));
                    let gpus = rooms.kinds[usize::from(*kind)].gpus;
                    rooms.around(*room).iter().for_each(|room| left[*room] -= gpus);
                }
                assert_eq!(floor.left, left, "round {round}");
            } else {
                floor.restore();
                assert!(before == (floor.left.clone(), floor.places.clone()), "round {round}");
            }
        }
        assert!(moved > 100, "{moved}");
    }
}
