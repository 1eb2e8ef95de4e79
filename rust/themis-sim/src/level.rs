//! A number that changes now and then, and its mean over any app's life: how many GPUs the cluster
//! has, how many apps share them.

use crate::sum::Sum;

/// A number and its running integral over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Level {
    now: f64,
    since_us: i64,
    /// Units times microseconds so far.
    area: Sum,
}

impl Level {
    pub(crate) fn now(&self) -> f64 {
        self.now
    }

    /// Changes from `now` on.
    pub(crate) fn set(&mut self, now_us: i64, to: f64) {
        self.area = self.area_at(now_us);
        self.since_us = now_us;
        self.now = to;
    }

    /// Unit-microseconds up to `now`.
    pub(crate) fn area_at(&self, now_us: i64) -> Sum {
        if now_us == self.since_us {
            return self.area;
        }
        self.area.plus_product(self.now, (now_us - self.since_us) as f64)
    }

    /// Mean since an instant at which the area was `area_then`; the present number when that is
    /// now.
    pub(crate) fn mean(&self, from_us: i64, area_then: Sum, now_us: i64) -> f64 {
        if now_us <= from_us {
            return self.now;
        }
        self.area_at(now_us).minus(area_then) / (now_us - from_us) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_weighted_by_time() {
        let mut c = Level::default();
        c.set(0, 1.0);
        let first = c.area_at(0);
        c.set(10, 2.0);
        let second = c.area_at(10);
        assert!((c.mean(10, second, 10) - 2.0).abs() < 1e-12);
        c.set(40, 1.0);
        // 10 us alone, 30 us together, 10 us alone: 80 / 50.
        assert!((c.mean(0, first, 50) - 1.6).abs() < 1e-12);
        assert!((c.now() - 1.0).abs() < 1e-12);
    }
}
