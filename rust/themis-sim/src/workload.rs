//! Apps and jobs as numbered specs.

use crate::error::SimError;
use crate::seats::WHOLE_MILLI;
use crate::settings::LATEST_US;
use themis_core::app::{Profile, Speeds};
use themis_core::cluster::{Host, Locality};
use themis_core::schedulers::{LossCurve, SchedulerKind};

/// An app: its jobs are a range of the job list.
#[derive(Clone, Debug, PartialEq)]
pub struct AppSpec {
    /// When it arrives.
    pub arrival_us: i64,
    /// What schedules its jobs, and says when it is done.
    pub stopping: SchedulerKind,
    /// Most GPUs that it may hold in all.
    pub max_gpus: u32,
    /// The loss at which a search by performance curves is content.
    pub target_loss: Option<f64>,
    /// What it makes of the truth in its bids.
    pub claim: Claim,
    /// Its part of what its tenant has, among the active apps of that tenant.
    pub weight: f64,
    /// Position in [`Workload::tenants`]; 0 where there are none.
    pub tenant: u32,
    /// Number of its first job.
    pub first_job: u32,
    /// How many jobs it has.
    pub jobs: u32,
}

impl AppSpec {
    /// The numbers of its jobs.
    pub fn job_ids(&self) -> std::ops::Range<u32> {
        self.first_job..self.first_job + self.jobs
    }
}

/// Apps that share what one owner has.
#[derive(Clone, Debug, PartialEq)]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// Its part of what no active tenant is guaranteed.
    pub weight: f64,
    /// The part of the cluster that it has whoever else is active.
    pub guaranteed: f64,
    /// (from when, most GPUs that its apps hold at one time), by time; any number before the first.
    pub quota: Vec<(i64, u32)>,
}

/// By what an app's bids differ from the truth, in error or on purpose: factors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// On its work.
    pub work: f64,
    /// On its slowdowns.
    pub slowdown: f64,
    /// On the part of them above 1.
    pub excess: f64,
}

impl Claim {
    /// The truth.
    pub const TRUE: Self = Self { work: 1.0, slowdown: 1.0, excess: 1.0 };

    fn is_valid(&self) -> bool {
        let fine = |factor: &f64| factor.is_finite() && *factor >= 0.0;
        self.work > 0.0 && [self.work, self.slowdown, self.excess].iter().all(fine)
    }
}

/// A job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSpec {
    /// Number of its app.
    pub app: u32,
    /// When it is submitted; not before its app arrives.
    pub submit_us: i64,
    /// Work in GPU-microseconds at one GPU of the type that suits it best, perfectly placed; of a
    /// job of no GPUs, its duration in microseconds.
    pub work_gpu_us: f64,
    /// Fewest GPUs with which it runs; 0: it takes none.
    pub gang: u32,
    /// Most GPUs that it can use.
    pub max: u32,
    /// Its slowdowns.
    pub profile: Profile,
    /// The GPU types that it may use.
    pub speeds: Speeds,
    /// Its own time for a checkpoint, else the setting.
    pub checkpoint_us: Option<i64>,
    /// Iterations of its whole work, where known.
    pub iterations: Option<f64>,
    /// Its loss by iterations, where known.
    pub curve: Option<LossCurve>,
    /// The bracket of a halving search that it belongs to.
    pub bracket: u32,
    /// Thousandths of its GPU that it uses; below 1000 only for a job of one GPU, whose `speeds` are
    /// those of its share.
    pub gpu_milli: u32,
    /// What each of its GPUs needs of its machine: a position in [`Workload::needs`]; 0 where there
    /// are none.
    pub needs: u32,
}

impl JobSpec {
    /// Whether it uses a share of one GPU.
    pub(crate) fn is_fraction(&self) -> bool {
        self.gpu_milli < WHOLE_MILLI
    }

    /// The share of each of its GPUs that it uses.
    pub(crate) fn share(&self) -> f64 {
        f64::from(self.gpu_milli) / f64::from(WHOLE_MILLI)
    }
}

/// Shares that differ by less are the same.
const DUST: f64 = 1e-9;
const WEIGHTS: &str = "a number from 1e-9 to 1e9";

