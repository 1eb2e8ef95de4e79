//! Which GPU is whose: identities, leases, and what is free.

use std::sync::Arc;

use crate::cause::{Cause, EndedBy};
use crate::log::{LeaseLog, LeaseRow};
use crate::seats::{Seat, Seats, WHOLE_MILLI};
use themis_core::cluster::{Bundle, FreeSet, Host, Topology};
use themis_core::{MachineId, SlotId};

/// An app's lease on one GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tenure {
    pub(crate) app: u32,
    pub(crate) start_us: i64,
    /// The first end; a lease that nobody competed for goes on (see `lease_clock.rs`).
    pub(crate) expiry_us: i64,
    pub(crate) cause: Cause,
    pub(crate) renewals: u32,
    /// Thousandths of the GPU that it is for.
    pub(crate) milli: u32,
}

/// Every GPU's owner, and the index of what is free.
#[derive(Clone, Debug)]
pub(crate) struct Tenures {
    topology: Arc<Topology>,
    first_gpu: Vec<u32>,
    slot_of: Vec<SlotId>,
    owner: Vec<Option<Tenure>>,
    /// GPUs that the cluster lacks, or loses as soon as nobody holds them.
    withdrawn: Vec<bool>,
    /// Those that it has: all but the withdrawn ones that nobody holds.
    gpus: u32,
    free: FreeSet,
    /// What the holder of each GPU takes of its machine; empty where no machine is limited.
    needs: Vec<Host>,
    /// Who shares a GPU with whom.
    pub(crate) seats: Seats,
}

impl Tenures {
    pub(crate) fn new(topology: Arc<Topology>) -> Self {
        let mut first_gpu = Vec::with_capacity(topology.slots());
        let mut slot_of = Vec::with_capacity(topology.gpus() as usize);
        for slot in (0..topology.slots() as u32).map(SlotId) {
            first_gpu.push(slot_of.len() as u32);
            slot_of.extend((0..topology.slot_gpus(slot)).map(|_| slot));
        }
        let owner = vec![None; slot_of.len()];
        let (withdrawn, gpus) = (vec![false; slot_of.len()], topology.gpus());
        let free = FreeSet::full(Arc::clone(&topology));
        let limited = if topology.host().is_empty() { 0 } else { slot_of.len() };
        let (needs, seats) = (vec![Host::NONE; limited], Seats::default());
        Self { topology, first_gpu, slot_of, owner, withdrawn, gpus, free, needs, seats }
    }

    /// GPUs that the cluster has at present, those that somebody still holds among them.
    pub(crate) fn gpus(&self) -> u32 {
        self.gpus
    }

    /// Leaves a machine its first so many GPUs and withdraws the others. Returns the withdrawn ones
    /// that somebody holds.
    pub(crate) fn resize(&mut self, machine: MachineId, gpus: u32) -> Vec<u32> {
        let first = self.topology.slots_of(machine).next().map_or(0, |s| self.first_gpu[s.index()]);
        let all = first..first + self.topology.machine_gpus(machine);
        let mut held = Vec::new();
        for gpu in all {
            let at = gpu as usize;
            let goes = gpu - first >= gpus;
            let is_held = self.owner[at].is_some();
            if goes && is_held {
                held.push(gpu);
            } else if goes != self.withdrawn[at] && !is_held {
                let one: Bundle = [(self.slot_of[at], 1)].into_iter().collect();
                if goes {
                    self.free.take(&one);
                    self.gpus -= 1;
                } else {
                    self.free.give(&one);
                    self.gpus += 1;
                }
            }
            self.withdrawn[at] = goes;
        }
        held
    }

    /// True for a GPU that the cluster loses as soon as nobody holds it.
    pub(crate) fn is_withdrawn(&self, gpu: u32) -> bool {
        self.withdrawn[gpu as usize]
    }

    /// The counts of those GPUs of a list that stay.
    pub(crate) fn staying(&self, gpus: &[u32]) -> Bundle {
        let stays = gpus.iter().filter(|gpu| !self.is_withdrawn(**gpu));
        stays.map(|gpu| (self.slot_of[*gpu as usize], 1)).collect()
    }

    /// What nobody holds.
    pub(crate) fn free(&self) -> &FreeSet {
        &self.free
    }

    /// The lease on a GPU.
    pub(crate) fn of(&self, gpu: u32) -> Option<&Tenure> {
        self.owner[gpu as usize].as_ref()
    }

