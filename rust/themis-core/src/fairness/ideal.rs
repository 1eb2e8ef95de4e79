//! `T_ID`: how long an app would take on its fair share of the cluster (paper, Eq. 1 and 2).

use crate::app::{Demand, divide};

/// Which reading of `T_ID` is used; every result says which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TIdReading {
    /// `N_avg` times the time alone with every GPU the app can use; the paper's formula.
    #[default]
    Paper,
    /// The same, but never shorter than the longest job of a phase.
    CriticalPath,
    /// The time with 1 / `N_avg` of the GPUs, not capped by demand first.
    DemandCapped,
}

/// `T_ID` in seconds of an app whose phases follow one another; jobs that all run at once are one
/// phase. `gpus` is `R_C`, at least 1; `n_avg` is at least 1.
pub fn ideal_time(reading: TIdReading, phases: &[Demand], gpus: u32, n_avg: f64) -> f64 {
    let cluster = f64::from(gpus);
    match reading {
        TIdReading::Paper => {
            let work: f64 = phases.iter().map(|phase| phase.work_gpu_s).sum();
            let demand = phases.iter().map(|phase| phase.gpus).fold(0.0, f64::max);
            divide(work, cluster.min(demand)) * n_avg
        }
        TIdReading::CriticalPath => n_avg * phases.iter().map(|p| p.time_s(cluster)).sum::<f64>(),
        TIdReading::DemandCapped => phases.iter().map(|p| p.time_s(cluster / n_avg)).sum(),
    }
}

/// `T_ID` of an app that is done when its first job is: the least over its jobs, each taken as an
/// app of its own (our reading; the paper has no such formula).
pub fn ideal_time_first(reading: TIdReading, jobs: &[Demand], gpus: u32, n_avg: f64) -> f64 {
    let each = jobs.iter().map(|job| ideal_time(reading, std::slice::from_ref(job), gpus, n_avg));
    each.reduce(f64::min).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} is not {b}");
    }

    #[test]
    fn a_small_app_may_run_ten_times_slower_in_the_papers_reading() {
        // R_C = 64, N = 10, max_gpus = 4: its 1/N share is 6.4 GPUs, more than it can use.
        let app = [Demand { work_gpu_s: 400.0, gpus: 4.0, longest_s: 100.0 }];
        near(ideal_time(TIdReading::Paper, &app, 64, 10.0), 1000.0);
        near(ideal_time(TIdReading::CriticalPath, &app, 64, 10.0), 1000.0);
        near(ideal_time(TIdReading::DemandCapped, &app, 64, 10.0), 100.0);
    }

    #[test]
    fn one_long_job_among_many_sets_the_critical_path() {
        let app = [Demand { work_gpu_s: 1000.0, gpus: 50.0, longest_s: 200.0 }];
        near(ideal_time(TIdReading::Paper, &app, 100, 2.0), 40.0);
        near(ideal_time(TIdReading::CriticalPath, &app, 100, 2.0), 400.0);
        near(ideal_time(TIdReading::DemandCapped, &app, 100, 2.0), 200.0);
    }

    #[test]
    fn the_first_job_decides_for_first() {
        let job = |w: f64| Demand { work_gpu_s: w, gpus: 2.0, longest_s: w / 2.0 };
        near(ideal_time_first(TIdReading::Paper, &[job(80.0), job(20.0)], 8, 3.0), 30.0);
        near(ideal_time_first(TIdReading::Paper, &[], 8, 3.0), 0.0);
    }
}
