//! What a policy asks for, checked as a whole before anything changes.

use std::collections::BTreeMap;

use crate::error::SimError;
use crate::plan::{Plan, Wishes};
use crate::state::{JobPhase, State};
use themis_core::SlotId;
use themis_core::cluster::{Bundle, FreeSet, TypeSet};

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
        let spec = state.workload.jobs.get(grant.job as usize);
        let Some(spec) = spec.filter(|spec| spec.app == grant.app) else {
            return refuse("no such job of this app".into());
        };
        let run = state.jobs.get(grant.job as usize);
        if run.is_none_or(|run| run.phase != JobPhase::Open) || spec.gang == 0 {
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
    if !offer.host().is_empty() {
        check_host(state, offer, plan, policy)?;
    }
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

/// Refuses GPUs whose machines lack what they need beside.
fn check_host(
    state: &State<'_>,
    offer: &FreeSet,
    plan: &Plan,
    policy: &str,
) -> Result<(), SimError> {
    let mut rest = offer.clone();
    for grant in &plan.grants {
        let needs = state.needs_of(grant.job);
        for (machine, gpus) in grant.bundle.by_machine(&state.topology) {
            if !rest.hosts(machine, gpus, needs) {
                let problem = format!(
                    "{gpus} GPUs of machine {}: it lacks the CPU cores or memory that they need",
                    machine.0
                );
                let (app, job) = (grant.app, grant.job);
                return Err(SimError::Policy { policy: policy.to_string(), app, job, problem });
            }
        }
        rest.take_host(needs, &grant.bundle);
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
