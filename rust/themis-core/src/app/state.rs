//! What an app reports: elapsed time, work left, demands, holdings (paper, section 4.3).

use smallvec::SmallVec;

use crate::app::{Demand, OwnGpus, Pool, Profile, Speeds, divide};
use crate::cluster::{Bundle, FreeSet, Host, Locality, Topology};

/// Which of its jobs an app waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopping {
    /// The last one, then the phases to come.
    All,
    /// The first one.
    First,
}

/// An unfinished job of an app.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Fewest GPUs with which it runs at all.
    pub gang: u32,
    /// Most GPUs that it can use.
    pub max: u32,
    /// GPU-seconds left at its gang, of the type that suits it best and perfectly placed.
    pub work_left_gpu_s: f64,
    /// Its slowdowns.
    pub profile: Profile,
    /// The GPU types that it may use.
    pub speeds: Speeds,
    /// What each of its GPUs needs of its machine beside.
    pub needs: Host,
    /// GPUs that it keeps.
    pub held: Bundle,
    /// GPUs whose lease ran out just now and that are on offer again.
    pub previous: Bundle,
    /// Jobs of a lower rank are served first; those of one rank by the rule of their app.
    pub rank: f64,
}

impl Job {
    /// A job without GPUs that runs equally fast on all.
    pub fn waiting(gang: u32, max: u32, work_left_gpu_s: f64, profile: Profile) -> Self {
        let (held, previous) = (Bundle::new(), Bundle::new());
        let (speeds, needs) = (Speeds::ALIKE, Host::NONE);
        Self { gang, max, work_left_gpu_s, profile, speeds, needs, held, previous, rank: 0.0 }
    }

    /// The same job with GPUs that need something of their machines.
    #[must_use]
    pub fn with_needs(mut self, needs: Host) -> Self {
        self.needs = needs;
        self
    }

    /// The same job on GPUs of several types.
    #[must_use]
    pub fn with_speeds(mut self, speeds: Speeds) -> Self {
        self.speeds = speeds;
        self
    }

    /// GPUs that it could use beyond those it keeps.
    pub fn unmet(&self) -> u32 {
        self.max.saturating_sub(self.held.gpus())
    }

    /// GPU-seconds of work a second of all that it can use, of the type that suits it best and
    /// perfectly placed.
    pub fn most(&self) -> f64 {
        self.profile.pace(self.max, self.gang) * self.speeds.fastest()
    }

    /// GPU-seconds of work a second on a bundle: the pace of min(GPUs, max) / S at the speed of its
    /// slowest GPU, nothing below the gang.
    pub fn rate_on(&self, topology: &Topology, bundle: &Bundle) -> f64 {
        if bundle.is_empty() {
            return 0.0;
        }
        let rate = self.rate_at(bundle.gpus(), topology.locality(bundle));
        if self.speeds.are_alike() {
            return rate;
        }
        rate * self.speeds.on(topology.types_of(bundle))
    }

    /// The same, from a count and a locality, on GPUs of the type that suits it best.
    pub fn rate_at(&self, gpus: u32, level: Locality) -> f64 {
        if gpus < self.gang || gpus == 0 {
            return 0.0;
        }
        self.profile.pace(gpus.min(self.max), self.gang) / self.profile.slowdown(level)
    }

    /// The best rate that the whole cluster could give it.
    pub fn best_rate(&self, topology: &Topology) -> f64 {
        let best = |pool: &Pool| {
            let largest = topology.largest_each(pool.types, self.needs);
            let at = |most: u32| {
                let gpus = self.max.min(most);
                let level = Locality::ALL.into_iter().find(|level| gpus <= largest[level.index()]);
                self.rate_at(gpus, level.unwrap_or(Locality::Cluster)) * pool.speed
            };
            largest.map(at)
        };
        self.speeds.pools().iter().flat_map(best).fold(0.0, f64::max)
    }

    /// The rate of its gang in the worst placement: below that of every usable bundle.
    fn worst_rate(&self) -> f64 {
        let level = if self.gang == 1 { Locality::Slot } else { Locality::Cluster };
        f64::from(self.gang) * self.speeds.pool(usize::MAX).speed / self.profile.slowdown(level)
    }
}

