//! The demand of an app, or of one phase of it.

/// Work that may run at once, and what limits how fast it gets done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// GPU-seconds of work.
    pub work_gpu_s: f64,
    /// Most GPUs that its jobs can use together.
    pub gpus: f64,
    /// Seconds of its longest job at the job's cap.
    pub longest_s: f64,
}

impl Demand {
    /// Seconds at so many GPU-seconds of work a second: jobs share them, the slowest ends it, and
    /// with fewer GPUs than jobs these run in turn.
    pub fn time_s(&self, rate: f64) -> f64 {
        self.longest_s.max(divide(self.work_gpu_s, rate.min(self.gpus)))
    }

    /// The shortest time at any rate.
    pub fn least_s(&self) -> f64 {
        self.time_s(f64::INFINITY)
    }
}

/// a / b with 0 / 0 = 0: no work needs no time.
pub(crate) fn divide(work: f64, rate: f64) -> f64 {
    if work <= 0.0 { 0.0 } else { work / rate }
}
