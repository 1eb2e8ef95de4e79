//! Sums of floats to twice their precision (two-sum: Knuth, TAOCP vol. 2, section 4.2.2).
//!
//! Weights come and go over a whole run and areas grow with it: plain sums would keep the rounding
//! errors of what has long gone. Sums of whole numbers are exact below 2^106.

/// A sum under way; `low` is what `high` rounds off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sum {
    high: f64,
    low: f64,
}

impl Sum {
    /// Adds a number; one below 0 is taken off.
    #[must_use]
    pub(crate) fn plus(self, number: f64) -> Self {
        let (high, error) = two_sum(self.high, number);
        let (high, low) = two_sum(high, self.low + error);
        Self { high, low }
    }

    /// Adds a product, without rounding it.
    #[must_use]
    pub(crate) fn plus_product(self, one: f64, other: f64) -> Self {
        let product = one * other;
        self.plus(product).plus(one.mul_add(other, -product))
    }

    /// The difference, rounded once.
    pub(crate) fn minus(self, other: Self) -> f64 {
        let (high, error) = two_sum(self.high, -other.high);
        high + (error + (self.low - other.low))
    }

    /// The sum, rounded once.
    pub(crate) fn value(self) -> f64 {
        self.high
    }
}

/// A sum and the error of its rounding.
fn two_sum(one: f64, other: f64) -> (f64, f64) {
    let sum = one + other;
    let part = sum - one;
    (sum, (one - (sum - part)) + (other - part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_and_went_leaves_nothing() {
        let weights = [0.2, 0.1, 1e6, 1e-6, 3.7];
        let all = weights.iter().fold(Sum::default(), |sum, weight| sum.plus(*weight));
        let rest = weights[1..].iter().fold(all, |sum, weight| sum.plus(-weight));
        assert!((rest.value() - 0.2).abs() < 1e-25);
    }

    #[test]
    fn whole_numbers_are_exact_far_beyond_a_float() {
        let (mut sum, mut exact) = (Sum::default(), 0_i128);
        let (mut then, mut exactly_then) = (sum, exact);
        for step in 0..1000_i64 {
            if step == 600 {
                (then, exactly_then) = (sum, exact);
            }
            let (apps, lasts_us) = (step * 7 % 1003, (1 << 51) + step * 13_577);
            sum = sum.plus_product(apps as f64, lasts_us as f64);
            exact += i128::from(apps) * i128::from(lasts_us);
        }
        assert!(exact > 1 << 69);
        assert_eq!(sum.value().to_bits(), (exact as f64).to_bits());
        assert_eq!(sum.minus(then).to_bits(), ((exact - exactly_then) as f64).to_bits());
    }
}
