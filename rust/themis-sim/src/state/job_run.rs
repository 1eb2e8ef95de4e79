//! One job's life.

use crate::settings::Settings;
use crate::state::AppRun;
use crate::workload::JobSpec;
use themis_core::app::Job;
use themis_core::cluster::{Bundle, Host, Topology};

/// Where a job stands. It ends in exactly one of the final phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum JobPhase {
    /// Not submitted yet.
    Future = 0,
    /// Submitted and unfinished.
    Open = 1,
    Done = 2,
    Killed = 3,
    /// Wants more GPUs than the cluster has of its types.
    Infeasible = 4,
    /// Cut off by the horizon.
    Unfinished = 5,
    /// At its goal, and not told to go on: unfinished, without GPUs.
    Paused = 6,
    /// Refused by the policy.
    Rejected = 7,
    /// The cluster became too small for it, for good.
    Failed = 8,
}

impl JobPhase {
    pub(crate) fn is_final(self) -> bool {
        !matches!(self, Self::Future | Self::Open | Self::Paused)
    }
}

/// GPUs that a job has just lost, and the switch that it had made to them.
#[derive(Clone, Debug)]
struct Lost {
    at_us: i64,
    gpus: Vec<u32>,
    switched_us: i64,
    productive_us: i64,
}

/// A job during a run.
#[derive(Clone, Debug)]
pub(crate) struct JobRun {
    pub(crate) phase: JobPhase,
    /// GPU-microseconds still to do, as of `since_us`.
    pub(crate) work_left: f64,
    /// Those of them that lie beyond its present goal.
    pub(crate) beyond: f64,
    /// Most GPUs that it can use at present.
    pub(crate) max: u32,
    /// Why it ended otherwise than done.
    pub(crate) reason: Option<Box<str>>,
    /// Its GPUs, sorted.
    pub(crate) gpus: Vec<u32>,
    /// Their counts.
    pub(crate) bundle: Bundle,
    /// Those of them whose lease has just run out, sorted; only set during a decision.
    pub(crate) expired: Vec<u32>,
    /// GPU-microseconds of work a microsecond, once productive.
    pub(crate) rate: f64,
    /// GPU-microseconds a microsecond that distance alone leaves of its GPUs.
    paced: f64,
    /// The best rate anywhere in the cluster.
    best_rate: f64,
    since_us: i64,
    /// All that it did by then is saved.
    saved_us: i64,
    /// GPUs of it have failed since it last began to run.
    pub(crate) crashed: bool,
    /// The last switch began here...
    pub(crate) switched_us: i64,
    /// ...and is over from here on.
    pub(crate) productive_us: i64,
    /// Voids planned ends when the GPUs change.
    pub(crate) epoch: u32,
    pub(crate) start_us: Option<i64>,
    pub(crate) end_us: Option<i64>,
    /// Thousandths of each GPU that it uses.
    milli: u32,
    /// Microseconds of GPUs held, whatever it uses of them.
    gpu_us: i64,
    pub(crate) preemptions: u32,
    pub(crate) migrations: u32,
    /// The last GPUs that it lost, where decisions of one instant may give them back.
    lost: Option<Lost>,
    /// The first start that it was promised.
    pub(crate) promised_us: Option<i64>,
    pub(crate) failures: u32,
    /// The same of running time whose work was lost.
    lost_gpu_us: i64,
}

impl JobRun {
    /// A job whose goal is all of its work, with at most `cap` GPUs for its whole app.
    pub(crate) fn new(spec: &JobSpec, needs: Host, cap: u32, topology: &Topology) -> Self {
        let max = spec.max.min(cap);
        let job = Job::waiting(spec.gang, max, spec.work_gpu_us, spec.profile.clone())
            .with_speeds(spec.speeds.clone())
            .with_needs(needs);
        Self {
            phase: JobPhase::Future,
            work_left: spec.work_gpu_us,
            beyond: 0.0,
            max,
            reason: None,
            gpus: Vec::new(),
            bundle: Bundle::new(),
            expired: Vec::new(),
            rate: 0.0,
            paced: 0.0,
            best_rate: job.best_rate(topology),
            since_us: spec.submit_us,
            saved_us: spec.submit_us,
            crashed: false,
            switched_us: spec.submit_us,
            productive_us: spec.submit_us,
            epoch: 0,
            start_us: None,
            end_us: None,
            milli: spec.gpu_milli,
            gpu_us: 0,
            preemptions: 0,
            migrations: 0,
            lost: None,
            promised_us: None,
            failures: 0,
            lost_gpu_us: 0,
        }
    }

