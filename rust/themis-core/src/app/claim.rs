//! How an app divides GPUs among its jobs: the app scheduler of the plain stopping rules.
//!
//! Jobs that run go first, then those of lower rank, then (`All`) the job that needs longest, or
//! (`First`) the one that would finish soonest; ties by job order. Each takes what it can use where
//! it runs fastest, gangs whole, before the next is served. Cost: O(jobs log jobs) an order,
//! O(localities) a claim.

use smallvec::SmallVec;

use crate::app::{AppState, Job, Stopping, divide};
use crate::cluster::{Bundle, FreeSet, Locality, Near, Openings, Within, fit};

impl AppState {
    /// The order in which jobs are served.
    pub fn job_order(&self) -> Vec<usize> {
        self.order_of(|_| true).into_vec()
    }

    /// The same of some of them.
    pub(super) fn order_of(&self, wanted: impl Fn(&Job) -> bool) -> SmallVec<[usize; 16]> {
        if let [only] = self.jobs.as_slice() {
            return wanted(only).then_some(0).into_iter().collect();
        }
        let key = |at: usize| {
            let job = &self.jobs[at];
            let ideal = divide(job.work_left_gpu_s, job.most());
            let time = if self.stopping == Stopping::All { -ideal } else { ideal };
            (job.held.is_empty() && job.previous.is_empty(), job.rank, time, at)
        };
        let wanted = (0..self.jobs.len()).filter(|at| wanted(&self.jobs[*at]));
        let mut order: SmallVec<[_; 16]> = wanted.map(key).collect();
        order.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.total_cmp(&b.2)).then(a.3.cmp(&b.3))
        });
        order.into_iter().map(|(.., at)| at).collect()
    }

    /// The jobs in order that so many GPUs could be enough for.
    fn claimants(&self, most: u32) -> SmallVec<[usize; 16]> {
        self.order_of(|job| job.need(most) > 0)
    }

    /// One job-sized claim on free GPUs: the next job in order that they help, and its bundle.
    /// `None` when no job of the app would finish sooner with any of them.
    pub fn claim_one(&self, free: &FreeSet) -> Option<(usize, Bundle)> {
        let spare = self.spare_of(free);
        if free.total() == 0 || spare == 0 {
            return None;
        }
        let claim = |job: usize| self.jobs[job].claim(free, spare).map(|bundle| (job, bundle));
        if let [_] = self.jobs.as_slice() {
            return claim(0);
        }
        // Equal jobs, as those of a search, come one after the other: what helps none is seen once.
        let mut before: Option<&Job> = None;
        let mut order = self.claimants(free.total().min(spare)).into_iter();
        order.find_map(|job| {
            let same = before.replace(&self.jobs[job]) == Some(&self.jobs[job]);
            if same { None } else { claim(job) }
        })
    }

    /// The next job that can have its previous GPUs again, all of them, and these; `None` when no
    /// job can.
    pub fn resume_one(&self, free: &FreeSet) -> Option<(usize, Bundle)> {
        let spare = self.spare_of(free);
        let resumes = |job: &Job| {
            let (previous, most) = (&job.previous, job.max.min(spare));
            job.held.is_empty()
                && (job.gang.max(1)..=most).contains(&previous.gpus())
                && free.allows(job.needs, previous)
        };
        let at = self.job_order().into_iter().find(|at| resumes(&self.jobs[*at]))?;
        Some((at, self.jobs[at].previous.clone()))
    }

    /// Takes free GPUs for a job, with what they need, and counts them for its tenant.
    pub fn take(&self, free: &mut FreeSet, job: usize, bundle: &Bundle) {
        free.take_for(self.tenant, self.jobs[job].needs, bundle);
    }

    /// Gives back GPUs that it took for a job.
    pub fn give(&self, free: &mut FreeSet, job: usize, bundle: &Bundle) {
        free.give_for(self.tenant, self.jobs[job].needs, bundle);
    }

    /// Whether machines have left what GPUs for some of its jobs need together.
    pub fn has_host_for(&self, parts: &[(usize, Bundle)], free: &FreeSet) -> bool {
        if free.host().is_empty() {
            return true;
        }
        let mut rest = free.clone();
        parts.iter().all(|(job, bundle)| {
            let allowed = rest.allows(self.jobs[*job].needs, bundle);
            if allowed {
                rest.take_with(self.jobs[*job].needs, bundle);
            }
            allowed
        })
    }

    /// What each of its jobs can use of an offer.
    pub(super) fn openings<'a>(&self, offer: &'a FreeSet) -> Openings<'a> {
        Openings::of(offer, self.jobs.iter().map(|job| job.needs))
    }

    /// Takes claims from `free` until nothing more helps, as [`AppState::claim_one`] would one after
    /// the other; the parts, in the order of the claims.
    pub fn claim_all(&mut self, free: &mut FreeSet) -> Vec<(usize, Bundle)> {
        let mut parts = Vec::new();
        let mut before: Option<usize> = None;
        // Free GPUs get fewer, so that who was refused would be again; who took some goes before
        // those that wait, and so is asked again first.
        for job in self.claimants(free.total().min(self.spare_of(free))) {
            if before.replace(job).is_some_and(|before| self.jobs[before] == self.jobs[job]) {
                continue;
            }
            while let Some(bundle) = self.jobs[job].claim(free, self.spare_of(free)) {
                self.take(free, job, &bundle);
                self.hold(job, &bundle);
                parts.push((job, bundle));
            }
        }
        parts
    }
}

