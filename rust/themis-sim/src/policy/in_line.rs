//! Serving jobs by submission, each until it ends.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::head_start::soonest_us;
use crate::plan::{Grant, Plan};
use crate::view::View;
use themis_core::cluster::{Bundle, FreeSet, TypeSet};

/// Starts the jobs in line. For the first that can't start, `reserve` is told the grants so far
/// and the job: jobs behind it start within what the reservation leaves, without one none does.
pub(super) fn serve(
    view: &View<'_>,
    reserve: impl Fn(&[Grant], u32) -> Option<Reservation>,
) -> Plan {
    let mut free = Cow::Borrowed(view.offer());
    let mut plan = Plan::default();
    let mut granted: BTreeMap<u32, u32> = BTreeMap::new();
    let mut reservation: Option<Reservation> = None;
    for job in view.waiting_jobs() {
        if free.total() == 0 {
            break; // the line can be long
        }
        let app = view.app_of(job);
        let mine = granted.entry(app).or_default();
        let spare = (view.spare(app) - *mine).min(free.room(view.tenant(app)));
        if spare < view.gang(job) {
            continue; // it waits for its own app, or others of its tenant
        }
        let claim = match &reservation {
            _ if free.total() < view.gang(job) => None,
            Some(reservation) => reservation.claim(view, job, &free, spare),
            None => view.job(job).claim(&free, spare),
        };
        if let Some(bundle) = claim {
            free.to_mut().take_for(view.tenant(app), view.needs(job), &bundle);
            *mine += bundle.gpus();
            if let Some(reservation) = &mut reservation {
                reservation.let_in(view, job, &bundle);
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
    /// GPUs of its types that should be free then beyond its gang.
    spare: u32,
    types: TypeSet,
}

impl Reservation {
    /// For a job that can't start beside these grants: on the types where that is soonest.
    pub(super) fn of(view: &View<'_>, grants: &[Grant], head: u32) -> Option<Self> {
        let pools = view.speeds(head).pools().iter();
        let each = pools.map(|pool| Self::on(view, grants, head, pool.types));
        each.min_by_key(|reservation| reservation.at_us)
    }

    fn on(view: &View<'_>, grants: &[Grant], head: u32, types: TypeSet) -> Self {
        if view.topology().limits(view.needs(head)) {
            // Which GPUs will be spare depends on who takes what of which machine.
            return Self { at_us: soonest_us(view, grants, head, types), spare: 0, types };
        }
        let now_us = view.now_us();
        let ends = |since_us: i64, job| since_us.saturating_add(view.requested_us(job)).max(now_us);
        let count = |bundle: &Bundle| view.topology().count_of(bundle, types);
        let begun = grants.iter().map(|grant| (ends(now_us, grant.job), count(&grant.bundle)));
        let running =
            view.running_jobs().map(|(job, gpus, since_us)| (ends(since_us, job), count(gpus)));
        let mut ends: Vec<(i64, u32)> = running.chain(begun).collect();
        ends.sort_unstable();
        let begun: u32 = grants.iter().map(|grant| count(&grant.bundle)).sum();
        let mut free = view.offer().total_of(types) - begun;
        let mut at_us = now_us;
        for (end_us, gpus) in ends {
            if free >= view.gang(head) && end_us > at_us {
                break;
            }
            free += gpus;
            at_us = end_us;
        }
        if free < view.gang(head) {
            at_us = i64::MAX;
        }
        Self { at_us, spare: free.saturating_sub(view.gang(head)), types }
    }

    fn is_over_by_then(&self, view: &View<'_>, job: u32) -> bool {
        view.now_us().saturating_add(view.requested_us(job)) <= self.at_us
    }

    /// What a job behind may take: anything if it is over by then, else GPUs of other types, or
    /// those that will be spare.
    fn claim(&self, view: &View<'_>, job: u32, free: &FreeSet, most: u32) -> Option<Bundle> {
        if self.is_over_by_then(view, job) {
            return view.job(job).claim(free, most);
        }
        let of_others = if self.types == TypeSet::ALL {
            None
        } else {
            view.job(job).claim(&free.without(self.types), most)
        };
        let most = most.min(self.spare);
        let may = of_others.is_none() && most >= view.gang(job); // seldom so
        of_others.or_else(|| may.then(|| view.job(job).claim(free, most)).flatten())
    }

    /// A job behind starts.
    fn let_in(&mut self, view: &View<'_>, job: u32, bundle: &Bundle) {
        if !self.is_over_by_then(view, job) {
            self.spare -= view.topology().count_of(bundle, self.types);
        }
    }
}