/// An app at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct AppState {
    /// Seconds since its arrival.
    pub elapsed_s: f64,
    /// Its ideal finish time in seconds ([`crate::fairness::ideal_time`]).
    pub t_id_s: f64,
    /// Which of its jobs it waits for.
    pub stopping: Stopping,
    /// Its unfinished jobs.
    pub jobs: Vec<Job>,
    /// Phases that follow when these are done (successive halving), one after the other.
    pub later: Vec<Demand>,
    /// Most GPUs that it may hold in all.
    pub cap: u32,
    /// Whose it is; what a tenant may take is the offer's business ([`FreeSet::room`]).
    pub tenant: u32,
    /// rho if it wins nothing ([`crate::fairness::OutsideOption`]); `None`: unbounded.
    pub rho_empty: Option<f64>,
}

impl AppState {
    /// An app whose rho without a win is unbounded until [`AppState::with_rho_empty`] says more.
    pub fn new(elapsed_s: f64, t_id_s: f64, stopping: Stopping, jobs: Vec<Job>) -> Self {
        let (later, cap, tenant, rho_empty) = (Vec::new(), u32::MAX, 0, None);
        Self { elapsed_s, t_id_s, stopping, jobs, later, cap, tenant, rho_empty }
    }

    /// The same app with phases to come.
    #[must_use]
    pub fn with_later(mut self, later: Vec<Demand>) -> Self {
        self.later = later;
        self
    }

    /// The same app with a cap on all of its GPUs.
    #[must_use]
    pub fn with_cap(mut self, gpus: u32) -> Self {
        self.cap = gpus;
        self
    }

    /// The same app with its rho for winning nothing.
    #[must_use]
    pub fn with_rho_empty(mut self, rho_empty: Option<f64>) -> Self {
        self.rho_empty = rho_empty;
        self
    }

    /// GPUs that it could use beyond those it keeps.
    pub fn unmet(&self) -> u32 {
        self.spare().min(self.jobs.iter().map(Job::unmet).sum())
    }

    /// GPUs that it keeps.
    pub fn held_gpus(&self) -> u32 {
        self.jobs.iter().map(|job| job.held.gpus()).sum()
    }

    /// GPUs that it held under leases which have just ended.
    pub fn previous_gpus(&self) -> u32 {
        self.jobs.iter().map(|job| job.previous.gpus()).sum()
    }

    /// GPUs that its cap still allows.
    pub fn spare(&self) -> u32 {
        if self.cap == u32::MAX {
            return self.cap;
        }
        self.cap.saturating_sub(self.held_gpus())
    }

    /// GPUs that its cap and the room of its tenant still allow.
    pub fn spare_of(&self, free: &FreeSet) -> u32 {
        self.spare().min(free.room(self.tenant))
    }

    /// Seconds to finish if each job ran at its rate from now on (`rates` beside `jobs`).
    ///
    /// `All`: GPUs of finished jobs pass to the others, so that it is the work left over the whole
    /// rate, but never less than the longest job at its cap; then the phases to come at that rate.
    /// `First`: the first finish.
    pub fn time_left(&self, rates: &[f64]) -> f64 {
        match self.stopping {
            Stopping::All => {
                let rate = rates.iter().sum();
                self.longest_s().max(divide(self.work_left_gpu_s(), rate)) + self.later_s(rate)
            }
            Stopping::First => {
                let each = self.jobs.iter().zip(rates);
                each.map(|(job, rate)| divide(job.work_left_gpu_s, *rate))
                    .fold(f64::INFINITY, f64::min)
            }
        }
    }

    /// GPU-seconds left of its jobs.
    pub fn work_left_gpu_s(&self) -> f64 {
        self.jobs.iter().map(|job| job.work_left_gpu_s).sum()
    }

    /// GPU-seconds left until it is done: of all jobs and the phases to come (`All`), or of the job
    /// that needs least (`First`).
    pub fn service_left_gpu_s(&self) -> f64 {
        match self.stopping {
            Stopping::All => {
                let later = self.later.iter().map(|phase| phase.work_gpu_s);
                self.work_left_gpu_s() + later.sum::<f64>()
            }
            Stopping::First => {
                let each = self.jobs.iter().map(|job| job.work_left_gpu_s);
                each.reduce(f64::min).unwrap_or(0.0)
            }
        }
    }

    fn later_s(&self, rate: f64) -> f64 {
        later_s(&self.later, rate)
    }

