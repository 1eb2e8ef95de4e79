//! Carrying out a policy's plan: checked first, then all of it.

use std::collections::BTreeMap;

use crate::error::SimError;
use crate::policy::{Grant, Plan, Wishes};
use crate::settle::settle;
use crate::sharing::{dismiss, seat, vacate};
use crate::state::{JobPhase, State};
use crate::tenure::{EndedBy, Tenure};
use crate::view::View;
use themis_core::SlotId;
use themis_core::cluster::{Bundle, FreeSet, TypeSet};
use themis_core::fairness::{FilterKey, OutsideOption};

/// Refuses a plan that can't be carried out; nothing has changed then.
pub(crate) fn check(
    state: &State<'_>,
    offer: &FreeSet,
    plan: &Plan,
    policy: &str,
) -> Result<(), SimError> {
    let mut taken: BTreeMap<SlotId, u32> = BTreeMap::new();
    let mut granted: Vec<(u32, u32)> = Vec::with_capacity(plan.grants.len());
    for grant in &plan.grants {
        let refuse = |problem: String| {
            let policy = policy.to_string();
            Err(SimError::Policy { policy, app: grant.app, job: grant.job, problem })
        };
        let run = state.jobs.get(grant.job as usize);
        let spec = state.workload.jobs.get(grant.job as usize);
        let Some((run, spec)) = run.zip(spec).filter(|(_, spec)| spec.app == grant.app) else {
            return refuse("no such job of this app".into());
        };
        if run.phase != JobPhase::Open || spec.gang == 0 {
            return refuse("the job is not waiting for or running on GPUs".into());
        }
        if !(grant.lease_fraction > 0.0 && grant.lease_fraction <= 1.0) {
            return refuse(format!("{} of a lease; more than 0, at most 1", grant.lease_fraction));
        }
        let known = |slot: SlotId| slot.index() < state.topology.slots();
        if grant.bundle.is_empty() {
            return refuse("the grant names no GPU".into());
        }
        for (slot, gpus) in grant.bundle.iter() {
            if !known(slot) {
                return refuse(format!("there is no slot {}", slot.0));
            }
            let taken = taken.entry(slot).or_default();
            let left = offer.slot(slot) - *taken;
            if gpus > left {
                return refuse(format!("{gpus} GPUs of slot {}: {left} are on offer", slot.0));
            }
            *taken += gpus;
        }
        granted.push((grant.job, grant.bundle.gpus()));
    }
    granted.sort_unstable();
    for jobs in granted.chunk_by(|a, b| a.0 == b.0) {
        let job = jobs[0].0;
        let spec = &state.workload.jobs[job as usize];
        let run = &state.jobs[job as usize];
        let kept = (run.gpus.len() - run.expired.len()) as u32;
        let total = kept + jobs.iter().map(|(_, gpus)| gpus).sum::<u32>();
        if total < spec.gang || total > run.max {
            let problem = format!("{total} GPUs in all; {} to {}", spec.gang, run.max);
            let policy = policy.to_string();
            return Err(SimError::Policy { policy, app: spec.app, job, problem });
        }
    }
    check_types(state, plan, policy)?;
    check_caps(state, &granted, policy)?;
    check_quotas(state, &granted, policy)
}

/// Refuses GPUs of types that a job may not use, or not together with those that it keeps.
fn check_types(state: &State<'_>, plan: &Plan, policy: &str) -> Result<(), SimError> {
    let mut types: BTreeMap<u32, TypeSet> = BTreeMap::new();
    let speeds = |job: u32| &state.workload.jobs[job as usize].speeds;
    for grant in plan.grants.iter().filter(|grant| !speeds(grant.job).are_alike()) {
        let run = &state.jobs[grant.job as usize];
        let kept = run.gpus.iter().filter(|gpu| run.expired.binary_search(gpu).is_err());
        let kept = kept.map(|gpu| (state.tenures.slot_of(*gpu), 1));
        let all: Bundle = kept.chain(grant.bundle.iter()).collect();
        let types = types.entry(grant.job).or_insert(TypeSet::NONE);
        *types = types.union(state.topology.types_of(&all));
        if speeds(grant.job).on(*types) <= 0.0 {
            let problem = "the job may not run on GPUs of these types".to_string();
            let (app, job) = (grant.app, grant.job);
            return Err(SimError::Policy { policy: policy.to_string(), app, job, problem });
        }
    }
    Ok(())
}

