//! Searches that watch loss curves (`HyperDrive`, Rasley et al. 2017; Vizier, Golovin et al. 2017;
//! paper, section 4.3).
//!
//! Every running job is looked at each time that a step of its work is done. Its curve is fitted to
//! the losses seen up to then, and forecast to its last iteration with an error bar. A job whose
//! optimistic forecast is worse than the pessimistic forecast of another is killed; the job of the
//! best pessimistic forecast never is. With a target loss the app is over when a job reaches it,
//! and a job is expected to need as long as its pessimistic forecast takes to get there. Jobs
//! without a loss curve run to their ends and are never killed.
//!
//! Cost: one fit and O(jobs) a look, nothing a bid.

use super::curve::Fit;
use super::{
    AppScheduler, AppView, Failed, Goal, JobReport, Least, SchedulerRules, Standing, Stop, Verdict,
};

/// A search by loss curves.
#[derive(Clone, Debug)]
pub struct PerformanceCurve {
    rules: SchedulerRules,
    target: Option<f64>,
    candidates: Vec<Candidate>,
}

/// A job and what was seen of it.
#[derive(Clone, Debug, Default)]
struct Candidate {
    /// (iterations, loss), looks so far.
    points: Vec<(f64, f64)>,
    fit: Option<Fit>,
    /// The best and the worst that its last loss is expected to be.
    bounds: Option<(f64, f64)>,
    expected_gpu_s: Option<f64>,
    dropped: bool,
}

impl PerformanceCurve {
    /// A search that is content with `target`, if there is one.
    pub fn new(rules: SchedulerRules, target: Option<f64>) -> Self {
        Self { rules, target, candidates: Vec::new() }
    }

    /// Notes the loss of a job and forecasts.
    fn look(&mut self, job: usize, report: &JobReport) {
        let (Some(k), Some(all), Some(loss)) =
            (report.iterations_done(), report.iterations, report.loss)
        else {
            return;
        };
        let (error, target) = (self.rules.curve_error, self.target);
        let candidate = &mut self.candidates[job];
        candidate.points.push((k, loss));
        candidate.expected_gpu_s.get_or_insert(report.work_gpu_s);
        if report.standing == Standing::Done {
            candidate.bounds = Some((loss, loss));
            return;
        }
        candidate.fit = Fit::of(&candidate.points, error);
        let Some(fit) = candidate.fit else { return };
        let (last, bar) = fit.forecast(all);
        candidate.bounds = Some((last - bar, last + bar));
        if let Some(target) = target {
            let worst = |k: f64| fit.forecast(k).0 + fit.forecast(k).1;
            let there = first_step(worst, target, k, all, self.rules.curve_step);
            candidate.expected_gpu_s = Some(report.work_gpu_s * there / all);
        }
    }

    /// The next look at a job: a step on, or where its curve reaches the target if that is sooner.
    fn next(&self, job: usize, report: &JobReport) -> Goal {
        let step = report.done_gpu_s + self.rules.curve_step * report.work_gpu_s;
        let mut until_gpu_s = step.min(report.work_gpu_s);
        if let (Some(target), Some(fit), Some(all), Some(now)) =
            (self.target, self.candidates[job].fit, report.iterations, report.iterations_done())
        {
            let there = fit.reaches(target).map(f64::ceil).filter(|k| *k >= now + 0.5);
            let there = there.map_or(f64::INFINITY, |k| report.work_gpu_s * k / all);
            until_gpu_s = until_gpu_s.min(there);
        }
        Goal { until_gpu_s, max: report.max }
    }

    /// Jobs that even at their best end up worse than another at its worst.
    fn poor(&self) -> (f64, Vec<usize>) {
        let open = |candidate: &Candidate| candidate.bounds.filter(|_| !candidate.dropped);
        let bounds = self.candidates.iter().map(open);
        let best = bounds.clone().flatten().map(|(_, worst)| worst).fold(f64::INFINITY, f64::min);
        let poor = bounds.enumerate().filter(|(_, b)| b.is_some_and(|(at_best, _)| at_best > best));
        (best, poor.map(|(job, _)| job).collect())
    }
}

/// The first of (now, steps of `step` x `all`, ..., `all`) at which `worst` is at most `target`.
fn first_step(worst: impl Fn(f64) -> f64, target: f64, now: f64, all: f64, step: f64) -> f64 {
    let mut at = now;
    while at < all && worst(at) > target {
        at = (at + step * all).min(all);
    }
    at
}

impl AppScheduler for PerformanceCurve {
    fn review(&mut self, app: &AppView<'_>) -> Result<Verdict, Failed> {
        let mut verdict = Verdict::default();
        if self.candidates.is_empty() {
            self.candidates = vec![Candidate::default(); app.jobs];
            for (job, report) in app.competitors() {
                self.look(job, &report);
                if report.loss.is_some() {
                    verdict.goals.push((job, self.next(job, &report)));
                }
            }
            return Ok(verdict);
        }
        for job in app.reported.iter().copied() {
            let report = (app.job)(job);
            self.look(job, &report);
            let reached = report.loss.zip(self.target).is_some_and(|(loss, target)| loss <= target);
            if reached && report.competes {
                if report.standing == Standing::AtGoal {
                    let reason = "reached the target loss".to_string();
                    verdict.stops.push(Stop { job, done: true, reason });
                }
                verdict.over = Some("another job of its app reached the target loss".to_string());
            } else if report.standing == Standing::AtGoal {
                verdict.goals.push((job, self.next(job, &report)));
            }
        }
        if verdict.over.is_some() {
            return Ok(verdict);
        }
        let (best, poor) = self.poor();
        for job in poor {
            if matches!((app.job)(job).standing, Standing::Open | Standing::AtGoal) {
                self.candidates[job].dropped = true;
                let at_best = self.candidates[job].bounds.map_or(best, |bounds| bounds.0);
                let reason =
                    format!("forecast loss at best {at_best:.4}, another job at worst {best:.4}");
                verdict.goals.retain(|(other, _)| *other != job);
                verdict.stops.push(Stop { job, done: false, reason });
            }
        }
        Ok(verdict)
    }

    fn expected_gpu_s(&self, job: usize) -> Option<f64> {
        self.candidates.get(job).and_then(|candidate| candidate.expected_gpu_s)
    }

    /// One job that goes all its way, whichever: the others may be dropped, sooner or later.
    fn least(&self, app: &AppView<'_>, whole: bool) -> Least {
        let still = |report: &JobReport| whole || report.standing != Standing::Dropped;
        let racing = app.competitors().filter(|(_, report)| still(report));
        Least::Any(racing.map(|(job, report)| vec![vec![report.piece(job, whole)]]).collect())
    }
}