    /// The best rate anywhere in the cluster: GPU-microseconds of work a microsecond.
    pub(crate) fn best_rate(&self) -> f64 {
        self.best_rate
    }

    /// True when it runs slower than it could somewhere.
    pub(crate) fn is_misplaced(&self) -> bool {
        !self.gpus.is_empty() && self.rate < self.best_rate * (1.0 - 1e-12)
    }

    /// GPU-microseconds of work left at `now`.
    pub(crate) fn work_left_at(&self, now_us: i64) -> f64 {
        (self.work_left - self.rate * self.run_time(now_us) as f64).max(self.beyond)
    }

    /// Goes back to the last checkpoint; call after [`JobRun::account`]. A job saves its state when
    /// it begins to work, when it gets a goal, and as often as `every_us` says after that.
    pub(crate) fn set_back(&mut self, spec: &JobSpec, every_us: Option<i64>, app: &mut AppRun) {
        let saved_us = self.saved_us.max(self.productive_us);
        let worked_us = (self.since_us - saved_us).max(0);
        let lost_us = every_us.map_or(worked_us, |every_us| worked_us % every_us);
        let lost = self.rate * lost_us as f64;
        self.work_left = (self.work_left + lost).min(spec.work_gpu_us);
        self.failures += 1;
        self.crashed = true;
        let lost_gpu_us = self.gpus.len() as i64 * lost_us;
        self.lost_gpu_us += lost_gpu_us;
        app.lost_milli_us += self.in_milli(lost_gpu_us);
    }

    /// Sets a goal; call after [`JobRun::account`]. Voids the planned end.
    pub(crate) fn aim(
        &mut self,
        beyond: f64,
        max: u32,
        (spec, needs): (&JobSpec, Host),
        topology: &Topology,
    ) {
        self.epoch += 1;
        self.beyond = beyond;
        self.saved_us = self.since_us;
        if max != self.max {
            self.max = max;
            self.best_rate = self.bare(spec).with_needs(needs).best_rate(topology);
            self.set_rate(spec, topology);
        }
    }

    /// The rate on the GPUs that it has.
    fn set_rate(&mut self, spec: &JobSpec, topology: &Topology) {
        self.rate = self.bare(spec).rate_on(topology, &self.bundle);
        let slowdown = spec.profile.slowdown(topology.locality(&self.bundle));
        let gpus = if self.rate > 0.0 { self.bundle.gpus().min(self.max) } else { 0 };
        self.paced = f64::from(gpus) / slowdown * spec.share();
    }

    /// The job without GPUs or work, as a reckoner of rates.
    fn bare(&self, spec: &JobSpec) -> Job {
        Job::waiting(spec.gang, self.max, 0.0, spec.profile.clone())
            .with_speeds(spec.speeds.clone())
    }

    /// Microseconds since the last account in which it worked.
    fn run_time(&self, now_us: i64) -> i64 {
        if self.gpus.is_empty() {
            0
        } else {
            (now_us - self.since_us.max(self.productive_us)).max(0)
        }
    }

    /// Thousandths of GPUs that it uses.
    pub(crate) fn milli_gpus(&self) -> i64 {
        self.gpus.len() as i64 * i64::from(self.milli)
    }

    /// What it uses of microseconds of GPUs held, in thousandths.
    fn in_milli(&self, gpu_us: i64) -> i128 {
        i128::from(gpu_us) * i128::from(self.milli)
    }

    /// Thousandths of GPU-microseconds used since the last account.
    pub(crate) fn recent_milli_us(&self, now_us: i64) -> i128 {
        self.in_milli(self.gpus.len() as i64 * (now_us - self.since_us))
    }