    /// The slot of a GPU.
    pub(crate) fn slot_of(&self, gpu: u32) -> SlotId {
        self.slot_of[gpu as usize]
    }

    /// The counts of a list of GPUs.
    pub(crate) fn bundle(&self, gpus: &[u32]) -> Bundle {
        gpus.iter().map(|gpu| (self.slot_of[*gpu as usize], 1)).collect()
    }

    /// Names GPUs for a bundle: liked ones first, then the lowest free number of each slot.
    /// GPUs are free when nobody holds them. `None` when a slot has too few.
    pub(crate) fn name(&self, bundle: &Bundle, liked: &[u32]) -> Option<Vec<u32>> {
        let mut named = Vec::with_capacity(bundle.gpus() as usize);
        for (slot, count) in bundle.iter() {
            let first = self.first_gpu[slot.index()];
            let all = first..first + self.topology.slot_gpus(slot);
            let open = |gpu: &u32| self.owner[*gpu as usize].is_none() && !self.is_withdrawn(*gpu);
            let known = all.clone().filter(|gpu| open(gpu) && liked.binary_search(gpu).is_ok());
            let other = all.filter(|gpu| open(gpu) && liked.binary_search(gpu).is_err());
            let before = named.len();
            named.extend(known.chain(other).take(count as usize));
            if named.len() - before < count as usize {
                return None;
            }
        }
        named.sort_unstable();
        Some(named)
    }

    /// Gives free GPUs to an app, for a job that takes so much of their machines.
    pub(crate) fn grant(&mut self, gpus: &[u32], tenure: Tenure, needs: Host) {
        for gpu in gpus {
            let owner = &mut self.owner[*gpu as usize];
            debug_assert!(owner.is_none(), "GPU {gpu} is granted twice");
            *owner = Some(tenure);
        }
        self.free.take(&self.bundle(gpus));
        for gpu in gpus.iter().filter(|_| !needs.is_none()) {
            self.set_needs(*gpu, needs);
        }
    }

    /// Lets the holder of a GPU take so much of its machine from now on.
    fn set_needs(&mut self, gpu: u32, needs: Host) {
        if let Some(known) = self.needs.get_mut(gpu as usize) {
            let before = std::mem::replace(known, needs);
            let one: Bundle = [(self.slot_of[gpu as usize], 1)].into_iter().collect();
            self.free.give_host(before, &one);
            self.free.take_host(needs, &one);
        }
    }

    /// Adds GPUs whose leases have just ended to an offer, with what their holders take of their
    /// machines.
    pub(crate) fn offer_again(&self, offer: &mut FreeSet, gpus: &[u32]) {
        offer.give(&self.staying(gpus));
        if !self.needs.is_empty() {
            for gpu in gpus {
                offer.give_host(self.needs[*gpu as usize], &self.bundle(&[*gpu]));
            }
        }
    }

    /// A set in which just these GPUs are free, with what all who sit on them take of their machines
    /// beside what nobody takes.
    pub(crate) fn only(&self, gpus: &[u32]) -> FreeSet {
        let free = FreeSet::of(Arc::clone(&self.topology), &self.bundle(gpus));
        if self.needs.is_empty() {
            return free;
        }
        let mut free = free.with_host(self.free.host().to_vec());
        for gpu in gpus {
            let one = self.bundle(&[*gpu]);
            free.give_host(self.needs[*gpu as usize], &one);
            let guests = self.seats.on(*gpu).iter().skip(1);
            guests.for_each(|seat| free.give_host(seat.needs, &one));
        }
        free
    }

    /// Whether the machine of a GPU has left what a seat on it takes.
    pub(crate) fn hosts(&self, gpu: u32, needs: Host) -> bool {
        let machine = self.topology.machine_of(self.slot_of(gpu));
        self.free.hosts(machine, 1, needs)
    }

    /// The GPUs of some machines on which somebody takes something of them, last ones first.
    pub(crate) fn taking(&self, machines: &[MachineId]) -> Vec<u32> {
        let gpus = machines.iter().flat_map(|machine| self.topology.slots_of(*machine));
        let gpus = gpus.flat_map(|slot| {
            let first = self.first_gpu[slot.index()];
            first..first + self.topology.slot_gpus(slot)
        });
        let takes = |gpu: &u32| {
            let guests = self.seats.on(*gpu).iter().skip(1);
            let holder = self.needs.get(*gpu as usize).is_some_and(|needs| !needs.is_none());
            holder || guests.into_iter().any(|seat| !seat.needs.is_none())
        };
        let mut taking: Vec<u32> = gpus.filter(takes).collect();
        taking.sort_unstable_by(|a, b| b.cmp(a));
        taking
    }

