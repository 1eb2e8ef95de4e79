//! Successive halving (paper, section 4.3.3): phases of ever fewer jobs.

use crate::fairness::Demand;

/// How many GPUs a job can use in later phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseCap {
    /// Twice as many in every phase (the paper's text).
    Doubling,
    /// The same in every phase (the paper's worked example).
    Fixed,
}

/// One phase: equal jobs (the median job where the future is unknown).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HalvingPhase {
    /// Jobs in the phase.
    pub jobs: u32,
    /// GPU-seconds of each.
    pub work_gpu_s: f64,
    /// Most GPUs that each can use.
    pub cap: u32,
}

impl HalvingPhase {
    /// Seconds of the phase on so many GPUs, perfectly placed: equal shares, and the slowest job
    /// ends it. With fewer GPUs than jobs, waves of one GPU each; the last wave shares them all.
    pub fn time_s(&self, gpus: u32) -> f64 {
        if self.jobs == 0 || self.work_gpu_s <= 0.0 {
            return 0.0;
        }
        if gpus == 0 {
            return f64::INFINITY;
        }
        let whole_waves = (self.jobs - 1) / gpus;
        let last = self.jobs - whole_waves * gpus;
        let share = (gpus / last).clamp(1, self.cap.max(1));
        f64::from(whole_waves) * self.work_gpu_s + self.work_gpu_s / f64::from(share)
    }

    /// The phase as a demand, for [`crate::fairness::ideal_time`].
    pub fn demand(&self) -> Demand {
        Demand {
            work_gpu_s: f64::from(self.jobs) * self.work_gpu_s,
            gpus: f64::from(self.jobs) * f64::from(self.cap),
            longest_s: self.work_gpu_s / f64::from(self.cap.max(1)),
        }
    }
}

/// The phases of a halving search: n, n/2, n/4, ... 1 jobs (rounded up), with the given work a
/// phase, and the cap by the rule. Phases beyond the listed work do not exist.
pub fn halving_phases(
    jobs: u32,
    phase_work_gpu_s: &[f64],
    cap: u32,
    rule: PhaseCap,
) -> Vec<HalvingPhase> {
    let mut left = jobs;
    let mut cap = cap;
    let mut phases = Vec::new();
    for work in phase_work_gpu_s {
        if left == 0 {
            break;
        }
        phases.push(HalvingPhase { jobs: left, work_gpu_s: work / f64::from(left), cap });
        left = if left == 1 { 0 } else { left.div_ceil(2) };
        if rule == PhaseCap::Doubling {
            cap = cap.saturating_mul(2);
        }
    }
    phases
}

/// Seconds to finish the phases on so many GPUs: `T_SH` without the time elapsed (Eq. 2).
pub fn halving_time(phases: &[HalvingPhase], gpus: u32) -> f64 {
    phases.iter().map(|phase| phase.time_s(gpus)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fairness::{TIdReading, ideal_time};

    /// Paper, section 4.3.3: `R_C` = 16, `N_avg` = 4, B = 10,000 GPU-s, phases of 4, 2, 1 jobs.
    #[test]
    fn the_papers_worked_example() {
        let phases = halving_phases(4, &[3200.0, 3200.0, 3600.0], 8, PhaseCap::Fixed);
        assert_eq!(phases.iter().map(|p| p.jobs).collect::<Vec<_>>(), vec![4, 2, 1]);
        let demands: Vec<Demand> = phases.iter().map(HalvingPhase::demand).collect();
        let t_id = ideal_time(TIdReading::Paper, &demands, 16, 4.0);
        assert!((t_id - 2500.0).abs() < 1e-9);
        let rho = [1, 2, 4, 8, 16].map(|gpus| halving_time(&phases, gpus) / t_id);
        for (got, want) in rho.iter().zip([4.0, 2.0, 1.0, 0.5, 0.34]) {
            assert!((got - want).abs() < 1e-12, "{rho:?}");
        }
    }

    #[test]
    fn caps_double_and_odd_counts_round_up() {
        let phases = halving_phases(7, &[7.0; 9], 1, PhaseCap::Doubling);
        let shape: Vec<_> = phases.iter().map(|p| (p.jobs, p.cap)).collect();
        assert_eq!(shape, vec![(7, 1), (4, 2), (2, 4), (1, 8)]);
        assert!(halving_phases(0, &[1.0], 1, PhaseCap::Fixed).is_empty());
    }

    #[test]
    fn fewer_gpus_than_jobs_run_in_waves() {
        let phase = HalvingPhase { jobs: 4, work_gpu_s: 12.0, cap: 3 };
        let times = [1, 2, 3, 4, 8, 99].map(|gpus| phase.time_s(gpus));
        assert_eq!(times.map(|t| t as u32), [48, 24, 16, 12, 6, 4]);
        assert!(phase.time_s(0).is_infinite());
    }
}