/// Weights so far apart still divide a cluster.
fn is_weight(weight: f64) -> bool {
    (1e-9..=1e9).contains(&weight)
}

/// Apps numbered by (arrival, app id) and jobs numbered app by app.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Workload {
    /// The apps.
    pub apps: Vec<AppSpec>,
    /// The jobs.
    pub jobs: Vec<JobSpec>,
    /// The tenants; none: all apps are alike.
    pub tenants: Vec<Tenant>,
    /// What whole GPUs of jobs need of their machines beside ([`Workload::needs_of`]); none: nothing.
    pub needs: Vec<Host>,
}

impl Workload {
    /// Refuses what the engine could not run.
    ///
    /// # Errors
    /// [`SimError::Workload`] naming the first app or job that breaks a rule.
    pub fn check(&self) -> Result<(), SimError> {
        let mut next_job = 0;
        for (index, app) in self.apps.iter().enumerate() {
            let refuse = |field, value: String, expected| {
                Err(SimError::Workload { what: "app", index, field, value, expected })
            };
            if !(0..LATEST_US).contains(&app.arrival_us) {
                return refuse("arrival", app.arrival_us.to_string(), "a time from 0");
            }
            if index > 0 && app.arrival_us < self.apps[index - 1].arrival_us {
                return refuse("arrival", app.arrival_us.to_string(), "apps sorted by arrival");
            }
            if app.first_job != next_job || app.jobs == 0 {
                return refuse(
                    "jobs",
                    format!("{:?}", app.job_ids()),
                    "adjacent, non-empty ranges",
                );
            }
            if app.max_gpus == 0 {
                return refuse("max_gpus", app.max_gpus.to_string(), "at least 1");
            }
            if app.target_loss.is_some_and(|loss| !loss.is_finite()) {
                return refuse("target_loss", format!("{:?}", app.target_loss), "a finite number");
            }
            if !is_weight(app.weight) {
                return refuse("weight", app.weight.to_string(), WEIGHTS);
            }
            if app.tenant as usize >= self.tenants.len().max(1) {
                return refuse("tenant", app.tenant.to_string(), "the number of a tenant");
            }
            if !app.claim.is_valid() {
                return refuse("claim", format!("{:?}", app.claim), "factors of 0 or more");
            }
            next_job += app.jobs;
        }
        self.check_tenants()?;
        self.check_needs()?;
        if next_job as usize != self.jobs.len() {
            return Err(SimError::Workload {
                what: "job",
                index: next_job as usize,
                field: "app",
                value: self.jobs.len().to_string(),
                expected: "every job in the range of one app",
            });
        }
        self.jobs.iter().enumerate().try_for_each(|(index, job)| self.check_job(index, job))?;
        self.apps.iter().enumerate().try_for_each(|(index, app)| self.check_sum(index, app))
    }

    fn check_tenants(&self) -> Result<(), SimError> {
        for (index, tenant) in self.tenants.iter().enumerate() {
            let refuse = |field, value: f64, expected| {
                let value = value.to_string();
                Err(SimError::Workload { what: "tenant", index, field, value, expected })
            };
            if !is_weight(tenant.weight) {
                return refuse("weight", tenant.weight, WEIGHTS);
            }
            if !(0.0..=1.0).contains(&tenant.guaranteed) {
                return refuse("guaranteed", tenant.guaranteed, "a share from 0 to 1");
            }
            if !tenant.quota.is_sorted_by(|a, b| a.0 < b.0) {
                return refuse("quota", tenant.quota.len() as f64, "steps by time");
            }
        }
        let all: f64 = self.tenants.iter().map(|tenant| tenant.guaranteed).sum();
        let expected = "1 at most for all tenants together, less where one has none";
        let left = self.tenants.iter().all(|tenant| tenant.guaranteed > 0.0) || all < 1.0 - DUST;
        if all <= 1.0 + DUST && left {
            return Ok(());
        }
        let index = self.tenants.len() - 1;
        let value = all.to_string();
        Err(SimError::Workload { what: "tenant", index, field: "guaranteed", value, expected })
    }

