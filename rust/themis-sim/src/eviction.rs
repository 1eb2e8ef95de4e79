//! GPUs that leave the cluster, and the jobs that lose them.

use crate::capacity::ChangeCause;
use crate::cause::EndedBy;
use crate::error::SimError;
use crate::search::{News, review};
use crate::state::{JobPhase, State};
use themis_core::MachineId;

/// GPUs that their holders lose at this instant, and why.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    pub(crate) gpus: Vec<u32>,
    pub(crate) why: EndedBy,
}

/// Carries out the changes of capacity that are due: GPUs that join are free at once, those that go
/// are withdrawn. Returns what is to be taken from its holders at this instant, once the jobs
/// that end now have ended.
pub(crate) fn change_capacity(state: &mut State<'_>, leases: bool) -> Vec<Loss> {
    let mut losses = Vec::new();
    while let Some(change) = state.capacity.pop(state.now_us) {
        let machine = MachineId(change.machine);
        let gpus = state.tenures.resize(machine, change.gpus);
        state.log.capacity(state.now_us, &change);
        match change.cause {
            ChangeCause::Failure => losses.push(Loss { gpus, why: EndedBy::Failure }),
            ChangeCause::Evicted => losses.push(Loss { gpus, why: EndedBy::Withdrawn }),
            ChangeCause::Planned | ChangeCause::Repair if leases => {
                for gpu in gpus {
                    state.departures.insert((state.lease_end(gpu), gpu));
                }
            }
            ChangeCause::Planned | ChangeCause::Repair => {} // they go with their jobs
        }
    }
    let mut gpus = Vec::new();
    while let Some((at_us, gpu)) = state.departures.first().copied() {
        if at_us > state.now_us {
            break;
        }
        state.departures.pop_first();
        // It may be back, or somebody else's by now.
        if state.tenures.is_withdrawn(gpu) && state.lease_end(gpu) == state.now_us {
            gpus.push(gpu);
        }
    }
    if !gpus.is_empty() {
        losses.push(Loss { gpus, why: EndedBy::Withdrawn });
    }
    losses
}

/// Takes GPUs from the jobs that hold them. Where that leaves less than a gang, the job gives up
/// all: nothing is ever held half.
pub(crate) fn take_back(state: &mut State<'_>, loss: &Loss) {
    let holders = loss.gpus.iter().filter_map(|gpu| Some(state.tenures.of(*gpu)?.app));
    let seats = loss.gpus.iter().flat_map(|gpu| state.tenures.seats.on(*gpu));
    let mut apps: Vec<u32> = holders.chain(seats.map(|seat| seat.app)).collect();
    apps.sort_unstable();
    apps.dedup();
    for app in apps {
        for job in state.apps[app as usize].open.clone() {
            let goes = |gpu: &u32| loss.gpus.contains(gpu);
            let gpus = &state.jobs[job as usize].gpus;
            let (mut lost, mut kept): (Vec<u32>, Vec<u32>) = gpus.iter().copied().partition(goes);
            if lost.is_empty() {
                continue;
            }
            if (kept.len() as u32) < state.workload.jobs[job as usize].gang {
                lost = gpus.clone();
                kept.clear();
            }
            if loss.why == EndedBy::Failure {
                state.set_back(job);
            }
            state.give_up(job, &lost, loss.why);
            state.assign(job, kept);
        }
    }
}

/// Fails waiting jobs for which the cluster, or the quota of their tenant, has become too small for
/// good.
///
/// # Errors
/// As [`review`].
pub(crate) fn fail_hopeless(state: &mut State<'_>, leases: bool) -> Result<(), SimError> {
    if !state.capacity.changes() && !state.quotas.change_at(state.now_us) {
        return Ok(());
    }
    let is_hopeless = |job: u32| !state.can_run_from(state.now_us, job);
    let waiting = state.waiting.iter().map(|(_, job)| *job);
    let hopeless: Vec<u32> = waiting.filter(|job| is_hopeless(*job)).collect();
    for job in hopeless {
        if state.jobs[job as usize].phase != JobPhase::Open {
            continue; // its app ended with another of them
        }
        state.end_job(job, JobPhase::Failed);
        let reason = state.hopeless_because(state.now_us, job);
        state.jobs[job as usize].reason = reason.map(Into::into);
        review(
            state,
            state.workload.jobs[job as usize].app,
            News { ended: &[job], ..News::default() },
            leases,
        )?;
    }
    Ok(())
}
