//! A number that changes now and then, and its mean over any app's life: how many apps are active
//! (`N_avg` of the paper), how many GPUs the cluster has.

/// A number and its running integral over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Level {
    now: u32,
    since_us: i64,
    /// Units times microseconds so far.
    area: i128,
}

impl Level {
    pub(crate) fn now(&self) -> u32 {
        self.now
    }

    /// Counts up or down from `now` on.
    pub(crate) fn change(&mut self, now_us: i64, by: i32) {
        self.area = self.area_at(now_us);
        self.since_us = now_us;
        self.now = self.now.checked_add_signed(by).expect("invariant: count from zero");
    }

    /// Unit-microseconds up to `now`.
    pub(crate) fn area_at(&self, now_us: i64) -> i128 {
        self.area + i128::from(self.now) * i128::from(now_us - self.since_us)
    }

    /// Mean since an instant at which the area was `area_then`, at least 1; the present number
    /// when that is now.
    pub(crate) fn mean(&self, from_us: i64, area_then: i128, now_us: i64) -> f64 {
        if now_us <= from_us {
            return f64::from(self.now.max(1));
        }
        let area = (self.area_at(now_us) - area_then) as f64;
        (area / (now_us - from_us) as f64).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_weighted_by_time() {
        let mut c = Level::default();
        c.change(0, 1);
        let first = c.area_at(0);
        c.change(10, 1);
        let second = c.area_at(10);
        assert!((c.mean(10, second, 10) - 2.0).abs() < 1e-12);
        c.change(40, -1);
        // 10 us alone, 30 us together, 10 us alone: 80 / 50.
        assert!((c.mean(0, first, 50) - 1.6).abs() < 1e-12);
        assert_eq!(c.now(), 1);
    }
}
