//! Successive halving, in one bracket or the several of `HyperBand` (Jamieson and Talwalkar 2016; Li
//! et al. 2018; paper, section 4.3.3).
//!
//! A bracket of n jobs has k phases of n, n/2, n/4, ... 1 jobs (rounded up). The work of a job that
//! runs to its end is cut where a share (2^i - 1) / (2^k - 1) of it is done, so that each phase asks
//! twice the work of the one before; where iterations are known, at the last whole one (but at
//! least i of them), and the last phase takes the rest. A phase ends with its slowest job; then the
//! better half by loss goes on (ties and unknown losses: the lower job number) and the others are
//! killed. Brackets halve beside one another.
//!
//! What is to come is estimated from the median job of those that are left, since the survivors are
//! not known. Cost: O(jobs log jobs) at the end of a phase, O(jobs) a report, nothing a bid.

use super::{
    AppScheduler, AppView, Failed, Goal, JobReport, Least, Piece, Standing, Stop, Verdict,
};
use crate::app::{Demand, divide};

/// How many GPUs a job can use in later phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PhaseCap {
    /// Twice as many in every phase (the paper's text).
    #[default]
    Doubling,
    /// The same in every phase (the paper's worked example).
    Fixed,
}

/// A halving search.
#[derive(Clone, Debug)]
pub struct Halving {
    phase_cap: PhaseCap,
    app_cap: u32,
    brackets: Vec<Bracket>,
    budget: Vec<Demand>,
    later: Vec<Demand>,
}

/// Jobs that compete with one another.
#[derive(Clone, Debug)]
struct Bracket {
    number: u32,
    /// All of its jobs, and those still in the race.
    jobs: Vec<usize>,
    live: Vec<usize>,
    /// The present phase, from 0, and how many there are.
    phase: u32,
    phases: u32,
}

impl Halving {
    /// A search whose app may hold at most `app_cap` GPUs.
    pub fn new(phase_cap: PhaseCap, app_cap: u32) -> Self {
        let (brackets, budget, later) = (Vec::new(), Vec::new(), Vec::new());
        Self { phase_cap, app_cap, brackets, budget, later }
    }

    /// Forms the brackets.
    fn begin(&mut self, app: &AppView<'_>) {
        for (job, report) in app.competitors() {
            match self.brackets.iter_mut().find(|bracket| bracket.number == report.bracket) {
                Some(bracket) => bracket.jobs.push(job),
                None => self.brackets.push(Bracket::new(report.bracket, job)),
            }
        }
        for bracket in &mut self.brackets {
            bracket.live.clone_from(&bracket.jobs);
            bracket.phases = phases(bracket.jobs.len());
        }
        self.budget = self.outlook(app, 0);
    }

    /// The phases of all brackets from so many ahead of the present ones on: those that are running
    /// as they are, later ones of median jobs.
    fn outlook(&self, app: &AppView<'_>, ahead: u32) -> Vec<Demand> {
        let left = self.brackets.iter().map(|b| b.phases - b.phase).max().unwrap_or(0);
        (ahead..left)
            .map(|ahead| {
                let each = self.brackets.iter().filter(|b| b.phase + ahead < b.phases);
                let sum = each.map(|bracket| self.demand(app, bracket, ahead)).reduce(beside);
                let mut sum = sum.unwrap_or(Demand { work_gpu_s: 0.0, gpus: 0.0, longest_s: 0.0 });
                sum.gpus = sum.gpus.min(f64::from(self.app_cap));
                sum
            })
            .collect()
    }

