//! How many apps are active, and the mean over any app's life (`N_avg` of the paper).

/// The running integral of the number of active apps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contention {
    active: u32,
    since_us: i64,
    /// App-microseconds so far.
    area: i128,
}

impl Contention {
    pub(crate) fn active(&self) -> u32 {
        self.active
    }

    /// Counts apps in or out from `now` on.
    pub(crate) fn change(&mut self, now_us: i64, by: i32) {
        self.area = self.area_at(now_us);
        self.since_us = now_us;
        self.active = self.active.checked_add_signed(by).expect("invariant: count from zero");
    }

    /// App-microseconds up to `now`.
    pub(crate) fn area_at(&self, now_us: i64) -> i128 {
        self.area + i128::from(self.active) * i128::from(now_us - self.since_us)
    }

    /// Mean number of active apps since an app arrived, itself included; the number active now
    /// for an app that has just arrived.
    pub(crate) fn n_avg(&self, arrival_us: i64, area_then: i128, now_us: i64) -> f64 {
        if now_us <= arrival_us {
            return f64::from(self.active.max(1));
        }
        let area = (self.area_at(now_us) - area_then) as f64;
        (area / (now_us - arrival_us) as f64).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_weighted_by_time() {
        let mut c = Contention::default();
        c.change(0, 1);
        let first = c.area_at(0);
        c.change(10, 1);
        let second = c.area_at(10);
        assert!((c.n_avg(10, second, 10) - 2.0).abs() < 1e-12);
        c.change(40, -1);
        // 10 us alone, 30 us together, 10 us alone: 80 / 50.
        assert!((c.n_avg(0, first, 50) - 1.6).abs() < 1e-12);
        assert_eq!(c.active(), 1);
    }
}
