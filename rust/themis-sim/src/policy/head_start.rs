//! When the head of a line can start, where machines lack what its GPUs need beside.

use crate::plan::Grant;
use crate::view::View;
use themis_core::cluster::TypeSet;

/// The first instant at which the head finds its gang on GPUs of these types, if the jobs that run,
/// and those with grants, end when they asked to; the end of the clock where it never does.
pub(super) fn soonest_us(view: &View<'_>, grants: &[Grant], head: u32, types: TypeSet) -> i64 {
    let now_us = view.now_us();
    let ends = |since_us: i64, job| since_us.saturating_add(view.requested_us(job)).max(now_us);
    let begun = grants.iter().map(|grant| (ends(now_us, grant.job), grant.job, &grant.bundle));
    let running = view.running_jobs().map(|(job, gpus, since_us)| (ends(since_us, job), job, gpus));
    let mut ends: Vec<_> = running.chain(begun).collect();
    ends.sort_unstable_by_key(|(end_us, job, _)| (*end_us, *job));
    let mut free = view.offer().clone();
    for grant in grants {
        free.take_with(view.needs(grant.job), &grant.bundle);
    }
    for at_once in ends.chunk_by(|a, b| a.0 == b.0) {
        for (_, job, bundle) in at_once {
            free.give_with(view.needs(*job), bundle);
        }
        if free.open_to(view.needs(head)).total_of(types) >= view.gang(head) {
            return at_once[0].0;
        }
    }
    i64::MAX
}