    /// Seconds that the longest job needs at its cap, perfectly placed: the critical path.
    pub fn longest_s(&self) -> f64 {
        let each = self.jobs.iter().map(|job| divide(job.work_left_gpu_s, job.most()));
        each.fold(0.0, f64::max)
    }

    /// Seconds to finish what is left alone on the whole cluster (`T_alone`).
    pub fn time_alone(&self, topology: &Topology) -> f64 {
        let all = self.own_gpus(topology).rate(f64::from(self.cap), 1.0);
        let alone = Alone { stopping: self.stopping, all, later: &self.later };
        let jobs = self.jobs.iter();
        alone.time_s(jobs.map(|job| (job.work_left_gpu_s, job.best_rate(topology))))
    }

    /// The cluster in its own GPUs.
    pub fn own_gpus(&self, topology: &Topology) -> OwnGpus {
        OwnGpus::of(topology, self.jobs.iter().map(|job| &job.speeds))
    }

    /// Seconds to finish with the smallest usable bundle, badly placed: more than with any other
    /// (the `min_bundle` outside option).
    pub fn time_at_smallest_bundle(&self) -> f64 {
        let rates = self.jobs.iter().map(Job::worst_rate);
        match self.stopping {
            Stopping::All => {
                let rate = rates.fold(f64::INFINITY, f64::min);
                self.longest_s().max(divide(self.work_left_gpu_s(), rate)) + self.later_s(rate)
            }
            Stopping::First => {
                let each = self.jobs.iter().zip(rates);
                each.map(|(job, rate)| divide(job.work_left_gpu_s, rate)).fold(0.0, f64::max)
            }
        }
    }

    /// Seconds to finish on so many GPUs of the type that suits it best, perfectly placed.
    pub fn time_at_share(&self, gpus: f64) -> f64 {
        let gpus = gpus.min(f64::from(self.cap));
        let demand: f64 = self.jobs.iter().map(Job::most).sum();
        match self.stopping {
            Stopping::All => {
                let now_s = divide(self.work_left_gpu_s(), gpus.min(demand));
                self.longest_s().max(now_s) + self.later_s(gpus)
            }
            Stopping::First => {
                let each = self.jobs.iter();
                each.map(|job| divide(job.work_left_gpu_s, gpus.min(job.most())))
                    .fold(f64::INFINITY, f64::min)
            }
        }
    }

    /// The rates of its jobs on what they keep.
    pub fn held_rates(&self, topology: &Topology) -> SmallVec<[f64; 16]> {
        self.jobs.iter().map(|job| job.rate_on(topology, &job.held)).collect()
    }

    /// Finish-time fairness if its jobs ran at these rates (paper, Eq. 1 and 2).
    pub fn rho_at(&self, rates: &[f64]) -> f64 {
        (self.elapsed_s + self.time_left(rates)) / self.t_id_s
    }

    /// rho if the whole cluster were its own from now on.
    pub fn best_rho(&self, topology: &Topology) -> f64 {
        (self.elapsed_s + self.time_alone(topology)) / self.t_id_s
    }

    /// log V of winning nothing.
    pub fn log_v_empty(&self) -> f64 {
        self.rho_empty.map_or(LOG_V_UNBOUNDED, log_v)
    }

    /// log V if its jobs ran at these rates; never below that of winning nothing.
    pub fn log_v_at(&self, rates: &[f64]) -> f64 {
        self.value().log_v(self.pace(rates))
    }

    /// Adds GPUs to what a job keeps.
    pub fn hold(&mut self, job: usize, bundle: &Bundle) {
        self.jobs[job].held.merge(bundle);
    }
}

/// What the time of an app alone on the whole cluster depends on beside its jobs.
#[derive(Clone, Copy, Debug)]
pub struct Alone<'a> {
    /// Which of its jobs it waits for.
    pub stopping: Stopping,
    /// The rate of all GPUs that it may hold, were its work spread over them.
    pub all: f64,
    /// The phases to come.
    pub later: &'a [Demand],
}

impl Alone<'_> {
    /// Seconds to finish, from the GPU-seconds that each job has left and its best rate.
    pub fn time_s(&self, jobs: impl Iterator<Item = (f64, f64)> + Clone) -> f64 {
        let each = jobs.clone().map(|(work, rate)| divide(work, rate));
        match self.stopping {
            Stopping::All => {
                let work = jobs.clone().map(|(work, _)| work).sum();
                let rate = jobs.map(|(_, rate)| rate).sum::<f64>().min(self.all);
                each.fold(divide(work, rate), f64::max) + later_s(self.later, self.all)
            }
            Stopping::First => each.fold(f64::INFINITY, f64::min),
        }
    }
}

