//! Subgradient steps of all prices at once, towards the least value of a dual (Polyak).
//!
//! A step aims below the best value so far, by an allowance that halves when it leads nowhere. Any
//! prices bound the optimum, so that no step can do harm. Cost: one evaluation a step.

/// How the steps go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Steps at most.
    pub(super) steps: u32,
    /// Steps without progress before the aim is lowered.
    pub(super) patience: u32,
    /// The share of a direction that the next one keeps, which evens out where directions alternate.
    pub(super) keep: f64,
    /// The allowance below which steps are not worth their while.
    pub(super) least: f64,
}

/// Prices of a smaller value, and that value. `evaluate` says what prices are worth, and by how much
/// more than there is of each thing is asked for at them, less if negative.
pub(super) fn descend(
    mut best: (Vec<f64>, f64),
    mut allowance: f64,
    pace: Pace,
    mut evaluate: impl FnMut(&[f64], &mut [f64]) -> f64,
) -> (Vec<f64>, f64) {
    let mut prices = best.0.clone();
    let mut excess = vec![0.0; prices.len()];
    let mut direction = excess.clone();
    let mut idle = 0;
    for _ in 0..pace.steps {
        let value = evaluate(&prices, &mut excess);
        if value < best.1 - 1e-3 * allowance {
            best.0.clone_from(&prices);
            best.1 = value;
            idle = 0;
        } else {
            idle += 1;
        }
        if idle > pace.patience {
            (allowance, idle) = (allowance / 2.0, 0);
            prices.clone_from(&best.0);
            direction.fill(0.0);
            continue;
        }
        let mut norm = 0.0;
        for ((along, excess), price) in direction.iter_mut().zip(&excess).zip(&prices) {
            *along = pace.keep * *along + excess;
            // What is plentiful and has no price stays without one.
            if *along < 0.0 && *price <= 0.0 {
                *along = 0.0;
            }
            norm += *along * *along;
        }
        if norm < 1e-9 || allowance < pace.least {
            break;
        }
        let step = (value - best.1 + allowance) / norm;
        for (price, along) in prices.iter_mut().zip(&direction) {
            *price = (*price + step * along).max(0.0);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    /// |x - 3| + 2 |y - x| + max(0, 1 - y): least, 0, at x = y = 3.
    fn value(at: &[f64], slope: &mut [f64]) -> f64 {
        let (x, y) = (at[0], at[1]);
        let sign = |z: f64| if z > 0.0 { 1.0 } else { -1.0 };
        // Too much is asked for where the value falls.
        slope[0] = -sign(x - 3.0) + 2.0 * sign(y - x);
        slope[1] = -2.0 * sign(y - x) + if y < 1.0 { 1.0 } else { 0.0 };
        (x - 3.0).abs() + 2.0 * (y - x).abs() + (1.0 - y).max(0.0)
    }

    #[test]
    fn steps_lead_near_the_least_value_and_never_up() {
        let start = vec![0.0, 0.0];
        let first = value(&start, &mut [0.0; 2]);
        let mut last = first;
        for steps in [0, 10, 50, 400] {
            let pace = Pace { steps, patience: 5, keep: 0.5, least: 1e-9 };
            let (at, found) = descend((start.clone(), first), first, pace, value);
            assert!((value(&at, &mut [0.0; 2]) - found).abs() < 1e-12);
            assert!(found <= last);
            last = found;
        }
        assert!(last < 0.05, "{last}");
    }
}
