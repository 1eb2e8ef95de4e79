//! Big gangs: GPUs set aside for one that has waited too long.
//!
//! One gang at a time, the one that has waited longest, is promised GPUs and an instant: the first at
//! which enough leases will have ended. Until then others may have them, but no lease on them that
//! begins or goes on lasts beyond that instant. So nothing stands idle, and the wait of the gang is
//! bounded: with aligned leases all end together, with rolling ones within a lease.

use crate::cause::Cause;
use crate::cause::EndedBy;
use crate::eviction::{Loss, take_back};
use crate::promise::Reservation;
use crate::seats::WHOLE_MILLI;
use crate::state::{JobPhase, State};
use crate::tenure::Tenure;
use crate::view::View;
use themis_core::cluster::FreeSet;

/// Starts the promised job when its time has come, and promises GPUs to the next one.
pub(crate) fn keep_promises(state: &mut State<'_>) {
    let Some(after_us) = state.settings.reserve_after_us else { return };
    let made = state.reservation.take().filter(|made| can_be_kept(state, made));
    let Some(made) = made.or_else(|| promise(state, after_us)) else { return };
    if made.at_us <= state.now_us {
        start(state, made);
    } else {
        state.reservation = Some(made);
    }
}

/// Ends leases on promised GPUs in time; after a decision.
pub(crate) fn cut_leases(state: &mut State<'_>) {
    let Some(made) = &state.reservation else { return };
    let beside = others_on_their_machines(state, made);
    for gpu in made.gpus.iter().chain(&beside) {
        if let Some(app) = state.tenures.cut(*gpu, made.at_us) {
            state.expiries.plan(made.at_us, app);
        }
    }
}

/// GPUs on the machines of those promised, on which somebody takes of what the promised ones need
/// too: last ones first.
fn others_on_their_machines(state: &State<'_>, made: &Reservation) -> Vec<u32> {
    if !state.topology.limits(state.needs_of(made.job)) {
        return Vec::new();
    }
    let machines = state.tenures.bundle(&made.gpus).by_machine(&state.topology);
    let machines: Vec<_> = machines.into_iter().map(|(machine, _)| machine).collect();
    let mut others = state.tenures.taking(&machines);
    others.retain(|gpu| made.gpus.binary_search(gpu).is_err());
    others
}

/// Whether a job waits for the cluster, and not for its own app or tenant.
fn waits(state: &State<'_>, job: u32) -> bool {
    let Some(run) = state.jobs.get(job as usize) else { return false };
    let spec = &state.workload.jobs[job as usize];
    let app = &state.apps[spec.app as usize];
    let tenant = state.workload.apps[spec.app as usize].tenant;
    run.phase == JobPhase::Open
        && run.gpus.is_empty()
        && app.cap - app.gpus >= spec.gang
        && state.rooms().get(tenant as usize).is_none_or(|room| *room >= spec.gang)
}

fn can_be_kept(state: &State<'_>, made: &Reservation) -> bool {
    waits(state, made.job) && !made.gpus.iter().any(|gpu| state.tenures.is_withdrawn(*gpu))
}

/// A promise to the gang of two or more that has waited longest, if it has waited too long and the
/// cluster has GPUs enough. Ties: by number.
fn promise(state: &mut State<'_>, after_us: i64) -> Option<Reservation> {
    let nothing = FreeSet::empty(state.topology.clone());
    let overdue = state.waiting.iter().filter_map(|(_, job)| {
        let since_us = state.jobs[*job as usize].switched_us;
        let due = state.workload.jobs[*job as usize].gang > 1 && waits(state, *job);
        (due && state.now_us - since_us >= after_us).then_some((since_us, *job))
    });
    let mut overdue: Vec<(i64, u32)> = overdue.collect();
    overdue.sort_unstable();
    let made = overdue.into_iter().find_map(|(_, job)| place(state, &nothing, job))?;
    let run = &mut state.jobs[made.job as usize];
    run.promised_us.get_or_insert(made.at_us);
    Some(made)
}

/// The first instant at which leases on enough GPUs of one pool have ended, and the GPUs that suit
/// the job best then.
fn place(state: &State<'_>, nothing: &FreeSet, number: u32) -> Option<Reservation> {
    let job = View::new(state, nothing).job(number);
    let gang = job.gang as usize;
    let ends = |types: themis_core::cluster::TypeSet| {
        let topology = &state.topology;
        let of_types = move |gpu: &u32| {
            types.has(topology.type_of(topology.machine_of(state.tenures.slot_of(*gpu))))
        };
        let gpus = (0..topology.gpus()).filter(|gpu| !state.tenures.is_withdrawn(*gpu));
        let mut ends: Vec<(i64, u32)> =
            gpus.filter(of_types).map(|g| (free_at(state, g), g)).collect();
        ends.sort_unstable();
        ends
    };
    let pools = job.speeds.pools().iter().map(|pool| ends(pool.types));
    let first = |ends: Vec<(i64, u32)>| {
        let mut instants: Vec<i64> =
            ends.get(gang - 1..)?.iter().map(|(at_us, _)| *at_us).collect();
        instants.dedup(); // the first will do, unless machines lack what GPUs need beside
        instants.into_iter().find_map(|at_us| {
            let by_then = ends.iter().take_while(|(end_us, _)| *end_us <= at_us);
            let by_then: Vec<u32> = by_then.map(|(_, gpu)| *gpu).collect();
            let bundle = job.claim(&state.tenures.only(&by_then), job.gang)?;
            Some((at_us, by_then, bundle))
        })
    };
    let (at_us, by_then, bundle) = pools.filter_map(first).min_by_key(|(at_us, ..)| *at_us)?;
    let mut gpus = Vec::with_capacity(gang);
    for (slot, count) in bundle.iter() {
        let of_slot = by_then.iter().filter(|gpu| state.tenures.slot_of(**gpu) == slot);
        gpus.extend(of_slot.take(count as usize));
    }
    gpus.sort_unstable();
    Some(Reservation { job: number, gpus, at_us })
}

/// When a GPU is free if nobody gets it meanwhile.
fn free_at(state: &State<'_>, gpu: u32) -> i64 {
    state.tenures.of(gpu).map_or(state.now_us, |_| state.lease_end(gpu))
}

/// Takes the promised GPUs from whoever holds them, and begins.
fn start(state: &mut State<'_>, made: Reservation) {
    let others = others_on_their_machines(state, &made);
    let Reservation { job, gpus, .. } = made;
    let needs = state.needs_of(job);
    take_back(state, &Loss { gpus: gpus.clone(), why: EndedBy::Expired });
    let bundle = state.tenures.bundle(&gpus);
    for other in others {
        if state.tenures.free().allows(needs, &bundle) {
            break;
        }
        take_back(state, &Loss { gpus: vec![other], why: EndedBy::Expired });
    }
    let app = state.workload.jobs[job as usize].app;
    let (start_us, expiry_us) = (state.now_us, state.clock.expiry(state.now_us, 1.0));
    let (cause, milli) = (Cause::Reservation, WHOLE_MILLI);
    let tenure = Tenure { app, start_us, expiry_us, cause, renewals: 0, milli };
    state.tenures.grant(&gpus, tenure, needs);
    state.expiries.plan(expiry_us, app);
    state.assign(job, gpus);
}
