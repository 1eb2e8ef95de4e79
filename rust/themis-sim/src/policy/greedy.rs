//! Serving claims one after the other, where what a claim is worth depends on what is left.

use std::collections::BTreeMap;

use crate::plan::{Grant, Plan};
use crate::view::{Candidate, View};
use themis_core::app::AppState;
use themis_core::cluster::{Bundle, FreeSet};

/// What an app would take of the free GPUs: a bundle for each of some of its jobs.
pub(super) type Claim = Vec<(usize, Bundle)>;

/// The next job of the app that free GPUs help, with all that it can use.
pub(super) fn one_job(app: &AppState, free: &FreeSet) -> Claim {
    app.claim_one(free).into_iter().collect()
}

/// The next step of the app: a gang for a job that waits, or one more GPU for one that runs.
pub(super) fn one_step(app: &AppState, free: &FreeSet) -> Claim {
    let spare = app.spare_of(free);
    let step = |at: usize| {
        let job = &app.jobs[at];
        let most = if job.held.is_empty() { job.gang } else { 1 };
        Some((at, job.claim(free, most.min(spare))?))
    };
    app.job_order().into_iter().find_map(step).into_iter().collect()
}

/// All that the app can use.
pub(super) fn whole_app(app: &AppState, free: &FreeSet) -> Claim {
    app.clone().claim_all(&mut free.clone())
}

struct Turn<K> {
    candidate: Candidate,
    claim: Claim,
    /// The GPUs of the claim.
    bundle: Bundle,
    key: K,
}

impl<K> Turn<K> {
    fn stands(&self, free: &FreeSet) -> bool {
        free.has(&self.bundle) && self.bundle.gpus() <= free.room(self.candidate.state.tenant)
    }
}

/// Grants `apps`, which come in tie order, the claim of the least key, asks again, and so on
/// until nobody claims anything. A claim stands as long as its GPUs are free and its tenant has room: with fewer GPUs on
/// offer there is none better.
///
/// Cost: O(apps) looks at the free GPUs for every claim granted.
pub(super) fn serve<K: Ord>(
    view: &View<'_>,
    apps: impl Iterator<Item = Candidate>,
    claim: impl Fn(&AppState, &FreeSet) -> Claim,
    key: impl Fn(&Candidate, &Claim) -> K,
) -> Plan {
    let mut free = view.offer().clone();
    let turn = |candidate: Candidate, free: &FreeSet| {
        let claim = claim(&candidate.state, free);
        if claim.is_empty() {
            return None;
        }
        let key = key(&candidate, &claim);
        let mut bundle = Bundle::new();
        for (_, part) in &claim {
            bundle.merge(part);
        }
        Some(Turn { candidate, claim, bundle, key })
    };
    let mut turns: Vec<Option<Turn<K>>> = apps.map(|candidate| turn(candidate, &free)).collect();
    let mut granted: BTreeMap<(u32, u32), Bundle> = BTreeMap::new();
    loop {
        let open = (0..turns.len()).filter_map(|at| Some((at, turns[at].as_ref()?)));
        let Some((at, _)) = open.min_by(|a, b| a.1.key.cmp(&b.1.key)) else { break };
        let Some(Turn { mut candidate, claim, bundle, .. }) = turns[at].take() else { break };
        free.take_for(candidate.state.tenant, &bundle);
        for (job, bundle) in claim {
            candidate.state.hold(job, &bundle);
            granted.entry((candidate.app, candidate.jobs[job])).or_default().merge(&bundle);
        }
        turns[at] = turn(candidate, &free);
        for open in &mut turns {
            if let Some(void) = open.take_if(|turn| !turn.stands(&free)) {
                *open = turn(void.candidate, &free);
            }
        }
    }
    let grants = granted.into_iter().map(|((app, job), bundle)| Grant::new(app, job, bundle));
    Plan { grants: grants.collect(), auction: None }
}
