//! What a pace is worth to an app: log V as a function of its jobs' rates.

use smallvec::SmallVec;

use crate::app::{AppState, Demand, Stopping, log_v};

/// The figures of an app that its value depends on beside its pace.
#[derive(Clone, Debug)]
pub struct Value {
    stopping: Stopping,
    elapsed_s: f64,
    t_id_s: f64,
    /// The phases left, that of the running jobs first.
    phases: SmallVec<[Phase; 1]>,
    floor: f64,
}

/// A phase takes work / rate, but never less than `least_s`.
#[derive(Clone, Copy, Debug)]
struct Phase {
    work: f64,
    least_s: f64,
}

impl Phase {
    /// Whether more speed than this still shortens it; not at the very rate where it ends to,
    /// whatever the rounding.
    fn gains(&self, rate: f64) -> bool {
        self.work > self.least_s * rate * (1.0 + 1e-12)
    }

    fn time_s(&self, rate: f64) -> f64 {
        if self.work <= 0.0 { 0.0 } else { self.least_s.max(self.work / rate) }
    }
}

impl Value {
    /// log V at a pace; never below that of winning nothing. For `All` the pace is the sum of the
    /// jobs' rates, for `First` the seconds to the first finish.
    pub fn log_v(&self, pace: f64) -> f64 {
        self.unfloored(pace).max(self.floor)
    }

    /// log V of winning nothing.
    pub(crate) fn floor(&self) -> f64 {
        self.floor
    }

    /// The same without the floor: concave in the sum of rates, since the time is convex in it and
    /// its steps are towards flatter.
    pub(super) fn unfloored(&self, pace: f64) -> f64 {
        let time_s = match self.stopping {
            Stopping::All => self.phases.iter().map(|phase| phase.time_s(pace)).sum(),
            Stopping::First => pace,
        };
        log_v((self.elapsed_s + time_s) / self.t_id_s)
    }

    /// Seconds that no speed shortens at this rate or above it, and the work that it does shorten.
    fn split(&self, rate: f64) -> (f64, f64) {
        self.phases.iter().fold((self.elapsed_s, 0.0), |(fixed_s, work), phase| {
            if phase.gains(rate) {
                (fixed_s, work + phase.work)
            } else {
                (fixed_s + phase.time_s(rate), work)
            }
        })
    }

    /// Slope of log V in the sum of rates, for `All`: falling, and 0 from where the longest jobs
    /// decide.
    pub(super) fn slope(&self, rate: f64) -> f64 {
        let (fixed_s, work) = self.split(rate);
        if work <= 0.0 { 0.0 } else { work / (rate * (fixed_s * rate + work)) }
    }

    /// The rate up to which the slope of log V is at least this, for `All`; `None` for a slope
    /// that is no price. Between two rates at which a phase stops to gain, it solves
    /// e R^2 + W R = W / slope.
    pub(super) fn rate_at_slope(&self, slope: f64) -> Option<f64> {
        if !slope.is_finite() || slope <= 0.0 {
            return None;
        }
        let mut from = 0.0;
        loop {
            let (e, w) = self.split(from);
            if w <= 0.0 {
                return (from > 0.0).then_some(from);
            }
            let rate = if e > 0.0 {
                ((w * w + 4.0 * e * w / slope).sqrt() - w) / (2.0 * e)
            } else {
                1.0 / slope
            };
            let gaining = self.phases.iter().filter(|phase| phase.gains(from));
            let to = gaining.map(|phase| phase.work / phase.least_s).fold(f64::INFINITY, f64::min);
            if rate <= to {
                return Some(rate.max(from));
            }
            from = to;
        }
    }
}

impl AppState {
    /// The figures of this app.
    pub fn value(&self) -> Value {
        let now = Phase { work: self.work_left_gpu_s(), least_s: self.longest_s() };
        let later = self.later.iter();
        let later = later.map(|p: &Demand| Phase { work: p.work_gpu_s, least_s: p.least_s() });
        Value {
            stopping: self.stopping,
            elapsed_s: self.elapsed_s,
            t_id_s: self.t_id_s,
            phases: std::iter::once(now).chain(later).collect(),
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