impl Job {
    /// How many of so many GPUs it could use; none if it still lacks some of its gang with them.
    fn need(&self, most: u32) -> u32 {
        let need = self.unmet().min(most);
        if self.held.gpus() + need < self.gang { 0 } else { need }
    }

    /// At most `most` free GPUs that speed this job up most, together with what it holds; the
    /// previous ones when none are better; `None` when none help. Ties: fewer GPUs, then the faster
    /// pool, then the finer locality.
    pub fn claim(&self, free: &FreeSet, most: u32) -> Option<Bundle> {
        let need = self.need(free.total().min(most));
        if need == 0 {
            return None;
        }
        let held = self.held.gpus();
        let free = &*free.open_to(self.needs);
        let topology = free.topology();
        let now = topology.locality(&self.held);
        let mut best = (self.rate_on(topology, &self.held), 0, Within::from(Locality::Slot));
        for pool in (0..self.speeds.pools().len() as u8).map(|at| self.pool_at(topology, at)) {
            for level in self.profile.distinct_levels().filter(|level| *level >= now) {
                let within = Within { level, types: pool.types };
                let gpus = need.min(free_within(free, &self.held, within));
                let rate = self.rate_at(held + gpus, level) * pool.speed;
                let faster = rate.total_cmp(&best.0);
                if gpus > 0 && (faster.is_gt() || faster.is_eq() && gpus < best.1) {
                    best = (rate, gpus, within);
                }
                if gpus == need {
                    break; // further apart are no more
                }
            }
        }
        let previous = &self.previous;
        let serves = held == 0 && previous.gpus() <= need && free.has(previous);
        if serves && self.rate_on(topology, previous) >= best.0.max(f64::MIN_POSITIVE) {
            return Some(previous.clone());
        }
        let (_, gpus, within) = best;
        if gpus == 0 {
            return None;
        }
        fit(free, gpus, within, Near { held: &self.held, previous })
    }
}

/// Most GPUs free within one part of a locality: any part, or the one that holds `held`.
fn free_within(free: &FreeSet, held: &Bundle, within: Within) -> u32 {
    match held.iter().next() {
        Some((slot, _)) => free.around(slot, within),
        None => free.largest(within.level, within.types),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::SlotId;
    use crate::app::Profile;
    use crate::cluster::{MachineSpec, Topology};

    fn free(machines: u32, gpus: u32) -> FreeSet {
        let spec = |m| MachineSpec { rack: m / 2, gpus, slot_gpus: gpus };
        let specs: Vec<_> = (0..machines).map(spec).collect();
        FreeSet::full(Arc::new(Topology::new(&specs).expect("valid")))
    }

    fn app(stopping: Stopping, jobs: Vec<Job>) -> AppState {
        AppState::new(0.0, 1.0, stopping, jobs)
    }

    #[test]
    fn gangs_are_whole_and_the_longest_job_goes_first() {
        let job = |gang, work| Job::waiting(gang, gang, work, Profile::PERFECT);
        let mut all = app(Stopping::All, vec![job(2, 10.0), job(3, 90.0), job(2, 40.0)]);
        let mut pool = free(1, 6);
        let parts = all.claim_all(&mut pool);
        let got: Vec<_> = parts.iter().map(|(job, b)| (*job, b.gpus())).collect();
        assert_eq!(got, vec![(1, 3), (2, 2)]);
        assert_eq!(pool.total(), 1);
    }

    #[test]
    fn the_first_to_finish_goes_first_when_the_first_ends_the_app() {
        let job = |work| Job::waiting(1, 1, work, Profile::PERFECT);
        let first = app(Stopping::First, vec![job(9.0), job(3.0), job(5.0)]);
        assert_eq!(first.job_order(), vec![1, 2, 0]);
    }

    #[test]
    fn an_elastic_job_prefers_fewer_gpus_that_run_faster() {
        let near = Profile::new([1.0, 1.0, 3.0, 3.0]).expect("valid");
        let solo = app(Stopping::All, vec![Job::waiting(1, 8, 1.0, near)]);
        let (_, bundle) = solo.claim_one(&free(2, 4)).expect("useful");
        assert_eq!(bundle.iter().collect::<Vec<_>>(), vec![(SlotId(0), 4)]);
    }

    #[test]
    fn nothing_is_claimed_that_does_not_help() {
        let near = Profile::new([1.0, 1.0, 3.0, 3.0]).expect("valid");
        let mut solo = app(Stopping::All, vec![Job::waiting(1, 8, 1.0, near.clone())]);
        let mut pool = free(2, 4);
        assert_eq!(solo.claim_all(&mut pool).len(), 1);
        assert_eq!(pool.total(), 4);
        let big = app(Stopping::All, vec![Job::waiting(9, 9, 1.0, near.clone())]);
        assert_eq!(big.claim_one(&free(2, 4)), None);
    }

    #[test]
    fn the_same_gpus_are_taken_again_when_nothing_is_better() {
        let mut job = Job::waiting(2, 2, 1.0, Profile::PERFECT);
        job.previous = [(SlotId(1), 2)].into_iter().collect();
        let again = app(Stopping::All, vec![job.clone()]);
        assert_eq!(again.claim_one(&free(2, 2)).expect("useful").1, job.previous);
    }
}
