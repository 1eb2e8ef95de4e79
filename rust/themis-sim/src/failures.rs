//! Machines that fail by chance: exponential times to failure and to repair.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand_pcg::Pcg64;

use crate::draws::{stream, unit};
use crate::settings::Settings;

/// Each machine works for `mtbf_us` and is down for `mttr_us` on average, from time 0 on, whether
/// it is in use or not: the same seed gives every policy the same failures.
#[derive(Clone, Debug)]
pub(crate) struct Failures {
    mtbf_us: i64,
    mttr_us: i64,
    draws: Pcg64,
    /// (when, machine, whether it is down until then); equal times by machine.
    next: BinaryHeap<Reverse<(i64, u32, bool)>>,
}

impl Failures {
    /// None when machines do not fail by chance.
    pub(crate) fn new(machines: usize, settings: &Settings) -> Option<Self> {
        let (mtbf_us, mttr_us) = (settings.mtbf_us?, settings.mttr_us);
        let draws = stream(settings.seed, 3);
        let mut failures = Self { mtbf_us, mttr_us, draws, next: BinaryHeap::new() };
        for machine in 0..machines as u32 {
            let at_us = failures.draw(mtbf_us);
            failures.next.push(Reverse((at_us, machine, false)));
        }
        Some(failures)
    }

    /// When a machine fails or is repaired next.
    pub(crate) fn next_us(&self) -> i64 {
        self.next.peek().map_or(i64::MAX, |Reverse((at_us, ..))| *at_us)
    }

    /// The next machine that changes sides by now, and when it did.
    pub(crate) fn pop(&mut self, now_us: i64) -> Option<(i64, u32)> {
        if self.next_us() > now_us {
            return None;
        }
        let Reverse((at_us, machine, down)) = self.next.pop()?;
        let lasts_us = self.draw(if down { self.mtbf_us } else { self.mttr_us });
        self.next.push(Reverse((at_us.saturating_add(lasts_us), machine, !down)));
        Some((at_us, machine))
    }

    /// An exponential time of this mean, at least a microsecond.
    fn draw(&mut self, mean_us: i64) -> i64 {
        let time_us = -(mean_us as f64) * (1.0 - unit(&mut self.draws)).ln();
        (time_us.round() as i64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_up_and_down_as_long_as_asked_on_average() {
        let settings =
            Settings { mtbf_us: Some(9_000_000), mttr_us: 1_000_000, ..Settings::default() };
        let mut failures = Failures::new(50, &settings).expect("some");
        let (mut since, mut down) = (vec![0; 50], vec![false; 50]);
        let (mut up_us, mut down_us, mut count) = (0, 0, 0);
        while let Some((at_us, machine)) = failures.pop(10_000_000_000) {
            let machine = machine as usize;
            let lasted = at_us - std::mem::replace(&mut since[machine], at_us);
            down[machine] = !down[machine];
            if down[machine] {
                (up_us, count) = (up_us + lasted, count + 1);
            } else {
                down_us += lasted;
            }
        }
        // 50 machines for 10,000 s: 50,000 cycles of 10 s; means within 3 %.
        assert!((48_500..51_500).contains(&count), "{count}");
        let (up, down) = (up_us as f64 / f64::from(count), down_us as f64 / f64::from(count));
        assert!((up / 9e6 - 1.0).abs() < 0.03 && (down / 1e6 - 1.0).abs() < 0.03, "{up} {down}");
    }
}
