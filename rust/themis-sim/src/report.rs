//! Closing the books: the columns of apps and jobs.

use crate::log::{AppColumns, EventLog, JobColumns};
use crate::state::{JobPhase, State};
use themis_core::app::{AppState, Job};

/// The log of a finished run.
pub(crate) fn close(state: State<'_>) -> EventLog {
    let apps = app_columns(&state);
    let jobs = job_columns(&state);
    let end_us = state.now_us;
    EventLog { apps, jobs, ..state.log.into_log(end_us) }
}

fn app_columns(state: &State<'_>) -> AppColumns {
    let mut columns = AppColumns::default();
    for (number, run) in (0..).zip(&state.apps) {
        let whole = alone(state, number, |job| state.workload.jobs[job].work_gpu_us);
        let ids = || state.workload.apps[number as usize].job_ids();
        let useful: f64 = ids().map(|job| work_done(state, job)).sum();
        let gpu_us: i64 = ids().map(|job| state.jobs[job as usize].gpu_us).sum();
        let has_work = !whole.jobs.is_empty();
        let arrived = run.arrival_us <= state.now_us;
        let t_id_s = if has_work && arrived && run.has_submitted() {
            run.t_id_s(state.settings.t_id, state.topology.gpus(), run.n_avg)
        } else {
            f64::NAN
        };
        let elapsed_s = (run.gpu_end_us.unwrap_or(state.now_us) - run.arrival_us) as f64 / 1e6;
        let rest = || alone(state, number, |job| state.jobs[job].work_left);
        let rest_s =
            if run.gpu_end_us.is_some() { 0.0 } else { rest().time_alone(&state.topology) };
        let running = run.run_gpu_us as f64;
        columns.first_gpu_us.push(run.first_gpu_us.unwrap_or(-1));
        columns.end_us.push(run.end_us.unwrap_or(-1));
        columns.gpu_us.push(gpu_us);
        columns.useful_gpu_us.push(useful);
        columns.slowed_gpu_us.push(running - useful);
        columns.switching_gpu_us.push(run.switching_gpu_us);
        columns.n_avg.push(if arrived && has_work { run.n_avg } else { f64::NAN });
        columns.t_id_s.push(t_id_s);
        columns.t_sh_s.push(if arrived && has_work { elapsed_s + rest_s } else { f64::NAN });
        columns.t_alone_s.push(if has_work { whole.time_alone(&state.topology) } else { f64::NAN });
        columns.placement_score.push(if running > 0.0 {
            run.paced_gpu_us / running
        } else {
            f64::NAN
        });
    }
    columns
}

/// An app with what is left of each job: `work_left(job)` in GPU-microseconds.
fn alone(state: &State<'_>, app: u32, work_left: impl Fn(usize) -> f64) -> AppState {
    let jobs = state.gpu_jobs(app).map(|number| {
        let spec = &state.workload.jobs[number as usize];
        Job::waiting(spec.gang, spec.max, work_left(number as usize) / 1e6, spec.profile)
    });
    AppState::new(0.0, 1.0, state.workload.apps[app as usize].stopping, jobs.collect())
}

fn job_columns(state: &State<'_>) -> JobColumns {
    let mut columns = JobColumns::default();
    for (number, run) in (0..).zip(&state.jobs) {
        columns.phase.push(run.phase as u8);
        columns.start_us.push(run.start_us.unwrap_or(-1));
        columns.end_us.push(run.end_us.unwrap_or(-1));
        columns.gpu_us.push(run.gpu_us);
        columns.work_gpu_us.push(work_done(state, number));
        columns.preemptions.push(run.preemptions);
        columns.migrations.push(run.migrations);
    }
    columns
}

/// GPU-microseconds of work that a job did; none for a job of no GPUs.
fn work_done(state: &State<'_>, job: u32) -> f64 {
    let spec = &state.workload.jobs[job as usize];
    let run = &state.jobs[job as usize];
    if spec.gang == 0 || run.phase == JobPhase::Infeasible {
        return 0.0;
    }
    spec.work_gpu_us - run.work_left
}
