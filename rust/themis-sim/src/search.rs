//! Between the engine and the app schedulers: what they see, and what becomes of their verdicts.

use std::sync::Arc;

use crate::cause::EndedBy;
use crate::error::SimError;
use crate::grants::take_from;
use crate::state::{JobPhase, State};
use crate::view::View;
use themis_core::cluster::FreeSet;
use themis_core::schedulers::{
    AppScheduler, AppView, Failed, Goal, JobReport, Move, Standing, Verdict,
};

/// What a scheduler sees of a job; `at_goal` are those that have just got there.
pub(crate) fn report(state: &State<'_>, job: u32, at_goal: &[u32]) -> JobReport {
    let spec = &state.workload.jobs[job as usize];
    let run = &state.jobs[job as usize];
    let standing = match run.phase {
        JobPhase::Future => Standing::Future,
        JobPhase::Open if at_goal.contains(&job) => Standing::AtGoal,
        JobPhase::Paused => Standing::AtGoal,
        JobPhase::Open | JobPhase::Unfinished => Standing::Open,
        JobPhase::Done => Standing::Done,
        JobPhase::Killed | JobPhase::Infeasible | JobPhase::Rejected | JobPhase::Failed => {
            Standing::Dropped
        }
    };
    let done_gpu_s = (spec.work_gpu_us - run.work_left_at(state.now_us)) / 1e6;
    let mut report = JobReport {
        standing,
        competes: state.needs_gpus(job),
        work_gpu_s: spec.work_gpu_us / 1e6,
        done_gpu_s,
        max: spec.max,
        iterations: spec.iterations,
        loss: None,
        bracket: spec.bracket,
        gpus: run.gpus.len() as u32,
        rate: run.rate,
    };
    report.loss = spec.curve.zip(report.iterations_done()).map(|(curve, done)| curve.at(done));
    report
}

/// What an app's scheduler is told; nothing when the app arrives.
#[derive(Debug, Default)]
pub(crate) struct News<'a> {
    /// Jobs that have ended.
    pub(crate) ended: &'a [u32],
    /// Jobs that are at their goals.
    pub(crate) at_goal: &'a [u32],
    /// GPUs that the ended ones had.
    pub(crate) spare: Vec<u32>,
}

/// Asks an app's scheduler, when the app arrives or when jobs of it have ended or are at their
/// goals, and does what it says. The GPUs of jobs that ended or paused pass to its other jobs.
///
/// # Errors
/// [`SimError::Scheduler`] for a verdict that can't be carried out, [`SimError::Unanswered`] for
/// none.
pub(crate) fn review(
    state: &mut State<'_>,
    app: u32,
    news: News<'_>,
    leases: bool,
) -> Result<(), SimError> {
    let first = state.workload.apps[app as usize].first_job;
    let News { ended, at_goal, mut spare } = news;
    let verdict = ask(state, app, ended, at_goal)?;
    check(state, app, &verdict, at_goal)?;
    for stop in verdict.stops {
        let job = first + stop.job as u32;
        spare.extend(state.end_job(job, if stop.done { JobPhase::Done } else { JobPhase::Killed }));
        state.jobs[job as usize].reason = Some(stop.reason.into());
    }
    for (job, goal) in &verdict.goals {
        aim(state, first + *job as u32, *goal);
    }
    for job in at_goal {
        let told = verdict.goals.iter().any(|(other, _)| first + *other as u32 == *job);
        if !told && !state.jobs[*job as usize].phase.is_final() {
            spare.extend(state.pause_job(*job));
        }
    }
    spare.sort_unstable();
    if verdict.over.is_none() && state.apps[app as usize].unfinished > 0 {
        check_goes_on(state, app)?;
        reuse(state, app, spare, leases);
    } else {
        state.release(&spare, EndedBy::JobEnd);
        state.end_app(app, verdict.over.as_deref().unwrap_or_default());
    }
    Ok(())
}

/// Lets an app pass the GPUs of its ended jobs on to its other jobs, for the rest of the lease;
/// what they can't use is released.
fn reuse(state: &mut State<'_>, app: u32, spare: Vec<u32>, leases: bool) {
    let due = |gpu: &u32| {
        let expiry_us = state.tenures.of(*gpu).map_or(0, |tenure| tenure.expiry_us);
        let goes = state.tenures.is_withdrawn(*gpu);
        !leases || goes || state.clock.due(expiry_us, state.now_us) == state.now_us
    };
    let (over, mut spare): (Vec<u32>, Vec<u32>) = spare.into_iter().partition(due);
    state.release(&over, EndedBy::JobEnd);
    if spare.is_empty() || state.apps[app as usize].open.is_empty() {
        state.release(&spare, EndedBy::JobEnd);
        return;
    }
    let mut free = state.tenures.only(&spare).with_rooms(state.rooms());
    let nothing = FreeSet::empty(Arc::clone(&state.topology));
    let mut candidate = View::new(state, &nothing).app(app);
    for (job, bundle) in candidate.state.claim_all(&mut free) {
        let job = candidate.jobs[job];
        let mut gpus = take_from(state, &mut spare, &bundle);
        let seat = state.seat_of(job);
        state.tenures.hand_over(&gpus, seat, &mut state.log.leases);
        gpus.extend(&state.jobs[job as usize].gpus);
        gpus.sort_unstable();
        state.assign(job, gpus);
    }
    state.release(&spare, EndedBy::JobEnd);
}

