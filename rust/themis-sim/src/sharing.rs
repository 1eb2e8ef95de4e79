//! Fractions of a GPU: who sits with whom.
//!
//! A job that uses a share of a GPU joins a GPU that is held for another share where there is room:
//! nobody else could use that. Else it wants a free GPU from the policy, as any gang of one, which is
//! open to others from then on. The lease is the holder's. When it ends and somebody else wins the
//! GPU, all who sit there lose it; when nobody does, or the holder ends, the oldest guest holds it.

use crate::cause::EndedBy;
use crate::grants::{begin, go_on};
use crate::plan::Grant;
use crate::seats::Seat;
use crate::state::State;
use themis_core::cluster::{Bundle, TypeSet};

/// Seats waiting jobs where there is room: earlier submission first, then by number.
pub(crate) fn seat_waiting(state: &mut State<'_>) {
    let most = state.tenures.seats.most_room();
    if most == 0 {
        return;
    }
    let fits = |job: &u32| state.workload.jobs[*job as usize].gpu_milli <= most;
    let waiting: Vec<u32> = state.waiting.iter().map(|(_, job)| *job).filter(fits).collect();
    for job in waiting {
        if let Some(gpu) = join(state, job) {
            state.assign(job, vec![gpu]);
        }
    }
}

/// Gives a job a guest's seat: where it runs fastest, then where the least room is left, then on the
/// GPU of the lowest number. Assigning it is the caller's business.
fn join(state: &mut State<'_>, job: u32) -> Option<u32> {
    let spec = &state.workload.jobs[job as usize];
    let app = &state.apps[spec.app as usize];
    let has = state.jobs[job as usize].gpus.len() as u32;
    if !spec.is_fraction() || app.gpus - has >= app.cap || !state.quota_allows(spec.app, 1 - has) {
        return None;
    }
    let seat = state.seat_of(job);
    let on_one_of = |types: TypeSet| {
        state.tenures.seats.tightest(spec.gpu_milli, |gpu| {
            let machine = state.topology.machine_of(state.tenures.slot_of(gpu));
            // Nobody sits down where the lease is over.
            types.has(state.topology.type_of(machine))
                && !state.tenures.is_withdrawn(gpu)
                && state.lease_end(gpu) > state.now_us
                && state.tenures.hosts(gpu, seat.needs)
        })
    };
    let gpu = spec.speeds.pools().iter().find_map(|pool| on_one_of(pool.types))?;
    state.tenures.seat_guest(gpu, seat);
    Some(gpu)
}

/// Decides on GPUs whose holders' leases have ended and that guests hold now: those that grants need
/// are taken from all who sit there, the others go on for another lease. Returns who lost theirs.
pub(crate) fn vacate(
    state: &mut State<'_>,
    lapsed: &[u32],
    needed: &Bundle,
    leases: bool,
) -> Vec<u32> {
    let mut evicted = Vec::new();
    for gpu in lapsed {
        let slot = state.tenures.slot_of(*gpu);
        let seats = state.tenures.seats.on(*gpu).to_vec();
        let heir_may = seats.first().is_some_and(|seat| state.quota_allows(seat.app, 0));
        if needed.in_slot(slot) > state.tenures.free().slot(slot) || !heir_may {
            for seat in seats.iter().rev() {
                state.give_up(seat.job, &[*gpu], EndedBy::Expired);
                evicted.push(seat.job);
            }
        } else if leases {
            let expiry_us = state.clock.expiry(state.now_us, 1.0);
            if let Some(app) = state.tenures.extend(*gpu, expiry_us) {
                state.expiries.plan(expiry_us, app);
            }
        }
    }
    evicted
}

/// Sends guests away from GPUs with a new lease whose tenants hold more than their quotas: theirs is
/// over too.
pub(crate) fn dismiss(state: &mut State<'_>, renewed: &[u32]) {
    for gpu in renewed {
        let seats = state.tenures.seats.on(*gpu).to_vec();
        for seat in seats.iter().skip(1).rev() {
            if !state.quota_allows(seat.app, 0) {
                state.give_up(seat.job, &[*gpu], EndedBy::Expired);
                state.assign(seat.job, Vec::new());
            }
        }
    }
}

/// Seats the jobs with shares that a decision leaves without their GPUs: first those with grants,
/// which join others rather than open another GPU, then those that lost theirs, then those that
/// wait. Returns whether there is more to decide: a GPU that was granted is free, or a job lost
/// its seat without being asked.
pub(crate) fn seat(
    state: &mut State<'_>,
    mut granted: Vec<Grant>,
    mut evicted: Vec<u32>,
    leases: bool,
) -> bool {
    let order = |state: &State<'_>, job: u32| (state.workload.jobs[job as usize].submit_us, job);
    granted.sort_by_key(|grant| order(state, grant.job));
    evicted.sort_by_key(|job| order(state, *job));
    let mut again = !evicted.is_empty();
    for grant in &granted {
        let joined = join(state, grant.job);
        // Those who joined others may have taken what a machine had left.
        let begins = state.tenures.free().allows(state.needs_of(grant.job), &grant.bundle);
        again |= joined.is_some() || !begins;
        let gpus = match joined {
            Some(gpu) => vec![gpu],
            None if begins => begin(state, grant, leases),
            None => Vec::new(),
        };
        go_on(state, grant.job, gpus);
    }
    for job in evicted {
        let gpus = join(state, job).into_iter().collect();
        go_on(state, job, gpus);
    }
    seat_waiting(state);
    again
}

impl State<'_> {
    /// Takes GPUs from a job, which its app does not keep, and logs their leases.
    pub(crate) fn give_up(&mut self, job: u32, gpus: &[u32], why: EndedBy) {
        let mut own = gpus.to_vec();
        own.retain(|gpu| !self.leave(job, *gpu, why));
        self.release(&own, why);
    }

    /// Takes those GPUs of a job on which others stay: what is left is its app's alone.
    pub(crate) fn stand_up(&mut self, job: u32, gpus: &mut Vec<u32>, why: EndedBy) {
        gpus.retain(|gpu| {
            if self.leave(job, *gpu, why) {
                return false;
            }
            let shared = self.tenures.seats.on(*gpu).len() > 1;
            if shared {
                self.release(&[*gpu], why);
            }
            !shared
        });
    }

    fn leave(&mut self, job: u32, gpu: u32, why: EndedBy) -> bool {
        self.tenures.leave(gpu, job, self.now_us, why, &mut self.log.leases)
    }

    /// The seat that a job takes now.
    pub(crate) fn seat_of(&self, job: u32) -> Seat {
        let spec = &self.workload.jobs[job as usize];
        let (milli, needs) = (spec.gpu_milli, self.workload.needs_of(spec));
        Seat { job, app: spec.app, milli, needs, since_us: self.now_us }
    }

    /// The next end of the lease on a GPU, opposed or not.
    pub(crate) fn lease_end(&self, gpu: u32) -> i64 {
        let expiry_us = self.tenures.of(gpu).map_or(i64::MAX, |tenure| tenure.expiry_us);
        self.clock.due(expiry_us, self.now_us)
    }
}