    fn demand(&self, app: &AppView<'_>, bracket: &Bracket, ahead: u32) -> Demand {
        let phase = bracket.phase + ahead;
        let one = |job: usize| {
            let report = (app.job)(job);
            let work_gpu_s = bracket.work(&report, phase);
            let gpus = f64::from(self.cap(&report, phase));
            Demand { work_gpu_s, gpus, longest_s: divide(work_gpu_s, gpus) }
        };
        if ahead == 0 {
            let none = Demand { work_gpu_s: 0.0, gpus: 0.0, longest_s: 0.0 };
            return bracket.live.iter().map(|job| one(*job)).fold(none, beside);
        }
        let mut live = bracket.live.clone();
        let work = |job: &usize| (app.job)(*job).work_gpu_s;
        live.sort_by(|a, b| work(a).total_cmp(&work(b)).then(a.cmp(b)));
        let median = one(live[(live.len() - 1) / 2]);
        let jobs = f64::from(left_after(live.len() as u32, ahead));
        Demand { work_gpu_s: jobs * median.work_gpu_s, gpus: jobs * median.gpus, ..median }
    }

    /// Most GPUs of a job in a phase.
    fn cap(&self, report: &JobReport, phase: u32) -> u32 {
        let cap = match self.phase_cap {
            PhaseCap::Doubling => u64::from(report.max) << phase.min(31),
            PhaseCap::Fixed => u64::from(report.max),
        };
        cap.min(u64::from(self.app_cap.min(1 << 30))) as u32
    }

    /// Sends the jobs of a bracket to the end of its phase.
    fn set_off(&self, app: &AppView<'_>, bracket: &Bracket, verdict: &mut Verdict) {
        for job in &bracket.live {
            let report = (app.job)(*job);
            if !matches!(report.standing, Standing::Done | Standing::Dropped) {
                let until_gpu_s = bracket.cut(&report, bracket.phase + 1);
                let max = self.cap(&report, bracket.phase);
                verdict.goals.push((*job, Goal { until_gpu_s, max }));
            }
        }
    }
}

impl AppScheduler for Halving {
    fn review(&mut self, app: &AppView<'_>) -> Result<Verdict, Failed> {
        let mut verdict = Verdict::default();
        let begins = self.brackets.is_empty();
        if begins {
            self.begin(app);
        }
        let mut brackets = std::mem::take(&mut self.brackets);
        let mut moved = begins;
        for bracket in &mut brackets {
            let before = bracket.phase;
            while bracket.is_through(app) && bracket.phase + 1 < bracket.phases {
                bracket.halve(app, &mut verdict);
            }
            if begins || bracket.phase > before {
                moved = true;
                self.set_off(app, bracket, &mut verdict);
            }
        }
        self.brackets = brackets;
        if moved {
            self.later = self.outlook(app, 1);
        }
        Ok(verdict)
    }

    fn later(&self) -> &[Demand] {
        &self.later
    }

    fn budget(&self) -> Option<&[Demand]> {
        Some(&self.budget)
    }

    /// Phases that are over as they were; later ones at least of their smallest possible jobs.
    fn least(&self, app: &AppView<'_>, whole: bool) -> Least {
        let chain = |bracket: &Bracket| {
            let from = if whole { 0 } else { bracket.phase };
            (from..bracket.phases).map(|phase| self.pieces(app, bracket, phase, whole)).collect()
        };
        Least::Every(self.brackets.iter().map(chain).collect())
    }
}

impl Halving {
    fn pieces(&self, app: &AppView<'_>, bracket: &Bracket, phase: u32, whole: bool) -> Vec<Piece> {
        let piece = |job: &usize| {
            let report = (app.job)(*job);
            let (from, to) = (bracket.cut(&report, phase), bracket.cut(&report, phase + 1));
            let present = phase >= bracket.phase && bracket.live.contains(job);
            let to = if present { to } else { to.min(report.done_gpu_s) };
            let from = if whole { from } else { from.max(report.done_gpu_s) };
            let work_gpu_s = (to - from).max(0.0);
            Piece { job: Some(*job), work_gpu_s, max: self.cap(&report, phase) }
        };
        let mut pieces: Vec<Piece> = bracket.jobs.iter().map(piece).collect();
        if phase > bracket.phase {
            // Who goes on is open: the smallest works, on the most GPUs.
            pieces.retain(|piece| piece.job.is_some_and(|job| bracket.live.contains(&job)));
            pieces.sort_by(|a, b| a.work_gpu_s.total_cmp(&b.work_gpu_s));
            let max = pieces.iter().map(|piece| piece.max).max().unwrap_or(0);
            let left = left_after(bracket.live.len() as u32, phase - bracket.phase);
            pieces.truncate(left as usize);
            pieces = pieces.into_iter().map(|piece| Piece { job: None, max, ..piece }).collect();
        }
        pieces
    }
}

