//! How grants begin, and how jobs go on with what they have then.

use crate::plan::Grant;
use crate::state::State;
use crate::tenure::Tenure;
use crate::view::View;
use themis_core::cluster::{Bundle, FreeSet};
use themis_core::fairness::{FilterKey, OutsideOption};

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
    state.tenures.grant(&gpus, tenure, seat.needs);
    state.tenures.seat_holder(&gpus, seat);
    gpus
}

/// When a grant ends; the queue is told.
pub(crate) fn plan_expiry(state: &mut State<'_>, grant: &Grant, leases: bool) -> i64 {
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