    /// What a GPU of a job needs of its machine. A share of a GPU needs that part of what a whole one
    /// does: machines have their host resources in thousandths of the units of [`Workload::needs`],
    /// so that all parts are whole.
    pub fn needs_of(&self, job: &JobSpec) -> Host {
        let whole = self.needs.get(job.needs as usize);
        whole.map_or(Host::NONE, |need| need.times(job.gpu_milli))
    }

    fn check_needs(&self) -> Result<(), SimError> {
        let most = Host::MOST_A_GPU / i64::from(WHOLE_MILLI);
        let fits = |need: &Host| need.amounts().iter().all(|amount| (0..=most).contains(amount));
        let Some(index) = self.needs.iter().position(|need| !fits(need)) else { return Ok(()) };
        let value = format!("{:?}", self.needs[index].amounts());
        let expected = "0 or more, at most 1.3e8";
        Err(SimError::Workload { what: "need", index, field: "host", value, expected })
    }

    /// GPU time of an app is counted in 64-bit microseconds.
    fn check_sum(&self, index: usize, app: &AppSpec) -> Result<(), SimError> {
        let jobs = app.job_ids().map(|job| &self.jobs[job as usize]).filter(|job| job.gang > 0);
        let slowest = |job: &JobSpec| {
            job.profile.slowdown(Locality::Cluster) / job.speeds.pool(usize::MAX).speed
        };
        let jobs = jobs.filter(|job| !job.speeds.pools().is_empty());
        let most: f64 = jobs.map(|job| job.work_gpu_us * slowest(job)).sum();
        if most < LATEST_US as f64 {
            return Ok(());
        }
        Err(SimError::Workload {
            what: "app",
            index,
            field: "work",
            value: format!("{:e} GPU-seconds at its worst placement", most / 1e6),
            expected: "less than 4.6e12",
        })
    }

    fn check_job(&self, index: usize, job: &JobSpec) -> Result<(), SimError> {
        let refuse = |field, value: String, expected| {
            Err(SimError::Workload { what: "job", index, field, value, expected })
        };
        let app = self.apps.get(job.app as usize);
        let Some(app) = app.filter(|app| app.job_ids().contains(&(index as u32))) else {
            return refuse("app", job.app.to_string(), "the app whose range holds it");
        };
        if !(app.arrival_us..LATEST_US).contains(&job.submit_us) {
            return refuse("submit", job.submit_us.to_string(), "a time from its app's arrival");
        }
        if !(job.work_gpu_us >= 0.0 && job.work_gpu_us < LATEST_US as f64) {
            return refuse("work", job.work_gpu_us.to_string(), "finite and not negative");
        }
        if job.max < job.gang || job.max > 1 << 30 {
            return refuse("max_gpus", job.max.to_string(), "at least gang_size");
        }
        let one = job.gang == 1 && job.max == 1;
        let plain = matches!(app.stopping, SchedulerKind::All | SchedulerKind::First);
        if job.gpu_milli == 0 || job.gpu_milli > WHOLE_MILLI {
            return refuse("gpu_milli", job.gpu_milli.to_string(), "1 to 1000");
        }
        if job.is_fraction() && !(one && plain) {
            let expected = "1000, but for a job of one GPU of an app without a search";
            return refuse("gpu_milli", job.gpu_milli.to_string(), expected);
        }
        if job.needs as usize >= self.needs.len().max(1) {
            return refuse("needs", job.needs.to_string(), "the number of a need");
        }
        if job.gang > app.max_gpus {
            return refuse("gang", job.gang.to_string(), "no more than max_gpus of its app");
        }
        if job.iterations.is_some_and(|all| !(all.is_finite() && all > 0.0)) {
            return refuse("iterations", format!("{:?}", job.iterations), "a positive number");
        }
        if job.curve.is_some_and(|curve| !curve.is_valid() || job.iterations.is_none()) {
            let expected = "finite, a >= 0, b > 0, and iterations beside it";
            return refuse("loss curve", format!("{:?}", job.curve), expected);
        }
        if job.checkpoint_us.is_some_and(|us| !(0..LATEST_US).contains(&us)) {
            return refuse("checkpoint", format!("{:?}", job.checkpoint_us), "not negative");
        }
        Ok(())
    }
}