/// Refuses more GPUs for an app than it may hold; `granted` is sorted by job.
fn check_caps(state: &State<'_>, granted: &[(u32, u32)], policy: &str) -> Result<(), SimError> {
    let app_of = |job: u32| state.workload.jobs[job as usize].app;
    for jobs in granted.chunk_by(|a, b| app_of(a.0) == app_of(b.0)) {
        let (job, app) = (jobs[0].0, app_of(jobs[0].0));
        let run = &state.apps[app as usize];
        let total = run.gpus - run.expired + jobs.iter().map(|(_, gpus)| gpus).sum::<u32>();
        if total > run.cap {
            let problem = format!("{total} GPUs for the app; at most {}", run.cap);
            return Err(SimError::Policy { policy: policy.to_string(), app, job, problem });
        }
    }
    Ok(())
}

/// Refuses more GPUs for a tenant than its quota; `granted` is sorted by job.
fn check_quotas(state: &State<'_>, granted: &[(u32, u32)], policy: &str) -> Result<(), SimError> {
    let mut rooms = state.rooms();
    for (job, gpus) in granted {
        let app = state.workload.jobs[*job as usize].app;
        let tenant = state.workload.apps[app as usize].tenant;
        let Some(room) = rooms.get_mut(tenant as usize) else { return Ok(()) };
        if let Some(left) = room.checked_sub(*gpus) {
            *room = left;
            continue;
        }
        let name = &state.workload.tenants[tenant as usize].name;
        let quota = state.quotas.at(tenant, state.now_us);
        let problem =
            format!("{gpus} GPUs for tenant {name:?}: its quota of {quota} leaves {room}");
        return Err(SimError::Policy { policy: policy.to_string(), app, job: *job, problem });
    }
    Ok(())
}

/// Refuses to reject a job that has or gets GPUs, or is not waiting for any.
pub(crate) fn check_wishes(
    state: &State<'_>,
    plan: &Plan,
    wishes: &Wishes,
    policy: &str,
) -> Result<(), SimError> {
    for &(app, job, _) in &wishes.rejects {
        let run = state.jobs.get(job as usize).filter(|run| run.phase == JobPhase::Open);
        let waits = run.is_some_and(|run| run.gpus.is_empty());
        let spec = state.workload.jobs.get(job as usize).filter(|spec| spec.app == app);
        let served = plan.grants.iter().any(|grant| grant.job == job);
        if !waits || served || spec.is_none_or(|spec| spec.gang == 0) {
            let (policy, problem) = (
                policy.to_string(),
                "is rejected: only a job that waits for \
                GPUs, and gets none, can be"
                    .to_string(),
            );
            return Err(SimError::Policy { policy, app, job, problem });
        }
    }
    match wishes.wake_us {
        Some(wake_us) if wake_us <= state.now_us => {
            Err(SimError::Wake { policy: policy.to_string(), wake_us, now_us: state.now_us })
        }
        _ => Ok(()),
    }
}

/// Rearranges a checked plan so that fewer jobs move.
pub(crate) fn arrange(state: &State<'_>, offer: &FreeSet, plan: &mut Plan) {
    let view = View::new(state, offer);
    let jobs: Vec<_> = plan.grants.iter().map(|grant| view.job(grant.job)).collect();
    settle(offer, &mut plan.grants, &jobs);
}

/// Carries out a checked plan: leases that ran out and were not granted again end, then the
/// grants begin, then jobs move. Returns whether it leaves more to decide (see [`seat`]).
pub(crate) fn carry_out(state: &mut State<'_>, mut plan: Plan, leases: bool) -> bool {
    plan.grants.sort_by_key(|grant| grant.job);

    let mut touched: Vec<u32> = plan.grants.iter().map(|grant| grant.job).collect();
    touched.extend(expired_jobs(state));
    touched.sort_unstable();
    touched.dedup();

    let mut moves: Vec<(u32, Vec<u32>, Vec<Grant>)> = Vec::with_capacity(touched.len());
    let mut lapsed = Vec::new();
    let mut grants = plan.grants.into_iter().peekable();
    for job in touched {
        let mut mine = Vec::new();
        while let Some(grant) = grants.next_if(|grant| grant.job == job) {
            mine.push(grant);
        }
        let kept = renew(state, job, &mut mine, leases, &mut lapsed);
        mine.retain(|grant| !grant.bundle.is_empty());
        moves.push((job, kept, mine));
    }
    state.expired.clear();
    let needed = moves.iter().flat_map(|(.., mine)| mine).flat_map(|grant| grant.bundle.iter());
    let mut evicted = vacate(state, &lapsed, &needed.collect(), leases);
    let renewed = moves.iter().flat_map(|(_, kept, _)| kept).chain(&lapsed);
    dismiss(state, &renewed.copied().collect::<Vec<u32>>());
    let mut granted = Vec::new();
    for (job, mut gpus, mine) in moves {
        if state.workload.jobs[job as usize].is_fraction() && gpus.is_empty() {
            if mine.is_empty() {
                evicted.push(job);
            }
            granted.extend(mine);
            continue;
        }
        for grant in &mine {
            gpus.extend(begin(state, grant, leases));
        }
        gpus.sort_unstable();
        go_on(state, job, gpus);
    }
    seat(state, granted, evicted, leases)
}

