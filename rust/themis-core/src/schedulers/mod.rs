//! App schedulers: the lower half of the two-level split (paper, section 4.3).
//!
//! An app is a search over jobs. The arbiter gives it GPUs and never looks inside; its scheduler
//! says how far each job runs, which are dropped, who is served first, and what is still to come.
//! One scheduler a file:
//!
//! | file | an app is done | poor jobs |
//! |---|---|---|
//! | [`plain`] (`all`, `fixed`) | with its last job | are kept |
//! | [`plain`] (`first`) | with its first job | are killed at its end |
//! | [`halving`] | with the last job of its last phase | the worse half is killed after each phase |
//! | [`performance_curve`] | with its last job, or at its target loss | are killed on their forecast |
//!
//! # The seam
//! Every job runs to a *goal* and reports there; [`AppScheduler::review`] answers with new goals
//! and with jobs to stop, and a job without a new goal pauses and leaves its GPUs to the others.
//! How GPUs are divided among the jobs that run, and what a bundle is worth, follows from the
//! [`AppState`](crate::app::AppState) that the answers make up: work to the goal
//! ([`AppScheduler::expected_gpu_s`]), order of service ([`AppScheduler::rank`]) and later phases
//! ([`AppScheduler::later`]). A scheduler sees what an agent could: losses up to now, no more.

pub mod curve;
pub mod halving;
pub mod performance_curve;
pub mod plain;

pub use curve::LossCurve;
pub use halving::PhaseCap;

use std::fmt::Debug;

use crate::app::{Demand, Stopping};

/// The built-in schedulers, by the `stopping` rule of an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SchedulerKind {
    /// Every job runs to its end.
    #[default]
    All,
    /// The first job that is done ends the app.
    First,
    /// Phases of ever fewer jobs.
    SuccessiveHalving,
    /// Jobs whose loss will not get low enough are killed.
    PerformanceCurve,
    /// Every job runs its own budget; the best is the answer.
    Fixed,
}

/// What the built-in schedulers are told beside their app.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SchedulerRules {
    /// How many GPUs a job can use in later phases of a halving search.
    pub phase_cap: PhaseCap,
    /// The share of a job's work between two looks at its loss curve.
    pub curve_step: f64,
    /// The standard error of an observed loss, as a share of the range seen so far.
    pub curve_error: f64,
}

impl Default for SchedulerRules {
    fn default() -> Self {
        Self { phase_cap: PhaseCap::Doubling, curve_step: 0.05, curve_error: 0.01 }
    }
}

impl SchedulerKind {
    /// A scheduler for one app, which may hold at most `cap` GPUs and is content with
    /// `target_loss`.
    pub fn scheduler(
        self,
        rules: &SchedulerRules,
        cap: u32,
        target_loss: Option<f64>,
    ) -> Box<dyn AppScheduler> {
        match self {
            Self::All | Self::Fixed => Box::new(plain::All),
            Self::First => Box::new(plain::First),
            Self::SuccessiveHalving => Box::new(halving::Halving::new(rules.phase_cap, cap)),
            Self::PerformanceCurve => {
                Box::new(performance_curve::PerformanceCurve::new(*rules, target_loss))
            }
        }
    }
}

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Not submitted yet.
    Future,
    /// On its way to its goal, with GPUs or without.
    Open,
    /// At its goal.
    AtGoal,
    /// Done.
    Done,
    /// Killed, or never able to run.
    Dropped,
}

/// What a scheduler sees of one of its jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobReport {
    /// Where it stands.
    pub standing: Standing,
    /// False for a job without work for GPUs, or of a larger gang than the cluster: it is no part
    /// of the search.
    pub competes: bool,
    /// GPU-seconds in all, should it run to its end.
    pub work_gpu_s: f64,
    /// GPU-seconds done.
    pub done_gpu_s: f64,
    /// Most GPUs that it can use, as submitted.
    pub max: u32,
    /// Iterations of its whole work, where known.
    pub iterations: Option<f64>,
    /// Its loss by now, where known.
    pub loss: Option<f64>,
    /// The bracket of a `HyperBand` search that it belongs to.
    pub bracket: u32,
    /// GPUs that it holds.
    pub gpus: u32,
    /// GPU-seconds of work a second on them, once it is over a switch.
    pub rate: f64,
}

impl JobReport {
    /// All of its work, or what is left of it.
    pub fn piece(&self, job: usize, whole: bool) -> Piece {
        let done = if whole { 0.0 } else { self.done_gpu_s };
        Piece { job: Some(job), work_gpu_s: (self.work_gpu_s - done).max(0.0), max: self.max }
    }

    /// Iterations done, where known.
    pub fn iterations_done(&self) -> Option<f64> {
        self.iterations.map(|all| all * self.done_gpu_s / self.work_gpu_s)
    }
}

