//! First in, first out, strictly: what most clusters do today.

use std::collections::BTreeMap;

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
        let mut free = view.offer().clone();
        let mut plan = Plan::default();
        let mut granted: BTreeMap<u32, u32> = BTreeMap::new();
        for job in view.waiting_jobs() {
            let app = view.app_of(job);
            let mine = granted.entry(app).or_default();
            let spare = view.spare(app) - *mine;
            if spare < view.gang(job) {
                continue; // it waits for its own app
            }
            let Some(bundle) = view.job(job).claim(&free, spare) else { break };
            free.take(&bundle);
            *mine += bundle.gpus();
            plan.grants.push(Grant::new(app, job, bundle));
        }
        plan
    }
}
