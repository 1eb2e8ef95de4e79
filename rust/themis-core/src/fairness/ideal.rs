//! `T_ID`: how long an app would take on its fair share of the cluster (paper, Eq. 1 and 2).

use crate::app::{Demand, OwnGpus, divide};

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
/// phase. `gpus` is the cluster in the app's own GPUs; `n_avg` is at least 1.
pub fn ideal_time(reading: TIdReading, phases: &[Demand], gpus: &OwnGpus, n_avg: f64) -> f64 {
    let shared = |n: f64| {
        let phase_s = |phase: &Demand| {
            phase.longest_s.max(divide(phase.work_gpu_s, gpus.rate(phase.gpus, n)))
        };
        phases.iter().map(phase_s).sum::<f64>()
    };
    match reading {
        TIdReading::Paper => {
            let work: f64 = phases.iter().map(|phase| phase.work_gpu_s).sum();
            let demand = phases.iter().map(|phase| phase.gpus).fold(0.0, f64::max);
            divide(work, gpus.rate(demand, 1.0)) * n_avg
        }
        TIdReading::CriticalPath => n_avg * shared(1.0),
        TIdReading::DemandCapped => shared(n_avg),
    }
}

/// `T_ID` of an app that is done when its first job is: the least over its jobs, each taken as an
/// app of its own (our reading; the paper has no such formula).
pub fn ideal_time_first(reading: TIdReading, jobs: &[Demand], gpus: &OwnGpus, n_avg: f64) -> f64 {
    let each = jobs.iter().map(|job| ideal_time(reading, std::slice::from_ref(job), gpus, n_avg));
    each.reduce(f64::min).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{MachineSpec, Topology};

    fn gpus(count: u32) -> OwnGpus {
        let machine = MachineSpec { rack: 0, gpus: count, slot_gpus: count };
        OwnGpus::of(&Topology::new(&[machine]).expect("valid"), std::iter::empty())
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} is not {b}");
    }

    #[test]
    fn a_small_app_may_run_ten_times_slower_in_the_papers_reading() {
        // R_C = 64, N = 10, max_gpus = 4: its 1/N share is 6.4 GPUs, more than it can use.
        let app = [Demand { work_gpu_s: 400.0, gpus: 4.0, longest_s: 100.0 }];
        near(ideal_time(TIdReading::Paper, &app, &gpus(64), 10.0), 1000.0);
        near(ideal_time(TIdReading::CriticalPath, &app, &gpus(64), 10.0), 1000.0);
        near(ideal_time(TIdReading::DemandCapped, &app, &gpus(64), 10.0), 100.0);
    }

    #[test]
    fn one_long_job_among_many_sets_the_critical_path() {
        let app = [Demand { work_gpu_s: 1000.0, gpus: 50.0, longest_s: 200.0 }];
        near(ideal_time(TIdReading::Paper, &app, &gpus(100), 2.0), 40.0);
        near(ideal_time(TIdReading::CriticalPath, &app, &gpus(100), 2.0), 400.0);
        near(ideal_time(TIdReading::DemandCapped, &app, &gpus(100), 2.0), 200.0);
    }

    #[test]
    fn the_first_job_decides_for_first() {
        let job = |w: f64| Demand { work_gpu_s: w, gpus: 2.0, longest_s: w / 2.0 };
        near(ideal_time_first(TIdReading::Paper, &[job(80.0), job(20.0)], &gpus(8), 3.0), 30.0);
        near(ideal_time_first(TIdReading::Paper, &[], &gpus(8), 3.0), 0.0);
    }
}
