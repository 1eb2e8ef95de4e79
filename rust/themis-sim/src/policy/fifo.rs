//! First in, first out, strictly: what most clusters do today.

use std::collections::BTreeMap;

use super::backfill::Reservation;
use super::{Grant, Plan, Policy};
use crate::view::View;

/// Jobs in the order of submission (ties: app, then job), each until it ends; nobody overtakes a
/// job that waits for a gang, except where the cap of its own app holds it back. An elastic job takes what speeds it up most when it starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fifo;

impl Policy for Fifo {
    fn name(&self) -> &'static str {
        "fifo"
    }

    fn leases(&self) -> bool {
        false
    }

    fn decide(&mut self, view: &View<'_>) -> Plan {
        in_line(view, |_, _| None)
    }
}

/// Starts the jobs in line. For the first that can't start, `reserve` is told the grants so far
/// and the job: jobs behind it start within what the reservation leaves, without one none does.
pub(super) fn in_line(
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