/// Apps' jobs with leases that have just run out.
fn expired_jobs(state: &State<'_>) -> Vec<u32> {
    let apps = state.expired.iter().map(|app| &state.apps[*app as usize]);
    let jobs = apps.flat_map(|app| &app.open);
    jobs.copied().filter(|job| !state.jobs[*job as usize].expired.is_empty()).collect()
}

/// Renews what a job had and is granted again (and takes it out of the grants); ends its other
/// expired leases, of which those that guests hold now go to `lapsed`. Returns the GPUs that the job
/// still has.
fn renew(
    state: &mut State<'_>,
    job: u32,
    grants: &mut [Grant],
    leases: bool,
    lapsed: &mut Vec<u32>,
) -> Vec<u32> {
    let run = &state.jobs[job as usize];
    let stays = |gpu: &u32| !state.tenures.is_withdrawn(*gpu);
    let (mut expired, withdrawn): (Vec<u32>, Vec<u32>) =
        run.expired.iter().copied().partition(stays);
    let mut kept: Vec<u32> =
        run.gpus.iter().copied().filter(|gpu| run.expired.binary_search(gpu).is_err()).collect();
    for grant in grants {
        let again = take_from(state, &mut expired, &grant.bundle);
        if again.is_empty() {
            continue;
        }
        let renewed = state.tenures.bundle(&again);
        let rest = grant.bundle.iter().map(|(slot, n)| (slot, n - renewed.in_slot(slot)));
        grant.bundle = rest.collect();
        let expiry_us = plan_expiry(state, grant, leases);
        state.tenures.renew(&again, state.now_us, expiry_us, &mut state.log.leases);
        kept.extend(again);
    }
    lapsed.extend(state.release(&expired, EndedBy::Expired));
    state.release(&withdrawn, EndedBy::Withdrawn);
    kept
}

/// Moves the GPUs of a bundle out of a sorted list, as far as the list has them.
pub(crate) fn take_from(state: &State<'_>, gpus: &mut Vec<u32>, bundle: &Bundle) -> Vec<u32> {
    let mut taken = Vec::new();
    let mut want: Vec<_> = bundle.iter().collect();
    gpus.retain(|gpu| {
        let slot = state.tenures.slot_of(*gpu);
        let open = want.iter_mut().find(|(s, left)| *s == slot && *left > 0);
        open.is_none_or(|(_, left)| {
            *left -= 1;
            taken.push(*gpu);
            false
        })
    });
    taken
}

/// Begins the lease of a grant; returns its GPUs.
pub(crate) fn begin(state: &mut State<'_>, grant: &Grant, leases: bool) -> Vec<u32> {
    let seat = state.seat_of(grant.job);
    let liked = &state.jobs[grant.job as usize].gpus;
    let gpus = state.tenures.name(&grant.bundle, liked).expect("invariant: the plan was checked");
    let tenure = Tenure {
        app: grant.app,
        start_us: state.now_us,
        expiry_us: plan_expiry(state, grant, leases),
        cause: grant.cause,
        renewals: 0,
        milli: seat.milli,
    };
    state.tenures.grant(&gpus, tenure);
    state.tenures.seat_holder(&gpus, seat);
    gpus
}

/// When a grant ends; the queue is told.
fn plan_expiry(state: &mut State<'_>, grant: &Grant, leases: bool) -> i64 {
    if !leases {
        return i64::MAX;
    }
    let expiry_us = state.clock.expiry(state.now_us, grant.lease_fraction);
    state.expiries.plan(expiry_us, grant.app);
    expiry_us
}

/// Lets a job go on with these GPUs: without a break when they are the same.
pub(crate) fn go_on(state: &mut State<'_>, job: u32, gpus: Vec<u32>) {
    let run = &mut state.jobs[job as usize];
    let app = state.workload.jobs[job as usize].app;
    if run.gpus == gpus {
        state.apps[app as usize].expired -= run.expired.len() as u32;
        run.expired.clear();
        state.count(app);
    } else {
        state.assign(job, gpus);
    }
    remember_rho(state, app);
}

/// Keeps the last rho for the rules that use it.
fn remember_rho(state: &mut State<'_>, app: u32) {
    if state.apps[app as usize].gpus == 0 {
        return;
    }
    let settings = &state.settings;
    if settings.filter_key == FilterKey::Cached || settings.outside_option == OutsideOption::Cached
    {
        let offer = FreeSet::empty(state.topology.clone());
        let candidate = View::new(state, &offer).reported(app).state;
        let rho = candidate.rho_at(&candidate.held_rates(&state.topology));
        state.apps[app as usize].last_rho = Some(rho);
    }
}
