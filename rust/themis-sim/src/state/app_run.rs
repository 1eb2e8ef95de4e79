//! One app's life.

use crate::sum::Sum;
use smallvec::SmallVec;

use crate::workload::{AppSpec, JobSpec};
use themis_core::app::{Demand, OwnGpus, Stopping};
use themis_core::fairness::{TIdReading, ideal_time, ideal_time_first};

/// What an app shared, on average over its life: the `R_C` and `N_avg` of its ideal time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FairShare {
    /// Contention.
    pub(crate) n_avg: f64,
    /// GPUs of the cluster.
    pub(crate) gpus: f64,
    /// The part that they were of all that there ever are.
    pub(crate) part: f64,
}

/// What an app's ideal time depends on beside its share.
#[derive(Clone, Debug)]
pub(crate) struct Ideal {
    /// Which of its jobs it waits for.
    pub(crate) waits_for: Stopping,
    /// The cluster in its own GPUs.
    pub(crate) own_gpus: OwnGpus,
    /// What was submitted so far, finished or not.
    submitted: SmallVec<[Demand; 1]>,
}

impl Ideal {
    /// `T_ID` in seconds for a budget, else for all that was submitted so far.
    pub(crate) fn time_s(
        &self,
        budget: Option<&[Demand]>,
        reading: TIdReading,
        share: FairShare,
    ) -> f64 {
        let n_avg = share.n_avg;
        let own_gpus = self.own_gpus.scaled(share.part);
        let phases = budget.unwrap_or(&self.submitted);
        match self.waits_for {
            Stopping::All => ideal_time(reading, phases, &own_gpus, n_avg),
            Stopping::First => ideal_time_first(reading, &self.submitted, &own_gpus, n_avg),
        }
    }
}

/// An app during a run.
#[derive(Clone, Debug)]
pub(crate) struct AppRun {
    pub(crate) arrival_us: i64,
    pub(crate) ideal: Ideal,
    /// Most GPUs that it may hold.
    pub(crate) cap: u32,
    /// Jobs without a final state.
    pub(crate) unfinished: u32,
    /// Those of them that can run and need GPUs for it: while there are some, the app is active.
    pub(crate) unfinished_gpu: u32,
    /// Submitted, unfinished jobs that want GPUs, by number.
    pub(crate) open: SmallVec<[u32; 2]>,
    /// Most GPUs that those can use in all.
    pub(crate) demand: u64,
    /// GPUs that it holds, and those of them whose lease has just run out.
    pub(crate) gpus: u32,
    pub(crate) expired: u32,
    /// How it was last counted in [`super::Tally`]: wants more, holds some.
    pub(crate) counted: (bool, bool),
    /// App- and GPU-microseconds of contention and capacity when it arrived.
    pub(crate) areas_then: (Sum, Sum),
    pub(crate) share: FairShare,
    pub(crate) first_gpu_us: Option<i64>,
    pub(crate) end_us: Option<i64>,
    /// When the last job that needed GPUs ended: jobs of no GPUs stay out of rho.
    pub(crate) gpu_end_us: Option<i64>,
    /// In thousandths of GPUs, as what follows.
    pub(crate) run_milli_us: i128,
    pub(crate) switching_milli_us: i128,
    /// The part of running time whose work was lost in failures.
    pub(crate) lost_milli_us: i128,
    /// GPU-microseconds at the pace of the placements it had: running time weighted by 1/S.
    pub(crate) paced_gpu_us: f64,
    /// Its rho when it last held GPUs, and since when it has held none.
    pub(crate) last_rho: Option<f64>,
    empty_since_us: i64,
}

impl AppRun {
    pub(crate) fn new(spec: &AppSpec, waits_for: Stopping, own_gpus: OwnGpus) -> Self {
        Self {
            arrival_us: spec.arrival_us,
            ideal: Ideal { waits_for, own_gpus, submitted: SmallVec::new() },
            cap: spec.max_gpus,
            unfinished: spec.jobs,
            unfinished_gpu: 0,
            open: SmallVec::new(),
            demand: 0,
            gpus: 0,
            expired: 0,
            counted: (false, false),
            areas_then: (Sum::default(), Sum::default()),
            share: FairShare { n_avg: 1.0, gpus: 1.0, part: 1.0 },
            first_gpu_us: None,
            end_us: None,
            gpu_end_us: None,
            run_milli_us: 0,
            switching_milli_us: 0,
            lost_milli_us: 0,
            paced_gpu_us: 0.0,
            last_rho: None,
            empty_since_us: spec.arrival_us,
        }
    }

    /// Changes how many GPUs it holds; without any, it waits from now on.
    pub(crate) fn set_gpus(&mut self, gpus: u32, now_us: i64) {
        if gpus == 0 && self.gpus > 0 {
            self.empty_since_us = now_us;
        }
        self.gpus = gpus;
    }

    /// Microseconds since it last held GPUs, or arrived; 0 while it holds some, expired or not.
    pub(crate) fn waited_us(&self, now_us: i64) -> i64 {
        if self.gpus > 0 { 0 } else { now_us - self.empty_since_us }
    }

    /// Takes in a job that wants up to `max` GPUs.
    pub(crate) fn open_job(&mut self, job: u32, max: u32) {
        if let Err(at) = self.open.binary_search(&job) {
            self.open.insert(at, job);
            self.demand += u64::from(max);
        }
    }

    /// Counts a job in the ideal time.
    pub(crate) fn expect(&mut self, spec: &JobSpec) {
        let work_gpu_s = spec.work_gpu_us / 1e6;
        let gpus = spec.profile.pace(spec.max.min(self.cap), spec.gang) * spec.share();
        let new = Demand { work_gpu_s, gpus, longest_s: work_gpu_s / gpus };
        match (self.ideal.waits_for, self.ideal.submitted.first_mut()) {
            // Jobs that all run at once are one phase.
            (Stopping::All, Some(all)) => {
                all.work_gpu_s += new.work_gpu_s;
                all.gpus = (all.gpus + new.gpus).min(f64::from(self.cap));
                all.longest_s = all.longest_s.max(new.longest_s);
            }
            _ => self.ideal.submitted.push(new),
        }
    }

    /// Lets go of a job that ended or paused.
    pub(crate) fn close_job(&mut self, job: u32, max: u32) {
        if let Ok(at) = self.open.binary_search(&job) {
            self.open.remove(at);
            self.demand -= u64::from(max);
        }
    }

    /// GPUs that it could use beyond those it keeps.
    pub(crate) fn unmet(&self) -> u32 {
        let most = self.demand.min(u64::from(self.cap)) as u32;
        most.saturating_sub(self.gpus - self.expired)
    }

    /// True when a job that wants GPUs was submitted.
    pub(crate) fn has_submitted(&self) -> bool {
        !self.ideal.submitted.is_empty()
    }
}
