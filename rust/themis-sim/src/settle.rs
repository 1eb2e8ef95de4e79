//! Fewer switches for the same grants.
//!
//! A policy picks GPUs app by app, so that an early pick can take the GPUs of a job that goes on
//! anyway. Here jobs that are granted as many GPUs as they had, and nothing better placed or faster, get
//! their own back, and the others are placed anew among the rest, never less close or on slower types than granted.
//! All or nothing: when one would not fit, the plan stays as it was.

use crate::plan::Grant;
use themis_core::app::Job;
use themis_core::cluster::{Bundle, FreeSet, Near, Within, fit};

/// Rearranges the grants; `jobs` beside them, as the policy saw them. Jobs with several grants, or
/// that keep other GPUs, stay where they were put.
pub(crate) fn settle(offer: &FreeSet, grants: &mut [Grant], jobs: &[Job]) {
    let topology = offer.topology();
    let level = |bundle: &Bundle| topology.locality(bundle);
    let speed = |at: usize, bundle: &Bundle| jobs[at].speeds.on(topology.types_of(bundle));
    let alone = |at: usize| {
        jobs[at].held.is_empty() && grants.iter().filter(|g| g.job == grants[at].job).count() == 1
    };
    let goes_on = |at: usize| {
        let previous = &jobs[at].previous;
        !previous.is_empty()
            && previous.gpus() == grants[at].bundle.gpus()
            && level(previous) <= level(&grants[at].bundle)
            && speed(at, previous) >= speed(at, &grants[at].bundle)
    };
    let displaced = |at: usize| goes_on(at) && jobs[at].previous != grants[at].bundle;
    if !(0..grants.len()).any(displaced) {
        return;
    }
    let mut free = offer.clone();
    let mut bundles: Vec<Option<Bundle>> = vec![None; grants.len()];
    let mut moving = Vec::new();
    for at in 0..grants.len() {
        let fixed = if !alone(at) {
            &grants[at].bundle
        } else if goes_on(at) {
            &jobs[at].previous
        } else {
            moving.push(at);
            continue;
        };
        if !free.allows(jobs[at].needs, fixed) {
            return;
        }
        free.take_with(jobs[at].needs, fixed);
        bundles[at] = Some(fixed.clone());
    }
    for at in moving {
        let granted = &grants[at].bundle;
        let near = Near { held: &jobs[at].held, previous: &jobs[at].previous };
        let types = jobs[at].speeds.no_slower(topology.types_of(granted));
        let within = Within { level: level(granted), types };
        let open = free.open_to(jobs[at].needs);
        let Some(bundle) = fit(&open, granted.gpus(), within, near) else { return };
        free.take_with(jobs[at].needs, &bundle);
        bundles[at] = Some(bundle);
    }
    for (grant, bundle) in grants.iter_mut().zip(bundles) {
        grant.bundle = bundle.expect("invariant: every grant was placed");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cause::Cause;
    use themis_core::SlotId;
    use themis_core::app::Profile;
    use themis_core::cluster::{MachineSpec, Topology};

    fn bundle(parts: &[(u32, u32)]) -> Bundle {
        parts.iter().map(|(slot, gpus)| (SlotId(*slot), *gpus)).collect()
    }

    fn grant(job: u32, parts: &[(u32, u32)]) -> Grant {
        let bundle = bundle(parts);
        Grant { app: job, job, bundle, cause: Cause::Policy, lease_fraction: 1.0 }
    }

    fn job(previous: &[(u32, u32)]) -> Job {
        Job { previous: bundle(previous), ..Job::waiting(2, 2, 1.0, Profile::PERFECT) }
    }

    #[test]
    fn a_job_that_goes_on_gets_its_own_gpus_back() {
        let machine = MachineSpec { rack: 0, gpus: 2, slot_gpus: 2 };
        let offer = FreeSet::full(Arc::new(Topology::new(&[machine; 3]).expect("valid")));
        let mut grants = vec![grant(0, &[(0, 2)]), grant(1, &[(1, 2)])];
        settle(&offer, &mut grants, &[job(&[]), job(&[(0, 2)])]);
        assert_eq!(grants, vec![grant(0, &[(1, 2)]), grant(1, &[(0, 2)])]);
    }

    #[test]
    fn nothing_moves_when_somebody_would_end_up_farther_apart() {
        let machine = |gpus| MachineSpec { rack: 0, gpus, slot_gpus: gpus };
        let topology = Topology::new(&[machine(2), machine(1), machine(1)]).expect("valid");
        let offer = FreeSet::full(Arc::new(topology));
        let before = vec![grant(0, &[(0, 2)]), grant(1, &[(1, 1)])];
        let mut one = job(&[(0, 1)]);
        (one.gang, one.max) = (1, 1);
        let mut grants = before.clone();
        settle(&offer, &mut grants, &[job(&[]), one]);
        assert_eq!(grants, before);
    }
}