fn ask(
    state: &mut State<'_>,
    app: u32,
    ended: &[u32],
    at_goal: &[u32],
) -> Result<Verdict, SimError> {
    let spec = &state.workload.apps[app as usize];
    let mut reported: Vec<usize> =
        ended.iter().chain(at_goal).map(|job| (job - spec.first_job) as usize).collect();
    reported.sort_unstable();
    consult(state, app, &reported, at_goal, |scheduler, view| scheduler.review(view))
}

/// Shows an app to its scheduler.
fn consult<T>(
    state: &mut State<'_>,
    app: u32,
    reported: &[usize],
    at_goal: &[u32],
    with: impl FnOnce(&mut dyn AppScheduler, &AppView<'_>) -> Result<T, Failed>,
) -> Result<T, SimError> {
    let spec = &state.workload.apps[app as usize];
    let mut schedulers = std::mem::take(&mut state.schedulers);
    let view = AppView {
        elapsed_s: (state.now_us - spec.arrival_us) as f64 / 1e6,
        jobs: spec.jobs as usize,
        reported,
        job: &|job| report(state, spec.first_job + job as u32, at_goal),
    };
    let answer = with(schedulers[app as usize].as_mut(), &view);
    state.schedulers = schedulers;
    answer.map_err(|Failed| SimError::Unanswered { app })
}

/// Tells the schedulers that listen what moved at this instant.
///
/// # Errors
/// [`SimError::Unanswered`] where one can't go on.
pub(crate) fn tell_moves(state: &mut State<'_>) -> Result<(), SimError> {
    let mut moves = std::mem::take(&mut state.moves);
    moves.sort_by_key(|(app, _)| *app);
    for of_app in moves.chunk_by(|a, b| a.0 == b.0) {
        let news: Vec<Move> = of_app.iter().map(|(_, news)| *news).collect();
        consult(state, of_app[0].0, &[], &[], |scheduler, view| scheduler.moved(view, &news))?;
    }
    Ok(())
}

/// Refuses to let an app wait for ever: all that is left of it has paused.
fn check_goes_on(state: &State<'_>, app: u32) -> Result<(), SimError> {
    if !state.apps[app as usize].open.is_empty() {
        return Ok(());
    }
    let spec = &state.workload.apps[app as usize];
    let phase = |job: u32| state.jobs[job as usize].phase;
    let mut left = spec.job_ids().filter(|job| !phase(*job).is_final()).peekable();
    let Some(first) = left.peek().copied() else { return Ok(()) };
    if left.all(|job| phase(job) == JobPhase::Paused) {
        let job = (first - spec.first_job) as usize;
        let problem = "pauses like all that is left of the app, for ever; a new goal, a stop, or \
                       the end of the app"
            .to_string();
        return Err(SimError::Scheduler { app, job, problem });
    }
    Ok(())
}

/// Refuses goals that lie behind a job or that it does not need, and decisions about jobs that
/// have ended.
fn check(state: &State<'_>, app: u32, verdict: &Verdict, at_goal: &[u32]) -> Result<(), SimError> {
    let spec = &state.workload.apps[app as usize];
    let refuse = |job: usize, problem: String| Err(SimError::Scheduler { app, job, problem });
    let open = |job: usize| {
        let number = spec.first_job + job as u32;
        job < spec.jobs as usize && !state.jobs[number as usize].phase.is_final()
    };
    for stop in &verdict.stops {
        if !open(stop.job) || verdict.stops.iter().filter(|s| s.job == stop.job).count() > 1 {
            return refuse(stop.job, "is stopped, but not unfinished".to_string());
        }
        let number = spec.first_job + stop.job as u32;
        if stop.done && state.jobs[number as usize].start_us.is_none() {
            return refuse(stop.job, "is done, but has not begun".to_string());
        }
    }
    for (job, goal) in &verdict.goals {
        if !open(*job) || verdict.stops.iter().any(|stop| stop.job == *job) {
            return refuse(*job, "has a goal, but is not unfinished".to_string());
        }
        let number = spec.first_job + *job as u32;
        let report = report(state, number, at_goal);
        if !report.competes {
            return refuse(*job, "has a goal, but no work that needs GPUs here".to_string());
        }
        let ahead = goal.until_gpu_s > report.done_gpu_s;
        if !ahead || goal.until_gpu_s > report.work_gpu_s * (1.0 + 1e-9) {
            let (until, done) = (goal.until_gpu_s, report.done_gpu_s);
            let all = report.work_gpu_s;
            let problem = format!("goal {until} GPU-seconds; more than {done}, at most {all}");
            return refuse(*job, problem);
        }
        let held = state.jobs[number as usize].gpus.len() as u32;
        let least = state.workload.jobs[number as usize].gang.max(held);
        if goal.max < least {
            return refuse(*job, format!("at most {} GPUs; {least} or more", goal.max));
        }
        if state.workload.jobs[number as usize].is_fraction() && goal.max > 1 {
            return refuse(*job, format!("at most {} GPUs; it uses a fraction of one", goal.max));
        }
    }
    Ok(())
}

/// Sends a job towards a goal; a paused one wants GPUs again.
fn aim(state: &mut State<'_>, job: u32, goal: Goal) {
    let beyond = (state.workload.jobs[job as usize].work_gpu_us - goal.until_gpu_s * 1e6).max(0.0);
    // Less than a microsecond of one GPU is binary dust: the whole work is meant.
    let beyond = if beyond < 1e-3 { 0.0 } else { beyond };
    state.aim_job(job, beyond, goal.max);
    if state.jobs[job as usize].phase == JobPhase::Paused {
        state.open_job(job);
    }
}