impl Bracket {
    fn new(number: u32, job: usize) -> Self {
        Self { number, jobs: vec![job], live: Vec::new(), phase: 0, phases: 0 }
    }

    /// GPU-seconds that a job has done at the end of so many phases.
    fn cut(&self, report: &JobReport, phases: u32) -> f64 {
        if phases >= self.phases {
            return report.work_gpu_s;
        }
        let share = (exp2(phases) - 1.0) / (exp2(self.phases) - 1.0);
        let Some(all) = report.iterations else { return share * report.work_gpu_s };
        // A hair above, since a product that should be whole may fall below it in binary.
        let whole = (share * all * (1.0 + 1e-12)).floor().max(f64::from(phases)).min(all);
        report.work_gpu_s * whole / all
    }

    /// GPU-seconds of a job in a phase.
    fn work(&self, report: &JobReport, phase: u32) -> f64 {
        self.cut(report, phase + 1) - self.cut(report, phase)
    }

    /// Whether all who are in the race are at the end of the phase.
    fn is_through(&self, app: &AppView<'_>) -> bool {
        let waits = |job: &usize| {
            let report = (app.job)(*job);
            match report.standing {
                Standing::Future | Standing::Open => true,
                // At the goal of this phase, not at that of the phase before.
                Standing::AtGoal => {
                    report.done_gpu_s < self.cut(&report, self.phase + 1) * (1.0 - 1e-9)
                }
                Standing::Done | Standing::Dropped => false,
            }
        };
        !self.live.iter().any(waits)
    }

    /// Ends the phase: the better half goes on; jobs that were dropped from outside lose first.
    fn halve(&mut self, app: &AppView<'_>, verdict: &mut Verdict) {
        let loss = |job: &usize| (app.job)(*job).loss.unwrap_or(f64::INFINITY);
        let gone = |job: &usize| (app.job)(*job).standing == Standing::Dropped;
        self.live
            .sort_by(|a, b| gone(a).cmp(&gone(b)).then(loss(a).total_cmp(&loss(b))).then(a.cmp(b)));
        let field = self.live.len();
        let dropped = self.live.split_off(left_after(field as u32, 1) as usize);
        self.phase += 1;
        for (rank, job) in (self.live.len() + 1..).zip(dropped) {
            if (app.job)(job).standing == Standing::AtGoal {
                let by = if loss(&job).is_finite() { "by loss" } else { "by number, loss unknown" };
                let (phase, phases) = (self.phase, self.phases);
                let reason =
                    format!("rank {rank} of {field} ({by}) after phase {phase} of {phases}");
                verdict.stops.push(Stop { job, done: false, reason });
            }
        }
        self.live.sort_unstable();
    }
}

/// Two demands at once.
fn beside(one: Demand, other: Demand) -> Demand {
    Demand {
        work_gpu_s: one.work_gpu_s + other.work_gpu_s,
        gpus: one.gpus + other.gpus,
        longest_s: one.longest_s.max(other.longest_s),
    }
}

/// 2^n, exactly.
fn exp2(n: u32) -> f64 {
    (1_u64 << n.min(62)) as f64
}

/// Jobs that are left of so many after some halvings, rounded up each time.
fn left_after(jobs: u32, halvings: u32) -> u32 {
    (0..halvings).fold(jobs, |left, _| left.div_ceil(2))
}

/// Phases from so many jobs down to one.
fn phases(jobs: usize) -> u32 {
    1 + jobs.next_power_of_two().trailing_zeros()
}