/// Seconds of the phases to come at so much work a second.
fn later_s(later: &[Demand], rate: f64) -> f64 {
    later.iter().map(|phase| phase.time_s(rate)).sum()
}

/// log V of an unbounded rho: so low that serving one more app outweighs any other gain, which
/// makes the sum of logs lexicographic (first the most bidders served, then the product).
const LOG_V_UNBOUNDED: f64 = -1.0e4;

/// log V = -log rho, held inside the range that keeps the order of sums exact.
pub fn log_v(rho: f64) -> f64 {
    if rho.is_nan() {
        return LOG_V_UNBOUNDED;
    }
    (-rho.max(f64::MIN_POSITIVE).ln()).clamp(LOG_V_UNBOUNDED, -LOG_V_UNBOUNDED)
}

/// rho of a log V; `None` where it is unbounded.
pub fn rho_of(log_v: f64) -> Option<f64> {
    (log_v > LOG_V_UNBOUNDED + 1.0).then(|| (-log_v).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::MachineSpec;

    fn topology() -> Topology {
        Topology::new(&[MachineSpec { rack: 0, gpus: 4, slot_gpus: 4 }; 4]).expect("valid")
    }

    #[test]
    fn rho_and_log_v_are_each_others_inverse() {
        for rho in [1e-300, 0.25, 1.0, 7.5, 1e300] {
            let back = rho_of(log_v(rho)).expect("bounded");
            assert!((back / rho - 1.0).abs() < 1e-12, "{rho}: {back}");
        }
        assert_eq!([f64::INFINITY, f64::NAN].map(|rho| rho_of(log_v(rho))), [None, None]);
    }

    #[test]
    fn single_job_rho_is_the_papers_first_equation() {
        let s = Profile::new([1.0, 1.0, 2.0, 4.0]).expect("valid");
        let app = AppState::new(300.0, 500.0, Stopping::All, vec![Job::waiting(1, 8, 4000.0, s)]);
        let rate = |gpus, level| vec![app.jobs[0].rate_at(gpus, level)];
        // T_SH = 300 + 4000 * S / min(|G|, 8); T_ID = 500.
        assert!((app.rho_at(&rate(4, Locality::Slot)) - 1300.0 / 500.0).abs() < 1e-12);
        assert!((app.rho_at(&rate(8, Locality::Rack)) - 1300.0 / 500.0).abs() < 1e-12);
        assert!((app.rho_at(&rate(16, Locality::Machine)) - 800.0 / 500.0).abs() < 1e-12);
        assert!(app.rho_at(&rate(0, Locality::Slot)).is_infinite());
    }

    #[test]
    fn apps_of_many_jobs_wait_for_the_last_or_for_the_first() {
        let t = topology();
        let job = |work| Job::waiting(1, 1, work, Profile::PERFECT);
        let jobs = vec![job(100.0), job(10.0), job(40.0)];
        let all = AppState::new(0.0, 1.0, Stopping::All, jobs.clone());
        let first = AppState::new(0.0, 1.0, Stopping::First, jobs);
        // One GPU: in turn. Two: 75 s of work each, but the longest job needs 100 s.
        assert!((all.time_left(&[1.0, 0.0, 0.0]) - 150.0).abs() < 1e-12);
        assert!((all.time_left(&[1.0, 1.0, 0.0]) - 100.0).abs() < 1e-12);
        assert!((first.time_left(&[1.0, 0.0, 1.0]) - 40.0).abs() < 1e-12);
        assert!((all.time_alone(&t) - 100.0).abs() < 1e-12);
        assert!((first.time_alone(&t) - 10.0).abs() < 1e-12);
    }

    #[test]
    fn the_best_rate_may_be_fewer_gpus_closer_together() {
        let s = Profile::new([1.0, 1.0, 3.0, 3.0]).expect("valid");
        let t = topology();
        assert!((Job::waiting(1, 8, 1.0, s.clone()).best_rate(&t) - 4.0).abs() < 1e-12);
        assert!((Job::waiting(8, 8, 1.0, s.clone()).best_rate(&t) - 8.0 / 3.0).abs() < 1e-12);
    }
}
