//! What a policy sees: a read-only snapshot of the instant at which it decides.

mod reports;

pub use reports::Candidate;

use std::collections::BTreeSet;

use crate::contention::Contention;
use crate::seats::WHOLE_MILLI;
use crate::state::{FairShare, Ideal, Lines, State};
use crate::workload::{AppSpec, Claim, JobSpec};
use themis_core::app::{Demand, Speeds};
use themis_core::auction::Rules;
use themis_core::cluster::{Bundle, FreeSet, Host, Topology};
use themis_core::fairness::TIdReading;
use themis_core::schedulers::AppScheduler;

/// The cluster, the offer and the apps at one instant.
pub struct View<'a> {
    state: &'a State<'a>,
    offer: &'a FreeSet,
}

impl std::fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View")
            .field("now_us", &self.state.now_us)
            .field("offered", &self.offer.total())
            .field("active", &self.state.active.len())
            .finish_non_exhaustive()
    }
}

impl<'a> View<'a> {
    pub(crate) fn new(state: &'a State<'a>, offer: &'a FreeSet) -> Self {
        Self { state, offer }
    }

    /// The free GPUs, those of expired leases among them, and the room that quotas leave.
    pub fn offer(&self) -> &'a FreeSet {
        self.offer
    }

    /// The cluster, with all that it ever has.
    pub fn topology(&self) -> &'a Topology {
        &self.state.topology
    }

    /// GPUs that the cluster has at present.
    pub fn gpus(&self) -> u32 {
        self.state.tenures.gpus()
    }

    /// The auction's rules.
    pub fn rules(&self) -> &Rules {
        &self.state.settings.rules
    }

    /// The apps that could use more than they keep, in tie order.
    pub fn wanting(&self) -> impl Iterator<Item = u32> + '_ {
        self.state.active.iter().copied().filter(|app| self.state.unmet(*app) > 0)
    }

    /// Apps that wait and ask for the same, line by line, each in tie order: alike in all but
    /// arrival, work and loss, and in whether their loss is known. None for a policy that does not
    /// ask by lines.
    pub fn lines(&self) -> impl Iterator<Item = &'a BTreeSet<u32>> + use<'a> {
        self.state.lines.iter().flat_map(Lines::lines)
    }

    /// The apps in want that are in no line, in tie order.
    pub fn apart(&self) -> Vec<u32> {
        let lines = self.state.lines.as_ref();
        lines.map_or_else(|| self.wanting().collect(), |lines| lines.apart().collect())
    }

    /// Whether the loss of an app's first job is known.
    pub fn knows_loss(&self, app: u32) -> bool {
        self.spec(self.state.workload.apps[app as usize].first_job).curve.is_some()
    }

    /// Now.
    pub fn now_us(&self) -> i64 {
        self.state.now_us
    }

    /// Length of a lease.
    pub fn lease_s(&self) -> f64 {
        self.state.settings.lease_us as f64 / 1e6
    }

    /// The active apps, in tie order.
    pub fn active_apps(&self) -> impl Iterator<Item = u32> + '_ {
        self.state.active.iter().copied()
    }

    /// The active apps from a number on, in tie order.
    pub fn active_from(&self, app: u32) -> &'a [u32] {
        let active = &self.state.active;
        &active[active.partition_point(|other| *other < app)..]
    }

    /// Whether an app has arrived and is not done.
    pub fn is_active(&self, app: u32) -> bool {
        self.state.active.binary_search(&app).is_ok()
    }

    /// 1 over an app's fair share at present: with equal weights and no tenants, the number of
    /// active apps.
    pub fn contention(&self, app: u32) -> f64 {
        self.state.contention.now(&self.state.workload.apps[app as usize])
    }

    /// What an app was given as.
    pub(crate) fn app_spec(&self, app: u32) -> &'a AppSpec {
        &self.state.workload.apps[app as usize]
    }

    /// How the tenants there are would share, while nobody is active.
    pub(crate) fn sharing_of_none(&self) -> Contention {
        Contention::new(&self.state.workload.tenants)
    }

    /// When an app arrived.
    pub fn arrival_us(&self, app: u32) -> i64 {
        self.state.apps[app as usize].arrival_us
    }

    /// The ideal time of an app on all that the cluster ever has, by how many share it.
    pub fn fair_time(&self, app: u32) -> FairTime {
        let ideal = self.state.apps[app as usize].ideal.clone();
        let budget = self.scheduler(app).budget().map(<[Demand]>::to_vec);
        FairTime { ideal, budget, gpus: f64::from(self.topology().gpus()) }
    }

    /// Whether an app has one job, which was submitted, and nobody who changes what it asks for.
    pub fn is_lone(&self, app: u32) -> bool {
        let is_known = self.state.apps[app as usize].has_submitted();
        let spec = &self.state.workload.apps[app as usize];
        spec.jobs == 1 && is_known && self.scheduler(app).is_plain()
    }

    /// Whether the ideal times of two lone apps, which may be over, grow alike with those who share:
    /// their jobs are of the same pace at most and the same speeds.
    pub fn slow_down_alike(&self, a: u32, b: u32) -> bool {
        let demand = |app: u32| {
            let spec = &self.state.workload.apps[app as usize];
            let job = self.spec(spec.first_job);
            let most = job.profile.pace(job.max.min(spec.max_gpus), job.gang);
            (most, job.gpu_milli, &job.speeds)
        };
        demand(a) == demand(b)
    }

    /// GPU-microseconds that an app has held so far.
    pub fn attained_gpu_us(&self, app: u32) -> i64 {
        let run = &self.state.apps[app as usize];
        let since_account: i128 = run
            .open
            .iter()
            .map(|job| self.state.jobs[*job as usize].recent_milli_us(self.state.now_us))
            .sum();
        whole_us(run.run_milli_us + run.switching_milli_us + since_account)
    }

    /// GPU-microseconds that a job has held so far.
    pub fn job_attained_gpu_us(&self, job: u32) -> i64 {
        let run = &self.state.jobs[job as usize];
        whole_us(run.used_milli_us() + run.recent_milli_us(self.state.now_us))
    }

    /// When a job was submitted.
    pub fn submit_us(&self, job: u32) -> i64 {
        self.spec(job).submit_us
    }

    /// Whether an app reports itself as it is.
    pub fn tells_truth(&self, app: u32) -> bool {
        self.state.workload.apps[app as usize].claim == Claim::TRUE
    }

    /// Jobs without GPUs by (submission, number).
    pub fn waiting_jobs(&self) -> impl Iterator<Item = u32> + '_ {
        self.state.waiting.iter().map(|(_, job)| *job)
    }

    /// Jobs with GPUs: number, GPUs, and since when it has had these; of those that share a GPU, the
    /// one that asks for it longest.
    pub fn running_jobs(&self) -> impl Iterator<Item = (u32, &Bundle, i64)> + '_ {
        let open = self.active_apps().flat_map(|app| &self.state.apps[app as usize].open);
        open.filter_map(|job| {
            let run = &self.state.jobs[*job as usize];
            let stands_for_all = || run.gpus.iter().all(|gpu| self.stays_longest(*gpu, *job));
            (!run.gpus.is_empty() && stands_for_all()).then_some((
                *job,
                &run.bundle,
                run.switched_us,
            ))
        })
    }

    /// Whether a job asks for a GPU no shorter than those with whom it shares it.
    fn stays_longest(&self, gpu: u32, job: u32) -> bool {
        let until = |job: u32| {
            let since_us = self.state.jobs[job as usize].switched_us;
            (since_us.saturating_add(self.requested_us(job)), job)
        };
        let seats = self.state.tenures.seats.on(gpu);
        seats.iter().all(|seat| until(seat.job) <= until(job))
    }

    /// The time that a job's user asks for: its whole work on its gang, perfectly placed, times
    /// `request_factor`.
    pub fn requested_us(&self, job: u32) -> i64 {
        let spec = self.spec(job);
        let alone_us = spec.work_gpu_us / (f64::from(spec.gang.max(1)) * spec.share());
        (alone_us * self.state.settings.request_factor).ceil() as i64
    }

    /// The loss of a job after so much more work, where its curve is known.
    pub fn loss_after(&self, job: u32, more_gpu_s: f64) -> Option<f64> {
        let (spec, run) = (self.spec(job), &self.state.jobs[job as usize]);
        let left = (run.work_left_at(self.state.now_us) - more_gpu_s * 1e6).max(0.0);
        let share = 1.0 - left / spec.work_gpu_us;
        Some(spec.curve?.at(spec.iterations? * share))
    }

    /// Whose an app is.
    pub fn tenant(&self, app: u32) -> u32 {
        self.state.workload.apps[app as usize].tenant
    }

    /// GPUs that an app's cap still allows.
    pub fn spare(&self, app: u32) -> u32 {
        let run = &self.state.apps[app as usize];
        run.cap - (run.gpus - run.expired)
    }

    /// Fewest GPUs with which a job runs.
    pub fn gang(&self, job: u32) -> u32 {
        self.spec(job).gang
    }

    /// Which GPU types a job may use, and how fast it runs on them.
    pub fn speeds(&self, job: u32) -> &'a Speeds {
        &self.spec(job).speeds
    }

    /// What each of its GPUs needs of its machine.
    pub fn needs(&self, job: u32) -> Host {
        self.state.needs_of(job)
    }

    /// The app of a job.
    pub fn app_of(&self, job: u32) -> u32 {
        self.spec(job).app
    }

    fn spec(&self, job: u32) -> &'a JobSpec {
        &self.state.workload.jobs[job as usize]
    }

    fn scheduler(&self, app: u32) -> &dyn AppScheduler {
        self.state.schedulers[app as usize].as_ref()
    }

    fn number_within(&self, job: u32) -> usize {
        (job - self.state.workload.apps[self.spec(job).app as usize].first_job) as usize
    }

    /// The unfinished jobs of an app that want GPUs, by number.
    pub fn open_jobs(&self, app: u32) -> &'a [u32] {
        &self.state.apps[app as usize].open
    }
}

/// The `demand_capped` ideal time of an app, kept beyond its end.
#[derive(Clone, Debug)]
pub struct FairTime {
    ideal: Ideal,
    budget: Option<Vec<Demand>>,
    gpus: f64,
}

impl FairTime {
    /// Seconds as one of `n`.
    pub fn among_s(&self, n: f64) -> f64 {
        let share = FairShare { n_avg: n, gpus: self.gpus, part: 1.0 };
        let ideal_s = self.ideal.time_s(self.budget.as_deref(), TIdReading::DemandCapped, share);
        ideal_s.max(f64::MIN_POSITIVE)
    }
}

/// Whole microseconds of GPU time in thousandths.
fn whole_us(milli_us: i128) -> i64 {
    (milli_us / i128::from(WHOLE_MILLI)) as i64
}
