//! Room for what a bidder asks for, whoever has it.
//!
//! An ask goes to the room for which least is lost, and those of whom least is lost for a GPU there have
//! nothing then. Cost: O(rooms of the kind and bidders in them) an ask.

use smallvec::SmallVec;

use super::menus::Menus;
use super::packed::Packed;
use super::rooms::WHOLE;

/// Bidders that have to go.
type Out = SmallVec<[usize; 4]>;

/// A selection in which somebody makes room.
pub(super) struct Clearing<'a> {
    menus: &'a Menus,
    pub(super) packed: Packed,
    /// GPUs that nobody has, in all and by room; the whole is not counted.
    pub(super) idle: u32,
    left: Vec<u32>,
    /// By room: who has how many GPUs in it.
    of_room: Vec<SmallVec<[(usize, u32); 4]>>,
    /// Those that had to go.
    pub(super) out: Vec<usize>,
}

impl<'a> Clearing<'a> {
    /// Of a selection, of so many GPUs.
    pub(super) fn of(menus: &'a Menus, packed: Packed, gpus: u32) -> Self {
        let left: Vec<u32> = menus.rooms.all.iter().map(|room| room.free).collect();
        let of_room = vec![SmallVec::new(); left.len()];
        let mut clearing = Self { menus, packed, idle: gpus, left, of_room, out: Vec::new() };
        for bidder in 0..clearing.packed.choices.len() {
            clearing.idle -= clearing.gpus(bidder);
            for at in 0..clearing.packed.places[bidder].len() {
                let (kind, room) = clearing.packed.places[bidder][at];
                clearing.take(bidder, kind, room);
            }
        }
        clearing
    }

    /// A bidder has this choice; `None` where even so there is no room.
    pub(super) fn grant(&mut self, bidder: usize, choice: u32) -> Option<()> {
        self.give_back(bidder);
        self.packed.choices[bidder] = choice;
        let Self { menus, .. } = *self;
        let choice = &menus.of[bidder][choice as usize];
        for (kind, count) in choice.asks.iter().filter(|(kind, _)| menus.rooms.is_bound(*kind)) {
            for _ in 0..*count {
                let (room, out) = self.cheapest(bidder, *kind)?;
                out.into_iter().for_each(|other| self.send_out(other));
                self.take(bidder, *kind, room);
                self.packed.places[bidder].push((*kind, room));
            }
        }
        while self.idle < choice.gpus {
            let others = (0..self.packed.choices.len()).filter(|other| *other != bidder);
            let gpus = others.map(|other| (other, self.gpus(other)));
            let (other, _) = self.least(gpus.filter(|(_, gpus)| *gpus > 0))?;
            self.send_out(other);
        }
        self.idle -= choice.gpus;
        Some(())
    }

    fn gpus(&self, bidder: usize) -> u32 {
        self.packed.choice(self.menus, bidder).gpus
    }

    /// The room of a kind for which least is lost, and who has to go. Ties: the order of rooms.
    fn cheapest(&self, bidder: usize, kind: u16) -> Option<(u16, Out)> {
        let kind = &self.menus.rooms.kinds[usize::from(kind)];
        let mut cheapest: Option<(f64, u16, Out)> = None;
        for path in &kind.paths {
            let Some(out) = self.in_the_way(bidder, *path, kind.gpus) else { continue };
            let lost = out.iter().map(|other| self.packed.worth(self.menus, *other)).sum();
            if cheapest.as_ref().is_none_or(|(least, ..)| lost < *least) {
                cheapest = Some((lost, path[0], out));
            }
        }
        cheapest.map(|(_, room, out)| (room, out))
    }

    /// Who has to go so that so many GPUs are left in a room and those around it; `None` where a bidder
    /// is in its own way.
    fn in_the_way(&self, bidder: usize, path: [u16; 3], gpus: u32) -> Option<Out> {
        let mut out = Out::new();
        for room in path.into_iter().filter(|room| *room != WHOLE).map(usize::from) {
            let here = &self.of_room[room];
            let gone = here.iter().filter(|(other, _)| out.contains(other));
            let mut left = self.left[room] + gone.map(|(_, gpus)| gpus).sum::<u32>();
            while left < gpus {
                let stays = |(other, _): &(usize, u32)| *other != bidder && !out.contains(other);
                let (other, gpus) = self.least(here.iter().copied().filter(stays))?;
                left += gpus;
                out.push(other);
            }
        }
        Some(out)
    }

