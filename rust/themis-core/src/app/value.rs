//! What a pace is worth to an app: log V as a function of its jobs' rates.

use crate::app::{AppState, Stopping, log_v};

/// The figures of an app that its value depends on beside its pace.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    stopping: Stopping,
    elapsed_s: f64,
    t_id_s: f64,
    /// GPU-seconds left in all.
    pub(super) work: f64,
    /// Seconds of the longest job at its cap.
    pub(super) longest_s: f64,
    floor: f64,
}

impl Value {
    /// log V at a pace; never below that of winning nothing. For `All` the pace is the sum of the
    /// jobs' rates, for `First` the seconds to the first finish.
    pub fn log_v(&self, pace: f64) -> f64 {
        self.unfloored(pace).max(self.floor)
    }

    /// The same without the floor: concave in the sum of rates.
    pub(super) fn unfloored(&self, pace: f64) -> f64 {
        let time_s = match self.stopping {
            Stopping::All if self.work <= 0.0 => 0.0,
            Stopping::All => self.longest_s.max(self.work / pace),
            Stopping::First => pace,
        };
        log_v((self.elapsed_s + time_s) / self.t_id_s)
    }

    /// Slope of log V in the sum of rates, for `All`: concave, and 0 from where the longest job
    /// decides.
    pub(super) fn slope(&self, rate: f64) -> f64 {
        if self.work <= 0.0 || self.work / rate <= self.longest_s {
            return 0.0;
        }
        self.work / (rate * (self.elapsed_s * rate + self.work))
    }
}

impl Value {
    /// The rate at which the slope of log V is this, for `All`: where e R^2 + W R = W / slope, or
    /// where the longest job begins to decide; `None` for a slope that is no price.
    pub(super) fn rate_at_slope(&self, slope: f64) -> Option<f64> {
        if !slope.is_finite() || slope <= 0.0 || self.work <= 0.0 {
            return None;
        }
        let (e, w) = (self.elapsed_s, self.work);
        let rate = if e > 0.0 {
            ((w * w + 4.0 * e * w / slope).sqrt() - w) / (2.0 * e)
        } else {
            1.0 / slope
        };
        Some(if self.longest_s > 0.0 { rate.min(w / self.longest_s) } else { rate })
    }
}

impl AppState {
    /// The figures of this app.
    pub fn value(&self) -> Value {
        Value {
            stopping: self.stopping,
            elapsed_s: self.elapsed_s,
            t_id_s: self.t_id_s,
            work: self.jobs.iter().map(|job| job.work_left_gpu_s).sum(),
            longest_s: self.longest_s(),
            floor: self.log_v_empty(),
        }
    }

    /// The pace of its jobs at these rates.
    pub(super) fn pace(&self, rates: &[f64]) -> f64 {
        match self.stopping {
            Stopping::All => rates.iter().sum(),
            Stopping::First => self.time_left(rates),
        }
    }
}