    /// Ends the lease on a GPU at an instant at the latest; the app of a lease that this shortens.
    pub(crate) fn cut(&mut self, gpu: u32, at_us: i64) -> Option<u32> {
        let tenure = self.owner[gpu as usize].as_mut().filter(|t| t.expiry_us > at_us)?;
        tenure.expiry_us = at_us;
        Some(tenure.app)
    }

    /// Takes GPUs back and logs their leases, without a word on whether they come again. Returns
    /// those that guests hold from now on, for the rest of the lease.
    pub(crate) fn release(
        &mut self,
        gpus: &[u32],
        now_us: i64,
        why: EndedBy,
        log: &mut LeaseLog,
    ) -> Vec<u32> {
        self.close(gpus, now_us, why, log);
        let (mut freed, mut passed) = (Vec::with_capacity(gpus.len()), Vec::new());
        for gpu in gpus {
            let heir = self.seats.pass_on(*gpu);
            if !self.needs.is_empty() {
                self.set_needs(*gpu, Host::NONE);
                // What the heir takes is taken already.
                self.needs[*gpu as usize] = heir.map_or(Host::NONE, |seat| seat.needs);
            }
            let owner = &mut self.owner[*gpu as usize];
            let expiry_us = owner.map_or(i64::MAX, |tenure| tenure.expiry_us);
            *owner = heir.map(|seat| guest(&seat, expiry_us));
            (if heir.is_some() { &mut passed } else { &mut freed }).push(*gpu);
        }
        let staying = self.staying(&freed);
        self.gpus -= freed.len() as u32 - staying.gpus();
        self.free.give(&staying);
        passed
    }

    /// Takes a guest's seat on a GPU and logs its lease; false if the job is no guest there.
    pub(crate) fn leave(
        &mut self,
        gpu: u32,
        job: u32,
        now_us: i64,
        why: EndedBy,
        log: &mut LeaseLog,
    ) -> bool {
        let seat = self.seats.leave(gpu, job);
        if let Some(seat) = &seat {
            self.free.give_host(seat.needs, &self.bundle(&[gpu]));
        }
        if let Some(seat) = seat.filter(|seat| seat.since_us < now_us) {
            log.push(self.row(gpu, 1, &guest(&seat, i64::MAX), now_us, why));
        }
        seat.is_some()
    }

    /// Lets a lease go on to an instant, in the same row of the log; whose it is.
    pub(crate) fn extend(&mut self, gpu: u32, expiry_us: i64) -> Option<u32> {
        let tenure = self.owner[gpu as usize].as_mut()?;
        tenure.expiry_us = expiry_us;
        Some(tenure.app)
    }

    /// Hands GPUs of an app to a job of it that uses this share of each: another share is another
    /// row of the log.
    pub(crate) fn hand_over(&mut self, gpus: &[u32], seat: Seat, log: &mut LeaseLog) {
        for gpu in gpus {
            let changes = self.of(*gpu).is_some_and(|tenure| tenure.milli != seat.milli);
            if changes {
                self.close(&[*gpu], seat.since_us, EndedBy::JobEnd, log);
            }
            if let Some(tenure) = self.owner[*gpu as usize].as_mut().filter(|_| changes) {
                (tenure.start_us, tenure.milli) = (seat.since_us, seat.milli);
            }
            self.seats.pass_on(*gpu);
            self.set_needs(*gpu, seat.needs);
            self.seat_holder(&[*gpu], seat);
        }
    }

    /// Seats a guest.
    pub(crate) fn seat_guest(&mut self, gpu: u32, seat: Seat) {
        self.free.take_host(seat.needs, &self.bundle(&[gpu]));
        self.seats.sit(gpu, seat);
    }

    /// Opens GPUs that were granted for a share to guests.
    pub(crate) fn seat_holder(&mut self, gpus: &[u32], seat: Seat) {
        if seat.milli < WHOLE_MILLI {
            for gpu in gpus {
                self.seats.sit(*gpu, seat);
            }
        }
    }

