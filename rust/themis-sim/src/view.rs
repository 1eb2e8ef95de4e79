//! What a policy sees: a read-only snapshot of the instant at which it decides.

use std::collections::BTreeSet;

use crate::seats::WHOLE_MILLI;
use crate::state::{FairShare, Ideal, Lines, State};
use crate::workload::{Claim, JobSpec};
use themis_core::app::{Alone, AppState, Demand, Job, OwnGpus, Speeds};
use themis_core::auction::{Rules, Standing};
use themis_core::cluster::{Bundle, FreeSet, Host, Topology};
use themis_core::fairness::{FilterKey, OutsideContext, TIdReading};
use themis_core::schedulers::AppScheduler;

/// An app with the numbers of its jobs.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The app's number.
    pub app: u32,
    /// The job numbers, beside `state.jobs`.
    pub jobs: Vec<u32>,
    /// The app as its agent reports it.
    pub state: AppState,
}

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

    /// An unfinished job.
    pub fn job(&self, job: u32) -> Job {
        let spec = self.spec(job);
        let run = &self.state.jobs[job as usize];
        let (held, previous) = if run.expired.is_empty() {
            (run.bundle.clone(), Bundle::new())
        } else if run.expired.len() == run.gpus.len() {
            (Bundle::new(), self.state.tenures.staying(&run.gpus))
        } else {
            let kept = |gpu: &&u32| run.expired.binary_search(gpu).is_err();
            let kept: Vec<u32> = run.gpus.iter().filter(kept).copied().collect();
            (self.state.tenures.bundle(&kept), self.state.tenures.staying(&run.expired))
        };
        Job {
            gang: spec.gang,
            max: run.max,
            work_left_gpu_s: self.work_left_gpu_s(job),
            profile: spec.profile.clone(),
            speeds: spec.speeds.clone(),
            needs: self.needs(job),
            held,
            previous,
            rank: self.scheduler(spec.app).rank(self.number_within(job)),
        }
    }

    /// GPU-seconds to a job's goal, or to where its app expects to be content with it.
    fn work_left_gpu_s(&self, job: u32) -> f64 {
        let (spec, run) = (self.spec(job), &self.state.jobs[job as usize]);
        let left_us = run.work_left_at(self.state.now_us);
        let expected_gpu_s = self.scheduler(spec.app).expected_gpu_s(self.number_within(job));
        let beyond_us = expected_gpu_s.map_or(run.beyond, |all| spec.work_gpu_us - all * 1e6);
        // Never less than a job still does before anybody looks at it again.
        (left_us - beyond_us.min(run.beyond)).max(0.0) / 1e6
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

    /// What an auction knows of an app before it asks for its report.
    pub fn standing(&self, app: u32) -> Standing {
        let resumes = self.state.apps[app as usize].expired > 0;
        Standing { rank: self.rank(app), resumes }
    }

    /// An app as it is.
    pub fn app(&self, app: u32) -> Candidate {
        self.candidate(app, Claim::TRUE)
    }

    /// An app as its agent reports it: with its errors and lies.
    pub fn reported(&self, app: u32) -> Candidate {
        self.candidate(app, self.state.workload.apps[app as usize].claim)
    }

    /// The apps that could use more than they keep, as their agents report them, in tie order.
    pub fn reports(&self) -> impl Iterator<Item = Candidate> + '_ {
        self.wanting().map(|app| self.reported(app))
    }

    fn candidate(&self, app: u32, claim: Claim) -> Candidate {
        let run = &self.state.apps[app as usize];
        let settings = &self.state.settings;
        let (now_us, topology) = (self.state.now_us, self.topology());
        let share = self.state.share(app);
        let jobs = run.open.to_vec();
        let mut state = AppState {
            elapsed_s: self.elapsed_s(app),
            t_id_s: self.t_id_s(app, share),
            stopping: run.ideal.waits_for,
            jobs: jobs.iter().map(|job| self.job(*job)).collect(),
            later: self.scheduler(app).later().to_vec(),
            cap: run.cap,
            tenant: self.tenant(app),
            rho_empty: None,
        };
        if claim != Claim::TRUE {
            for job in &mut state.jobs {
                job.work_left_gpu_s *= claim.work;
                job.profile = job.profile.claimed(claim.slowdown, claim.excess);
            }
            for phase in &mut state.later {
                phase.work_gpu_s *= claim.work;
                phase.longest_s *= claim.work;
            }
        }
        let waited_s = run.waited_us(now_us) as f64 / 1e6;
        let context = OutsideContext {
            lease_s: settings.lease_us as f64 / 1e6,
            gpus: run.ideal.own_gpus.all()
                * (f64::from(self.gpus().max(1)) / f64::from(topology.gpus())),
            n_avg: share.n_avg,
            last: run.last_rho.map(|rho| (rho, waited_s)),
        };
        state.rho_empty = settings.outside_option.rho_empty(&state, topology, context);
        Candidate { app, jobs, state }
    }

    fn elapsed_s(&self, app: u32) -> f64 {
        (self.state.now_us - self.arrival_us(app)) as f64 / 1e6
    }

    fn t_id_s(&self, app: u32, share: FairShare) -> f64 {
        self.state.t_id_s(app, share).max(f64::MIN_POSITIVE)
    }

    /// rho of an app, as its agent reports it, if the whole cluster were its own from now on.
    pub fn best_case(&self, app: u32) -> f64 {
        if !self.tells_truth(app) {
            return self.reported(app).state.best_rho(self.topology());
        }
        // The same of the truth, which is at hand: most apps are never asked for more.
        let run = &self.state.apps[app as usize];
        let jobs = || run.open.iter().copied();
        let own_gpus = OwnGpus::of(self.topology(), jobs().map(|job| self.speeds(job)));
        let alone = Alone {
            stopping: run.ideal.waits_for,
            all: own_gpus.rate(f64::from(run.cap), 1.0),
            later: self.scheduler(app).later(),
        };
        let best = |job: u32| self.state.jobs[job as usize].best_rate();
        let alone_s = alone.time_s(jobs().map(|job| (self.work_left_gpu_s(job), best(job))));
        (self.elapsed_s(app) + alone_s) / self.t_id_s(app, self.state.share(app))
    }

    /// What the filter ranks an app by: (key, second key), larger is worse off.
    pub fn rank(&self, app: u32) -> (f64, f64) {
        let run = &self.state.apps[app as usize];
        match (self.state.settings.filter_key, run.last_rho) {
            (FilterKey::BestCase, _) | (FilterKey::Cached, None) => (self.best_case(app), 0.0),
            (FilterKey::Holdings, _) => {
                let state = self.reported(app).state;
                let rates = state.held_rates(self.topology());
                (state.rho_at(&rates), state.best_rho(self.topology()))
            }
            (FilterKey::Cached, Some(rho)) => {
                (rho * (1.0 + run.waited_us(self.state.now_us) as f64 / 60e6), 0.0)
            }
        }
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
