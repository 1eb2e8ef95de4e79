//! Jobs that use a share of a GPU, and the GPUs on which they sit together.
//!
//! The first seat of such a GPU is that of its holder, to whom it is leased; the others are guests'.
//! Shares are thousandths of one GPU and are never pooled over several.

use std::collections::{BTreeMap, BTreeSet};

use themis_core::cluster::Host;

/// Thousandths of a whole GPU.
pub(crate) const WHOLE_MILLI: u32 = 1000;

/// A job's share of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    pub(crate) job: u32,
    pub(crate) app: u32,
    pub(crate) milli: u32,
    /// What it takes of the machine of a GPU.
    pub(crate) needs: Host,
    pub(crate) since_us: i64,
}

/// The GPUs that are held for shares.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seats {
    /// By GPU, the holder first, then guests by age. Never empty.
    taken: BTreeMap<u32, Vec<Seat>>,
    /// (thousandths left, GPU), of those with some left.
    room: BTreeSet<(u32, u32)>,
}

fn left(seats: &[Seat]) -> u32 {
    WHOLE_MILLI - seats.iter().map(|seat| seat.milli).sum::<u32>()
}

impl Seats {
    /// The most that a GPU has left.
    pub(crate) fn most_room(&self) -> u32 {
        self.room.last().map_or(0, |(room, _)| *room)
    }

    /// The GPU with the least room that suffices, of those that will do; ties: the lowest number.
    /// Cost: O(log GPUs) for each that will not do.
    pub(crate) fn tightest(&self, milli: u32, will_do: impl Fn(u32) -> bool) -> Option<u32> {
        let mut roomy = self.room.range((milli, 0)..).map(|(_, gpu)| *gpu);
        roomy.find(|gpu| will_do(*gpu))
    }

    /// Seats a job, behind those who sit there.
    pub(crate) fn sit(&mut self, gpu: u32, seat: Seat) {
        self.change(gpu, |seats| seats.push(seat));
    }

    /// Takes a guest's seat; `None` if the job is none there.
    pub(crate) fn leave(&mut self, gpu: u32, job: u32) -> Option<Seat> {
        let at = self.place(gpu, job).filter(|at| *at > 0)?;
        let mut left = None;
        self.change(gpu, |seats| left = Some(seats.remove(at)));
        left
    }

    /// Takes the holder's seat; the oldest guest, who holds the GPU from now on.
    pub(crate) fn pass_on(&mut self, gpu: u32) -> Option<Seat> {
        if !self.taken.contains_key(&gpu) {
            return None;
        }
        self.change(gpu, |seats| {
            seats.remove(0);
        });
        self.taken.get(&gpu).map(|seats| seats[0])
    }

    /// Whether a job is a guest on a GPU.
    pub(crate) fn is_guest(&self, gpu: u32, job: u32) -> bool {
        self.place(gpu, job).is_some_and(|at| at > 0)
    }

    /// The seats of a GPU, the holder's first; none for one that is held whole.
    pub(crate) fn on(&self, gpu: u32) -> &[Seat] {
        self.taken.get(&gpu).map_or(&[], Vec::as_slice)
    }

    fn place(&self, gpu: u32, job: u32) -> Option<usize> {
        self.on(gpu).iter().position(|seat| seat.job == job)
    }

    fn change(&mut self, gpu: u32, how: impl FnOnce(&mut Vec<Seat>)) {
        let seats = self.taken.entry(gpu).or_default();
        self.room.remove(&(left(seats), gpu));
        how(seats);
        let room = left(seats);
        if seats.is_empty() {
            self.taken.remove(&gpu);
        } else if room > 0 {
            self.room.insert((room, gpu));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_goes_where_the_least_room_is_left() {
        let mut seats = Seats::default();
        let seat = |job, milli| Seat { job, app: 0, milli, needs: Host::NONE, since_us: 0 };
        seats.sit(3, seat(0, 500));
        seats.sit(1, seat(1, 400));
        seats.sit(2, seat(2, 500));
        assert_eq!((seats.most_room(), seats.tightest(300, |_| true)), (600, Some(2)));
        assert_eq!(seats.tightest(300, |gpu| gpu != 2), Some(3));
        assert_eq!((seats.tightest(550, |_| true), seats.tightest(601, |_| true)), (Some(1), None));
        seats.sit(2, seat(7, 500));
        assert_eq!(seats.tightest(100, |gpu| gpu == 2), None);
        assert_eq!((seats.is_guest(2, 7), seats.is_guest(2, 2)), (true, false));
        assert_eq!((seats.leave(2, 2), seats.leave(2, 9)), (None, None));
        assert_eq!(seats.pass_on(2), Some(seat(7, 500)));
        assert_eq!((seats.pass_on(2), seats.on(2)), (None, [].as_slice()));
        assert_eq!(seats.pass_on(2), None);
    }
}
