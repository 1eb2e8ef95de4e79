//! Closing the books of an app: its row, and those of its jobs.

use crate::search::report;
use crate::seats::WHOLE_MILLI;
use crate::state::{JobPhase, State};
use themis_core::app::{AppState, Job, Profile, Speeds, Stopping};
use themis_core::schedulers::{AppView, Chain, JobReport, Least, Piece, SchedulerKind};

/// Writes the rows of an app that is over, and of its jobs, and lets go of them.
pub(crate) fn close(state: &mut State<'_>, app: u32) {
    write_app(state, app);
    for job in state.workload.apps[app as usize].job_ids() {
        write_job(state, job);
    }
    state.dismiss(app);
}

fn write_app(state: &mut State<'_>, app: u32) {
    let run = &state.apps[app as usize];
    let has_work = state.gpu_jobs(app).next().is_some();
    let ids = || state.workload.apps[app as usize].job_ids();
    let useful: f64 = ids().map(|job| work_done(state, job)).sum();
    let used = ids().map(|job| state.jobs[job as usize].used_milli_us()).sum();
    let arrived = run.arrival_us <= state.now_us;
    // A scheduler that was never asked, or has no search, has no say either.
    let counts = arrived && has_work;
    let figure = |value: f64| if counts { value } else { f64::NAN };
    let t_id_s =
        if counts && run.has_submitted() { state.t_id_s(app, run.share) } else { f64::NAN };
    let elapsed_s = (run.gpu_end_us.unwrap_or(state.now_us) - run.arrival_us) as f64 / 1e6;
    let open = counts && run.gpu_end_us.is_none();
    let rest_s = if open { time_alone(state, app, false) } else { 0.0 };
    let alone_s = if counts { time_alone(state, app, true) } else { f64::NAN };
    let (running, lost) = (gpu_us(run.run_milli_us), gpu_us(run.lost_milli_us));
    let (columns, at) = (&mut state.log.apps, app as usize);
    columns.first_gpu_us[at] = run.first_gpu_us.unwrap_or(-1);
    columns.end_us[at] = run.end_us.unwrap_or(-1);
    columns.gpu_us[at] = gpu_us(used);
    columns.useful_gpu_us[at] = useful;
    // The work of a share of a GPU is no whole number: what is left of it is dust.
    columns.slowed_gpu_us[at] = (running - lost - useful).max(0.0);
    columns.switching_gpu_us[at] = gpu_us(run.switching_milli_us);
    columns.lost_gpu_us[at] = lost;
    columns.n_avg[at] = figure(run.share.n_avg);
    columns.gpus_avg[at] = figure(run.share.gpus);
    columns.t_id_s[at] = t_id_s;
    columns.t_sh_s[at] = figure(elapsed_s + rest_s);
    columns.t_alone_s[at] = alone_s;
    columns.placement_score[at] = if running > 0.0 { run.paced_gpu_us / running } else { f64::NAN };
}

fn write_job(state: &mut State<'_>, job: u32) {
    let work_gpu_us = work_done(state, job);
    let (run, log) = (&state.jobs[job as usize], &mut state.log);
    let reason = log.number_of(run.reason.as_deref().unwrap_or_default());
    let (columns, at) = (&mut log.jobs, job as usize);
    columns.phase[at] = run.phase as u8;
    columns.start_us[at] = run.start_us.unwrap_or(-1);
    columns.end_us[at] = run.end_us.unwrap_or(-1);
    columns.gpu_us[at] = gpu_us(run.used_milli_us());
    columns.work_gpu_us[at] = work_gpu_us;
    columns.preemptions[at] = run.preemptions;
    columns.migrations[at] = run.migrations;
    columns.promised_us[at] = run.promised_us.unwrap_or(-1);
    columns.failures[at] = run.failures;
    columns.lost_gpu_us[at] = gpu_us(run.lost_milli_us());
    columns.reason[at] = reason;
}

/// GPU-microseconds from thousandths of them: exact for whole ones.
fn gpu_us(milli_us: i128) -> f64 {
    let whole = i128::from(WHOLE_MILLI);
    (milli_us / whole) as f64 + (milli_us % whole) as f64 / f64::from(WHOLE_MILLI)
}

/// Seconds that an app takes alone on the cluster at least, from its start or from now on.
fn time_alone(state: &State<'_>, app: u32, whole: bool) -> f64 {
    let spec = &state.workload.apps[app as usize];
    let view = AppView {
        elapsed_s: (state.now_us - spec.arrival_us) as f64 / 1e6,
        jobs: spec.jobs as usize,
        reported: &[],
        job: &|job| least_report(state, app, spec.first_job + job as u32),
    };
    let phase_s = |phase: Vec<Piece>| {
        let jobs = phase.into_iter().map(|piece| {
            let job = piece.job.map(|job| &state.workload.jobs[spec.first_job as usize + job]);
            let (gang, profile) =
                job.map_or((1, Profile::PERFECT), |job| (job.gang, job.profile.clone()));
            let speeds = job.map_or(Speeds::ALIKE, |job| job.speeds.clone());
            Job::waiting(gang, piece.max.min(spec.max_gpus), piece.work_gpu_s, profile)
                .with_speeds(speeds)
        });
        let app = AppState::new(0.0, 1.0, Stopping::All, jobs.collect());
        app.with_cap(spec.max_gpus).time_alone(&state.topology)
    };
    let chain_s = |chain: Chain| chain.into_iter().map(phase_s).sum::<f64>();
    match state.schedulers[app as usize].least(&view, whole) {
        Least::Every(chains) => chains.into_iter().map(chain_s).fold(0.0, f64::max),
        Least::Any(chains) => chains.into_iter().map(chain_s).fold(f64::INFINITY, f64::min),
    }
}

/// A job as its scheduler sees it, but with no more work than takes it to its app's target loss.
fn least_report(state: &State<'_>, app: u32, job: u32) -> JobReport {
    let mut report = report(state, job, &[]);
    let spec = &state.workload.apps[app as usize];
    let target = spec.target_loss.filter(|_| spec.stopping == SchedulerKind::PerformanceCurve);
    let curve = state.workload.jobs[job as usize].curve;
    if let (Some(target), Some(curve), Some(all)) = (target, curve, report.iterations) {
        let there = curve.reaches(target).map_or(1.0, |iterations| iterations / all);
        report.work_gpu_s *= there.min(1.0);
    }
    report
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
