//! When leases end.

use crate::settings::{LATEST_US, LeaseMode, Settings};
use themis_core::auction::Payment;

/// When leases end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseClock {
    lease_us: i64,
    min_lease_us: i64,
    mode: LeaseMode,
    /// Payments may cut leases short.
    cut: bool,
}

impl LeaseClock {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            lease_us: settings.lease_us,
            min_lease_us: settings.min_lease_us,
            mode: settings.lease_mode,
            cut: settings.rules.payment == Payment::Lease,
        }
    }

    /// The shortest lease that is granted at the start of a round.
    pub(crate) fn shortest_us(&self) -> i64 {
        if self.cut { self.lease_us.min(self.min_lease_us) } else { self.lease_us }
    }

    /// The end of a lease granted now, for a share of its full length.
    pub(crate) fn expiry(&self, now_us: i64, fraction: f64) -> i64 {
        let full = match self.mode {
            LeaseMode::Rolling => now_us.saturating_add(self.lease_us),
            LeaseMode::Aligned => {
                (now_us / self.lease_us).saturating_add(1).saturating_mul(self.lease_us)
            }
        };
        if fraction >= 1.0 {
            return full.min(LATEST_US);
        }
        let share = (fraction * (full - now_us) as f64).ceil() as i64;
        (now_us + share.max(self.min_lease_us).max(1)).min(full)
    }

    /// The end that is due at or after `now`, of a lease that went on unopposed since `expiry`.
    pub(crate) fn due(&self, expiry_us: i64, now_us: i64) -> i64 {
        if expiry_us >= now_us {
            return expiry_us;
        }
        let first = match self.mode {
            LeaseMode::Rolling => expiry_us,
            LeaseMode::Aligned => {
                expiry_us + (self.lease_us - expiry_us % self.lease_us) % self.lease_us
            }
        };
        if first >= now_us {
            return first;
        }
        first + (now_us - first + self.lease_us - 1) / self.lease_us * self.lease_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(mode: LeaseMode) -> LeaseClock {
        LeaseClock { lease_us: 100, min_lease_us: 20, mode, cut: true }
    }

    #[test]
    fn aligned_leases_end_on_multiples_and_rolling_ones_on_their_own_clock() {
        let (aligned, rolling) = (clock(LeaseMode::Aligned), clock(LeaseMode::Rolling));
        assert_eq!([0, 30, 100].map(|t| aligned.expiry(t, 1.0)), [100, 100, 200]);
        assert_eq!([0, 30, 100].map(|t| rolling.expiry(t, 1.0)), [100, 130, 200]);
        assert_eq!((rolling.expiry(30, 0.5), rolling.expiry(30, 0.01)), (80, 50));
        assert_eq!((aligned.expiry(90, 0.01), aligned.expiry(0, 0.505)), (100, 51));
    }

    #[test]
    fn an_unopposed_lease_is_due_at_its_next_end() {
        let (aligned, rolling) = (clock(LeaseMode::Aligned), clock(LeaseMode::Rolling));
        assert_eq!([130, 131, 230, 231].map(|now| rolling.due(130, now)), [130, 230, 230, 330]);
        assert_eq!([100, 101, 350].map(|now| aligned.due(100, now)), [100, 200, 400]);
        // A lease that a payment cut to 151 falls back into step.
        assert_eq!([151, 152, 201].map(|now| aligned.due(151, now)), [151, 200, 300]);
    }
}
