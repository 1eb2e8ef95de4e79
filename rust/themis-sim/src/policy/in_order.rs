//! Serving apps one after the other, each with all that it can use.

use super::{Cause, Grant, Plan};
use crate::view::View;

/// Gives the offer to the apps in this order until nothing is left. An app that can't use what is
/// left is passed over.
pub(super) fn serve(view: &View<'_>, order: impl IntoIterator<Item = u32>) -> Plan {
    let mut free = view.offer().clone();
    let mut grants = Vec::new();
    for app in order {
        if free.total() == 0 {
            break;
        }
        let mut candidate = view.app(app);
        for (job, bundle) in candidate.state.claim_all(&mut free) {
            let job = candidate.jobs[job];
            grants.push(Grant { app, job, bundle, cause: Cause::Policy, lease_fraction: 1.0 });
        }
    }
    Plan { grants, auction: None }
}
