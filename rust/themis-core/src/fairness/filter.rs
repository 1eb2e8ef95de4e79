//! Who is worst off: the order of the offer, and how many see it (paper, section 3.3).

/// What an app is ranked by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FilterKey {
    /// (elapsed + time left alone on the cluster) / `T_ID`, whatever it holds now.
    #[default]
    BestCase,
    /// rho at present holdings, unbounded without any; ties by the best case.
    Holdings,
    /// The last rho, growing with every minute waited; without one, the best case.
    Cached,
}

/// How many of `n` apps with unmet demand take part: the worst max(1, ceil((1 - f) n)).
pub fn participants(fairness_knob: f64, n: usize) -> usize {
    // A hair below, since (1 - 0.7) * 10 is a little more than 3 in binary.
    let share = ((1.0 - fairness_knob) * n as f64 - 1e-9).ceil().max(1.0);
    (share as usize).min(n)
}

/// Positions ordered worst first by (key, second key); ties by position, which the caller numbers
/// by (arrival, app id). Keys are compared one after the other, never folded into one number.
pub fn worst_first(keys: &[(f64, f64)]) -> Vec<usize> {
    let falling = |key: f64| !rising(key);
    let mut order: Vec<(u64, u64, u32)> =
        (0..).zip(keys).map(|(at, (a, b))| (falling(*a), falling(*b), at)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, _, at)| at as usize).collect()
}

/// A whole number in the order of `total_cmp`: quicker to compare.
fn rising(key: f64) -> u64 {
    let bits = key.to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_up_but_not_by_binary_dust() {
        let n = |f, n| participants(f, n);
        assert_eq!([n(0.8, 10), n(0.8, 11), n(0.7, 10), n(0.9, 10)], [2, 3, 3, 1]);
        assert_eq!([n(1.0, 10), n(0.0, 10), n(0.8, 1), n(0.8, 0)], [1, 10, 1, 0]);
    }

    #[test]
    fn worst_comes_first_and_ties_keep_their_order() {
        let keys = [(1.0, 0.0), (f64::INFINITY, 1.0), (1.0, 0.0), (f64::INFINITY, 2.0)];
        assert_eq!(worst_first(&keys), vec![3, 1, 0, 2]);
    }
}
