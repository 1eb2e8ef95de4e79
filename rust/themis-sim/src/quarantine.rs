//! Machines that fail again and again, and are left alone for a while.

use std::collections::{BTreeSet, VecDeque};

use crate::settings::Settings;

/// A machine that has failed `after` times, the first and the last of them no more than `lasts_us`
/// apart, takes part again only `lasts_us` after its next repair.
#[derive(Clone, Debug)]
pub(crate) struct Quarantine {
    after: usize,
    lasts_us: i64,
    /// When each machine failed, at most the last `after` times.
    failed: Vec<VecDeque<i64>>,
    /// (until when, machine) of those that are left alone.
    resting: BTreeSet<(i64, u32)>,
}

impl Quarantine {
    /// None where machines are used again as soon as they are repaired.
    pub(crate) fn new(machines: usize, settings: &Settings) -> Option<Self> {
        Some(Self {
            after: settings.quarantine_after? as usize,
            lasts_us: settings.quarantine_us,
            failed: vec![VecDeque::new(); machines],
            resting: BTreeSet::new(),
        })
    }

    /// Takes note of a failure.
    pub(crate) fn failed(&mut self, machine: u32, at_us: i64) {
        let times = &mut self.failed[machine as usize];
        if times.len() == self.after {
            times.pop_front();
        }
        times.push_back(at_us);
    }

    /// Whether a machine that is repaired now is left alone; if so, until later.
    pub(crate) fn holds_back(&mut self, machine: u32, at_us: i64) -> bool {
        let times = &self.failed[machine as usize];
        let (Some(first), Some(last)) = (times.front(), times.back()) else { return false };
        let often = times.len() == self.after && last - first <= self.lasts_us;
        if often && !self.is_resting(machine) {
            self.resting.insert((at_us.saturating_add(self.lasts_us), machine));
        }
        often
    }

    /// Whether a machine is left alone.
    pub(crate) fn is_resting(&self, machine: u32) -> bool {
        self.resting.iter().any(|(_, other)| *other == machine)
    }

    /// When a machine is used again next.
    pub(crate) fn next_us(&self) -> Option<i64> {
        self.resting.first().map(|(until_us, _)| *until_us)
    }

    /// The next machine that is used again by now, and since when.
    pub(crate) fn pop(&mut self, now_us: i64) -> Option<(i64, u32)> {
        let (until_us, machine) = self.resting.first().copied()?;
        if until_us > now_us {
            return None;
        }
        self.resting.pop_first();
        self.failed[machine as usize].clear();
        Some((until_us, machine))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quarantine() -> Quarantine {
        let settings =
            Settings { quarantine_after: Some(2), quarantine_us: 100, ..Settings::default() };
        Quarantine::new(3, &settings).expect("some")
    }

    #[test]
    fn a_machine_rests_after_two_failures_close_together() {
        let mut rests = quarantine();
        rests.failed(1, 0);
        assert!(!rests.holds_back(1, 10)); // one failure
        rests.failed(1, 101);
        assert!(!rests.holds_back(1, 110)); // too far apart
        rests.failed(1, 201);
        assert!(rests.holds_back(1, 210));
        assert!(rests.is_resting(1) && !rests.is_resting(0));
        assert_eq!((rests.next_us(), rests.pop(309)), (Some(310), None));
        assert_eq!((rests.pop(310), rests.next_us()), (Some((310, 1)), None));
    }

    #[test]
    fn what_it_did_before_is_forgotten_then() {
        let mut rests = quarantine();
        for at_us in [0, 1] {
            rests.failed(2, at_us);
        }
        assert!(rests.holds_back(2, 5));
        rests.failed(2, 50); // while it rests
        assert!(rests.holds_back(2, 60));
        assert_eq!(rests.pop(500), Some((105, 2))); // the first rest counts
        rests.failed(2, 510);
        assert!(!rests.holds_back(2, 520));
    }
}
