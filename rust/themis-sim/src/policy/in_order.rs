//! Serving apps one after the other, each with all that it can use.

use crate::plan::{Grant, Plan};
use crate::view::View;
use themis_core::fairness::worst_first;

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
            grants.push(Grant::new(app, candidate.jobs[job], bundle));
        }
    }
    Plan { grants, auction: None }
}

/// Serves the app with the least key first; ties: earlier arrival, then app id.
pub(super) fn least_first<K: Ord>(view: &View<'_>, mut key: impl FnMut(u32) -> K) -> Plan {
    let mut order: Vec<u32> = view.wanting().collect();
    order.sort_by_cached_key(|app| key(*app));
    serve(view, order)
}

/// Serves the app that is worst off by a rank of two numbers first; the same ties.
pub(super) fn worst_off_first(view: &View<'_>, rank: impl Fn(u32) -> (f64, f64)) -> Plan {
    let apps: Vec<u32> = view.wanting().collect();
    let ranks: Vec<_> = apps.iter().map(|app| rank(*app)).collect();
    serve(view, worst_first(&ranks).into_iter().map(|at| apps[at]))
}

/// A key in whole millionths: binary dust decides no tie.
pub(super) fn millionths(value: f64) -> i64 {
    (value * 1e6).round() as i64
}