    /// Lets an app keep GPUs for another lease. Renewals in a row are one row of the log.
    pub(crate) fn renew(&mut self, gpus: &[u32], now_us: i64, expiry_us: i64, log: &mut LeaseLog) {
        let first_time = |gpu: &u32| self.of(*gpu).is_some_and(|t| t.cause != Cause::Renewal);
        let fresh: Vec<u32> = gpus.iter().copied().filter(first_time).collect();
        self.close(&fresh, now_us, EndedBy::Renewal, log);
        for gpu in gpus {
            let Some(tenure) = &mut self.owner[*gpu as usize] else { continue };
            if tenure.cause != Cause::Renewal {
                (tenure.start_us, tenure.cause) = (now_us, Cause::Renewal);
            }
            tenure.expiry_us = expiry_us;
            tenure.renewals += 1;
        }
    }

    /// Writes one row for every run of adjacent GPUs of a slot under the same lease.
    fn close(&self, gpus: &[u32], now_us: i64, why: EndedBy, log: &mut LeaseLog) {
        let mut rest = gpus;
        while let Some(first) = rest.first().copied() {
            let slot = self.slot_of[first as usize];
            let tenure = self.of(first);
            let run = rest
                .iter()
                .zip(first..)
                .take_while(|(gpu, next)| {
                    *gpu == next && self.slot_of[**gpu as usize] == slot && self.of(**gpu) == tenure
                })
                .count();
            if let Some(tenure) = tenure.filter(|tenure| tenure.start_us < now_us) {
                log.push(self.row(first, run as u32, tenure, now_us, why));
            }
            rest = &rest[run..];
        }
    }

    fn row(&self, gpu: u32, gpus: u32, tenure: &Tenure, now_us: i64, why: EndedBy) -> LeaseRow {
        let slot = self.slot_of[gpu as usize];
        let machine = self.topology.machine_of(slot);
        let first = self.topology.slots_of(machine).next().unwrap_or(slot);
        LeaseRow {
            app: tenure.app,
            machine: machine.0,
            slot: slot.0 - first.0,
            gpu_first: gpu - self.first_gpu[first.index()],
            gpus,
            start_us: tenure.start_us,
            end_us: now_us,
            cause: tenure.cause,
            renewals: tenure.renewals,
            ended_by: why,
            milli: tenure.milli,
        }
    }
}

/// A guest's lease.
fn guest(seat: &Seat, expiry_us: i64) -> Tenure {
    Tenure {
        app: seat.app,
        start_us: seat.since_us,
        expiry_us,
        cause: Cause::Shared,
        renewals: 0,
        milli: seat.milli,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use themis_core::cluster::MachineSpec;

    #[test]
    fn identities_are_lowest_first_and_rows_are_runs() {
        let machine = MachineSpec { rack: 0, gpus: 4, slot_gpus: 2 };
        let topology = Arc::new(Topology::new(&[machine; 2]).expect("valid"));
        let mut tenures = Tenures::new(topology);
        let mut log = LeaseLog::default();
        let tenure = |app| Tenure {
            app,
            start_us: 0,
            expiry_us: 100,
            cause: Cause::Policy,
            renewals: 0,
            milli: WHOLE_MILLI,
        };
        tenures.grant(&[4], tenure(0), Host::NONE);
        let bundle: Bundle = [(SlotId(2), 1), (SlotId(3), 2)].into_iter().collect();
        let named = tenures.name(&bundle, &[]).expect("free");
        assert_eq!(named, vec![5, 6, 7]);
        tenures.grant(&named, tenure(1), Host::NONE);
        assert_eq!(tenures.name(&bundle, &[]), None);
        tenures.renew(&named, 100, 200, &mut log);
        tenures.renew(&named, 200, 300, &mut log);
        tenures.release(&named, 250, EndedBy::JobEnd, &mut log);
        let rows: Vec<_> = log
            .rows()
            .iter()
            .map(|r| (r.slot, r.gpu_first, r.gpus, r.start_us, r.end_us, r.renewals))
            .collect();
        let want = vec![
            (0, 1, 1, 0, 100, 0),
            (1, 2, 2, 0, 100, 0),
            (0, 1, 1, 100, 250, 2),
            (1, 2, 2, 100, 250, 2),
        ];
        assert_eq!(rows, want);
        assert_eq!(tenures.free().total(), 7);
    }
}
