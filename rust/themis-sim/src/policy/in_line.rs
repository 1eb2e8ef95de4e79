//! Serving jobs by submission, each until it ends.

use std::collections::BTreeMap;

use super::{Grant, Plan};
use crate::view::View;

/// Starts the jobs in line. For the first that can't start, `reserve` is told the grants so far
/// and the job: jobs behind it start within what the reservation leaves, without one none does.
pub(super) fn serve(
    view: &View<'_>,
    reserve: impl Fn(&[Grant], u32) -> Option<Reservation>,
) -> Plan {
    let mut free = view.offer().clone();
    let mut plan = Plan::default();
    let mut granted: BTreeMap<u32, u32> = BTreeMap::new();
    let mut reservation = None;
    for job in view.waiting_jobs() {
        let app = view.app_of(job);
        let mine = granted.entry(app).or_default();
        let spare = view.spare(app) - *mine;
        if spare < view.gang(job) {
            continue; // it waits for its own app
        }
        let room = reservation.as_ref().map_or(u32::MAX, |r: &Reservation| r.room(view, job));
        if let Some(bundle) = view.job(job).claim(&free, spare.min(room)) {
            free.take(&bundle);
            *mine += bundle.gpus();
            if let Some(reservation) = &mut reservation {
                reservation.let_in(view, job, bundle.gpus());
            }
            plan.grants.push(Grant::new(app, job, bundle));
        } else if reservation.is_none() {
            reservation = reserve(&plan.grants, job);
            if reservation.is_none() {
                break;
            }
        }
    }
    plan
}

/// The GPUs that the head of the line is promised.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reservation {
    /// When they should be free.
    at_us: i64,
    /// GPUs that should be free then beyond its gang.
    spare: u32,
}

impl Reservation {
    /// For a job that can't start beside these grants.
    pub(super) fn of(view: &View<'_>, grants: &[Grant], head: u32) -> Self {
        let now_us = view.now_us();
        let ends = |since_us: i64, job| since_us.saturating_add(view.requested_us(job)).max(now_us);
        let begun = grants.iter().map(|grant| (ends(now_us, grant.job), grant.bundle.gpus()));
        let running = view.running_jobs().map(|(job, gpus, since_us)| (ends(since_us, job), gpus));
        let mut ends: Vec<(i64, u32)> = running.chain(begun).collect();
        ends.sort_unstable();
        let begun: u32 = grants.iter().map(|grant| grant.bundle.gpus()).sum();
        let mut free = view.offer().total() - begun;
        let mut at_us = now_us;
        for (end_us, gpus) in ends {
            if free >= view.gang(head) && end_us > at_us {
                break;
            }
            free += gpus;
            at_us = end_us;
        }
        Self { at_us, spare: free.saturating_sub(view.gang(head)) }
    }

    fn is_over_by_then(&self, view: &View<'_>, job: u32) -> bool {
        view.now_us().saturating_add(view.requested_us(job)) <= self.at_us
    }

    /// Most GPUs that a job behind may take.
    fn room(&self, view: &View<'_>, job: u32) -> u32 {
        if self.is_over_by_then(view, job) { u32::MAX } else { self.spare }
    }

    /// A job behind starts.
    fn let_in(&mut self, view: &View<'_>, job: u32, gpus: u32) {
        if !self.is_over_by_then(view, job) {
            self.spare -= gpus;
        }
    }
}