/// An app as its scheduler sees it at one instant; jobs are numbered from 0 by (submission, id).
#[derive(Clone, Copy)]
pub struct AppView<'a> {
    /// Seconds since the app arrived.
    pub elapsed_s: f64,
    /// How many jobs it has.
    pub jobs: usize,
    /// Those that reached their goal or ended just now.
    pub reported: &'a [usize],
    /// Looks at one of them.
    pub job: &'a dyn Fn(usize) -> JobReport,
}

impl Debug for AppView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AppView").field("jobs", &self.jobs).finish_non_exhaustive()
    }
}

impl AppView<'_> {
    /// The jobs that take part in the search.
    pub fn competitors(&self) -> impl Iterator<Item = (usize, JobReport)> + '_ {
        (0..self.jobs).map(|job| (job, (self.job)(job))).filter(|(_, report)| report.competes)
    }
}

/// How far a job runs before it reports again, and on how many GPUs at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// GPU-seconds done in all when it is reached.
    pub until_gpu_s: f64,
    /// Most GPUs that the job can use on the way.
    pub max: u32,
}

/// A job that ends before its work does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Which job.
    pub job: usize,
    /// Whether it did what it was for (`done`), or is dropped (`killed`).
    pub done: bool,
    /// Why, in words.
    pub reason: String,
}

/// What a scheduler decides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// New goals; a job at its goal without a new one pauses.
    pub goals: Vec<(usize, Goal)>,
    /// Jobs that end now.
    pub stops: Vec<Stop>,
    /// The app is over: why its other jobs are killed.
    pub over: Option<String>,
}

/// Work that no schedule avoids: for the least time an app could take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// Which job does it; `None` where that is open, so that nothing slows it down.
    pub job: Option<usize>,
    /// GPU-seconds.
    pub work_gpu_s: f64,
    /// Most GPUs that it can use for it.
    pub max: u32,
}

/// Pieces that may run at once, phase after phase.
pub type Chain = Vec<Vec<Piece>>;

/// The work that no schedule avoids.
#[derive(Clone, Debug, PartialEq)]
pub enum Least {
    /// All of these chains, beside one another.
    Every(Vec<Chain>),
    /// One of them.
    Any(Vec<Chain>),
}

/// GPUs that a job gained and lost at one instant; both when it went on elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Which job.
    pub job: usize,
    /// GPUs that it has now and did not have.
    pub gained: u32,
    /// GPUs that it had and was not granted again.
    pub lost: u32,
}

/// A scheduler from outside could give no answer; whoever made it knows why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;

/// The decisions of an app scheduler. The defaults are those of an app whose jobs all run to their
/// ends.
pub trait AppScheduler: Debug {
    /// Decides when the app arrives (nothing has reported yet) and whenever jobs of it report.
    /// Until told otherwise a job's goal is its whole work.
    ///
    /// # Errors
    /// It has no answer; the run ends.
    fn review(&mut self, app: &AppView<'_>) -> Result<Verdict, Failed>;

    /// Whether it wants to hear of [`Move`]s.
    fn listens(&self) -> bool {
        false
    }

    /// Hears which of its jobs were granted GPUs or had some revoked, after a whole decision was
    /// carried out. GPUs that a job leaves when it ends or pauses are no news.
    ///
    /// # Errors
    /// It can't go on; the run ends.
    fn moved(&mut self, _app: &AppView<'_>, _moves: &[Move]) -> Result<(), Failed> {
        Ok(())
    }

    /// Whether it leaves the jobs of an app alone until one ends: none has a goal short of its work,
    /// and the ideal time follows from what was submitted.
    fn is_plain(&self) -> bool {
        false
    }

    /// Which jobs the app waits for.
    fn waits_for(&self) -> Stopping {
        Stopping::All
    }

    /// The phases after that of the running jobs, as estimated now.
    fn later(&self) -> &[Demand] {
        &[]
    }

    /// The budget B of the whole search, phase by phase, for `T_ID`; `None`: the work submitted.
    fn budget(&self) -> Option<&[Demand]> {
        None
    }

    /// GPU-seconds after which a running job is expected to have got where the app wants it;
    /// `None`: its goal.
    fn expected_gpu_s(&self, _job: usize) -> Option<f64> {
        None
    }

    /// The order of service among the app's waiting jobs: lower first.
    fn rank(&self, _job: usize) -> f64 {
        0.0
    }

    /// The work that no schedule avoids, from the start (`whole`) or from now on.
    fn least(&self, app: &AppView<'_>, whole: bool) -> Least {
        let pieces = app.competitors().map(|(job, report)| report.piece(job, whole));
        Least::Every(vec![vec![pieces.collect()]])
    }
}
