//! Prices a slot at which what bidders like best adds up to what there is.

use super::rows::{Rows, Way};

/// Passes without a better bound after which steps are halved.
const PATIENCE: u32 = 4;

/// Prices of a small dual value, which no selection exceeds.
///
/// Polyak's subgradient steps towards `target`, a value that is reached: `groups` are the ways that
/// each bidder has. Ends early once the value is down to the target. Cost: `passes` over all ways.
pub(super) fn balance<'a, G>(
    rows: &Rows,
    free: &[u32],
    groups: impl Fn() -> G,
    start: &[f64],
    (target, passes): (f64, u32),
) -> (Vec<f64>, f64)
where
    G: Iterator<Item = &'a [Way]>,
{
    let mut prices = start.to_vec();
    let mut best = (prices.clone(), f64::INFINITY);
    let mut excess = vec![0.0; free.len()];
    let (mut pace, mut idle) = (1.0, 0);
    for _ in 0..passes {
        let mut value = worth(free, &prices);
        excess.iter_mut().zip(free).for_each(|(excess, free)| *excess = -f64::from(*free));
        for ways in groups() {
            let (surplus, way) = favourite(rows, ways, &prices);
            value += surplus;
            for (slot, gpus) in rows.uses(way) {
                excess[*slot as usize] += f64::from(*gpus);
            }
        }
        idle += 1;
        if value < best.1 - 1e-9 {
            best = (prices.clone(), value);
            idle = 0;
        } else if idle > PATIENCE {
            (pace, idle) = (pace / 2.0, 0);
            prices.clone_from(&best.0);
        }
        for (excess, price) in excess.iter_mut().zip(&prices) {
            if *price <= 0.0 && *excess < 0.0 {
                *excess = 0.0;
            }
        }
        let norm: f64 = excess.iter().map(|e| e * e).sum();
        if norm < 1e-9 || value - target < 1e-9 {
            break;
        }
        let step = pace * (value - target) / norm;
        for (price, excess) in prices.iter_mut().zip(&excess) {
            *price = (*price + step * excess).max(0.0);
        }
    }
    best
}

/// What the free GPUs cost.
pub(super) fn worth(free: &[u32], prices: &[f64]) -> f64 {
    free.iter().zip(prices).map(|(free, price)| f64::from(*free) * price).sum()
}

/// The way of the largest surplus; ties: the first.
fn favourite<'a>(rows: &Rows, ways: &'a [Way], prices: &[f64]) -> (f64, &'a Way) {
    let mut best = (f64::NEG_INFINITY, &ways[0]);
    for way in ways {
        let surplus = way.log_v - rows.cost(way, prices);
        if surplus > best.0 {
            best = (surplus, way);
        }
    }
    best
}