    /// Those used by the last account.
    pub(crate) fn used_milli_us(&self) -> i128 {
        self.in_milli(self.gpu_us)
    }

    /// Those whose work was lost.
    pub(crate) fn lost_milli_us(&self) -> i128 {
        self.in_milli(self.lost_gpu_us)
    }

    /// Splits the time since the last account into switching and running.
    pub(crate) fn account(&mut self, now_us: i64, app: &mut AppRun) {
        let gpus = self.gpus.len() as i64;
        let (run, all) = (self.run_time(now_us), now_us - self.since_us);
        self.work_left = self.work_left_at(now_us);
        self.since_us = now_us;
        self.gpu_us += gpus * all;
        app.run_milli_us += self.in_milli(gpus * run);
        app.switching_milli_us += self.in_milli(gpus * (all - run));
        app.paced_gpu_us += self.paced * run as f64;
    }

    /// From when on its GPUs work, and how many thousandths they are.
    pub(crate) fn working(&self, now_us: i64) -> (i64, i64) {
        (self.productive_us.max(now_us), self.milli_gpus())
    }

    /// Whether it has been given GPUs at this very instant already.
    pub(crate) fn switches_at(&self, now_us: i64) -> bool {
        !self.gpus.is_empty() && self.switched_us == now_us
    }

    /// Goes on with other GPUs (or none); call after [`JobRun::account`].
    pub(crate) fn restart(
        &mut self,
        spec: &JobSpec,
        gpus: Vec<u32>,
        bundle: Bundle,
        topology: &Topology,
        settings: &Settings,
        now_us: i64,
    ) {
        self.epoch += 1;
        if gpus.is_empty() {
            let (switched_us, productive_us) = (self.switched_us, self.productive_us);
            let gpus = self.gpus.clone();
            self.lost = Some(Lost { at_us: now_us, gpus, switched_us, productive_us });
        }
        let is_switching = self.switches_at(now_us);
        (self.gpus, self.bundle) = (gpus, bundle);
        self.set_rate(spec, topology);
        self.expired.clear();
        if is_switching && !self.gpus.is_empty() {
            self.crashed = false;
            return; // the same switch, at the same cost
        }
        (self.switched_us, self.productive_us) = (now_us, now_us);
        if self.gpus.is_empty() {
            return;
        }
        if let Some(lost) = self.lost.take().filter(|lost| lost.at_us == now_us) {
            self.preemptions -= u32::from(!self.crashed);
            if lost.gpus == self.gpus {
                // It has what it lost at this instant: nothing happened.
                (self.switched_us, self.productive_us) = (lost.switched_us, lost.productive_us);
                return;
            }
            self.migrations += u32::from(!self.crashed);
        }
        if self.start_us.is_some() {
            let checkpoint_us = spec.checkpoint_us.unwrap_or(settings.checkpoint_us);
            // After a crash there was nothing that could be saved.
            let checkpoint_us = if self.crashed { 0 } else { checkpoint_us };
            self.productive_us += checkpoint_us + settings.restart_us;
        }
        self.crashed = false;
        self.start_us.get_or_insert(now_us);
    }

    /// When it reaches its goal if nothing changes: rounded up to a microsecond, but for binary
    /// dust.
    pub(crate) fn end_at(&self) -> i64 {
        let run = ((self.work_left - self.beyond) / self.rate - 1e-3).ceil().max(0.0);
        self.since_us.max(self.productive_us).saturating_add(run as i64)
    }

    /// Gives up its GPUs, of its own accord: no preemption.
    pub(crate) fn stand_idle(&mut self) {
        self.epoch += 1;
        self.rate = 0.0;
        self.bundle = Bundle::new();
        self.expired.clear();
    }

    /// Ends in a final phase, idle by then.
    pub(crate) fn finish(&mut self, phase: JobPhase, now_us: i64) {
        let submitted = self.phase != JobPhase::Future;
        self.phase = phase;
        let ended = matches!(
            phase,
            JobPhase::Done | JobPhase::Killed | JobPhase::Rejected | JobPhase::Failed
        );
        if submitted && ended {
            self.end_us = Some(now_us);
        }
    }
}