    /// Of bidders with so many GPUs in question the one of whom least is lost for each of these. Ties:
    /// the order of bidders.
    fn least(&self, bidders: impl Iterator<Item = (usize, u32)>) -> Option<(usize, u32)> {
        let each = |(bidder, gpus): (usize, u32)| {
            (self.packed.worth(self.menus, bidder) / f64::from(gpus), (bidder, gpus))
        };
        let least = bidders.map(each).min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        least.map(|(_, bidder)| bidder)
    }

    fn send_out(&mut self, bidder: usize) {
        self.give_back(bidder);
        self.out.push(bidder);
    }

    /// A bidder has nothing.
    fn give_back(&mut self, bidder: usize) {
        self.idle += self.gpus(bidder);
        self.packed.choices[bidder] = 0;
        for (kind, room) in std::mem::take(&mut self.packed.places[bidder]) {
            let gpus = self.menus.rooms.kinds[usize::from(kind)].gpus;
            for room in self.menus.rooms.around(room) {
                if room != usize::from(WHOLE) {
                    self.left[room] += gpus;
                    self.of_room[room].retain(|(other, _)| *other != bidder);
                }
            }
        }
    }

    fn take(&mut self, bidder: usize, kind: u16, room: u16) {
        let gpus = self.menus.rooms.kinds[usize::from(kind)].gpus;
        for room in self.menus.rooms.around(room) {
            if room == usize::from(WHOLE) {
                continue;
            }
            self.left[room] -= gpus;
            match self.of_room[room].iter_mut().find(|(other, _)| *other == bidder) {
                Some((_, known)) => *known += gpus,
                None => self.of_room[room].push((bidder, gpus)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Bid;
    use super::super::few::tests::{draw, solved};
    use super::super::packed::tests::assert_packs;
    use super::*;
    use crate::cluster::{Chunks, TypeSet};

    #[test]
    fn others_keep_what_they_have_but_for_those_that_have_to_go() {
        let (mut free, mut cleared) = (0, 0);
        for seed in 0..60 {
            let (offer, bidders) = draw(seed);
            let chunks = Chunks::of(&offer, &[1, 2, 3, 4], &[TypeSet::ALL]);
            let bid = |bidder| Bid::none(bidder, offer.topology()).on(&offer, &chunks, false);
            let bids: Vec<Bid<'_>> = bidders.iter().map(bid).collect();
            let (best, few) = solved(&offer, &chunks, &bids);
            let menus = &few.menus;
            let now = Packed::of(menus, offer.topology(), &bids, &best);
            for (bidder, menu) in menus.of.iter().enumerate() {
                for (at, choice) in (0..).zip(menu) {
                    let mut clearing = Clearing::of(menus, now.clone(), offer.total());
                    clearing.give_back(bidder);
                    let (idle, left) = (clearing.idle, clearing.left.clone());
                    clearing.grant(bidder, at).expect("it fits alone");
                    let Clearing { packed, out, idle: rest, .. } = clearing;
                    assert_packs(menus, &packed);
                    let gpus = |at: usize| packed.choice(menus, at).gpus;
                    assert_eq!((0..bids.len()).map(gpus).sum::<u32>() + rest, offer.total());
                    for other in (0..bids.len()).filter(|other| *other != bidder) {
                        let kept = if out.contains(&other) { 0 } else { now.choices[other] };
                        assert_eq!(packed.choices[other], kept, "seed {seed}");
                    }
                    let [(kind, 1)] = choice.asks[..] else { continue };
                    // Nobody has to go where one ask fits as things are, and only there.
                    let kind = &menus.rooms.kinds[usize::from(kind)];
                    let fits = |room: &u16| *room == WHOLE || left[usize::from(*room)] >= kind.gpus;
                    let fits = kind.paths.iter().any(|path| path.iter().all(fits));
                    assert_eq!(out.is_empty(), fits && choice.gpus <= idle, "seed {seed}");
                    free += u32::from(out.is_empty());
                    cleared += u32::from(!out.is_empty());
                }
            }
        }
        assert!(free > 100 && cleared > 100, "{free} {cleared}");
    }
}
