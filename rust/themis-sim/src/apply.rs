//! Carrying out a policy's plan, once it is checked.

use crate::cause::EndedBy;
use crate::grants::{begin, go_on, plan_expiry, take_from};
use crate::plan::{Grant, Plan};
use crate::settle::settle;
use crate::sharing::{dismiss, seat, vacate};
use crate::state::State;
use crate::view::View;
use themis_core::cluster::FreeSet;

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
