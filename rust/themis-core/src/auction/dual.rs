//! A certified upper bound on the sum of log V, from a few prices.
//!
//! For any prices p >= 0, one a row of [`Chunks`], D(p) = p . capacity + sum over bidders of
//! max(log V(nothing), max over bundles of log V - p . use) is at least the optimum: the rows relax
//! "each GPU once". D is convex. The GPU price alone comes first, by bisection; the chunk prices
//! move, by subgradient steps towards the best allocation known (Polyak), only when the bidders ask
//! for more chunks than there are.
//!
//! Cost: O(patterns x rows) a step, [`BISECTIONS`] + [`STEPS`] steps at most. Guarantee: the bound
//! holds whatever the steps found, since any prices do.

use super::Bid;
use super::solution::Solution;
use crate::cluster::{Chunks, FreeSet, MAX_ROWS, Use};

/// Steps of the GPU price alone.
const BISECTIONS: u32 = 40;
/// Steps of all prices.
const STEPS: u32 = 100;
/// Steps of all prices over all bidders, after those over a sample.
const LAST_STEPS: u32 = 12;
/// Bidders of a sample.
const SAMPLE: usize = 512;
/// Steps without progress before the aim is lowered.
const PATIENCE: u32 = 2;
/// The gap a bidder that is aimed at when no allocation is known.
const ROUGH_GAP: f64 = 0.02;
/// The gap a bidder below which steps are not worth their while.
const NEAR_ENOUGH: f64 = 1e-5;

/// Prices, and what they say.
#[derive(Clone, Debug)]
pub(super) struct Dual {
    pub(super) prices: [f64; MAX_ROWS],
    pub(super) value: f64,
}

/// The bound; the solver's own where that is tighter.
pub(super) fn upper_bound(
    offer: &FreeSet,
    chunks: &Chunks,
    bids: &[Bid<'_>],
    solution: &Solution,
    dual: &Dual,
) -> f64 {
    certified(offer, chunks, bids, dual).min(solution.bound).max(solution.objective())
}

/// D at these prices, over every way to serve every bidder.
fn certified(offer: &FreeSet, chunks: &Chunks, bids: &[Bid<'_>], dual: &Dual) -> f64 {
    let mut value = paid(chunks.capacity(), &dual.prices);
    for bid in bids {
        let (surplus, _) = respond(bid, &dual.prices);
        let more = bid.bidder.relaxed(offer, chunks).map(|relaxed| relaxed.most(&dual.prices));
        value += surplus.max(more.unwrap_or(surplus));
    }
    value
}

/// Prices of a small D, over the patterns of all bidders.
///
/// With many bidders most steps look at every k-th only, against its share of the capacity: the
/// prices that balance a large sample nearly balance all.
pub(super) fn minimise(chunks: &Chunks, bids: &[Bid<'_>], known: Option<f64>) -> Dual {
    let start = gpu_price(chunks, bids);
    let all: Vec<&Bid<'_>> = bids.iter().collect();
    let rough = known.map_or(ROUGH_GAP * bids.len() as f64, |known| (start.value - known).max(0.0));
    if bids.len() <= 2 * SAMPLE {
        return Descent::new(chunks, all, 1.0).run(start, rough, STEPS);
    }
    let every = bids.len() / SAMPLE;
    let sample: Vec<&Bid<'_>> = bids.iter().step_by(every).collect();
    let share = sample.len() as f64 / bids.len() as f64;
    let sampled = Descent::new(chunks, sample, share);
    let guess = sampled.at(start.prices);
    let guess = sampled.run(guess, rough * share, STEPS);
    let whole = Descent::new(chunks, all, 1.0);
    let start = Some(start).into_iter().chain([whole.at(guess.prices)]);
    let start = start.reduce(|one, other| if other.value < one.value { other } else { one });
    let start = start.expect("invariant: two candidates");
    whole.run(start, 0.1 * rough, LAST_STEPS)
}

/// Subgradient steps over some bidders and their share of the capacity.
struct Descent<'a> {
    rows: usize,
    bids: Vec<&'a Bid<'a>>,
    capacity: [f64; MAX_ROWS],
}

impl<'a> Descent<'a> {
    fn new(chunks: &Chunks, bids: Vec<&'a Bid<'a>>, share: f64) -> Self {
        Self { rows: chunks.len(), bids, capacity: chunks.capacity().map(|c| c * share) }
    }

    fn at(&self, prices: [f64; MAX_ROWS]) -> Dual {
        Dual { prices, value: self.evaluate(&prices).0 }
    }

    /// Steps from `best` on. A step aims below the best value so far, by an allowance that halves
    /// when it leads nowhere.
    fn run(&self, mut best: Dual, mut allowance: f64, steps: u32) -> Dual {
        let mut prices = best.prices;
        let mut idle = 0;
        for _ in 0..steps {
            let (value, asked) = self.evaluate(&prices);
            if value < best.value - 1e-3 * allowance {
                best = Dual { prices, value };
                idle = 0;
            } else {
                idle += 1;
            }
            if idle > PATIENCE {
                (allowance, idle) = (allowance / 2.0, 0);
                prices = best.prices;
                continue;
            }
            // Slack rows without a price stay without one.
            let mut slope = [0.0; MAX_ROWS];
            for row in 0..self.rows {
                let excess = asked[row] - self.capacity[row];
                if excess > 0.0 || prices[row] > 0.0 {
                    slope[row] = excess;
                }
            }
            let norm: f64 = slope.iter().map(|slope| slope * slope).sum();
            let crowded = (1..self.rows).any(|row| slope[row] > 0.0 || prices[row] > 0.0);
            if norm < 1e-9 || !crowded || allowance < NEAR_ENOUGH * self.bids.len() as f64 {
                break;
            }
            let step = (value - best.value + allowance) / norm;
            for (price, slope) in prices.iter_mut().zip(slope) {
                *price = (*price + step * slope).max(0.0);
            }
        }
        best
    }

    /// D over the patterns, and what is asked for of each row.
    fn evaluate(&self, prices: &[f64; MAX_ROWS]) -> (f64, [f64; MAX_ROWS]) {
        let mut value = paid(&self.capacity, prices);
        let mut asked = [0.0; MAX_ROWS];
        for bid in &self.bids {
            let (surplus, uses) = respond(bid, prices);
            value += surplus;
            for (asked, amount) in asked.iter_mut().zip(uses.0) {
                *asked += f64::from(amount);
            }
        }
        (value, asked)
    }
}

/// The best single price a GPU, by bisection on the upper concave hulls of the bids.
fn gpu_price(chunks: &Chunks, bids: &[Bid<'_>]) -> Dual {
    let hulls: Vec<Vec<(u32, f64)>> = bids.iter().map(hull).collect();
    let capacity = chunks.capacity()[0];
    let at = |price: f64| {
        let (mut value, mut asked) = (price * capacity, 0.0);
        for hull in &hulls {
            let mut best = hull[0];
            for step in &hull[1..] {
                if step.1 - best.1 <= price * f64::from(step.0 - best.0) {
                    break;
                }
                best = *step;
            }
            value += best.1 - price * f64::from(best.0);
            asked += f64::from(best.0);
        }
        (value, asked)
    };
    let dual = |price: f64, value: f64| {
        let mut prices = [0.0; MAX_ROWS];
        prices[0] = price;
        Dual { prices, value }
    };
    let (value, asked) = at(0.0);
    let mut best = dual(0.0, value);
    if asked <= capacity {
        return best;
    }
    let steepest = |hull: &Vec<(u32, f64)>| {
        hull.get(1).map_or(0.0, |step| (step.1 - hull[0].1) / f64::from(step.0))
    };
    let (mut low, mut high) = (0.0, hulls.iter().map(steepest).fold(0.0, f64::max));
    for _ in 0..BISECTIONS {
        let price = f64::midpoint(low, high);
        let (value, asked) = at(price);
        if value < best.value {
            best = dual(price, value);
        }
        if asked > capacity {
            low = price;
        } else {
            high = price;
        }
    }
    best
}

/// The corners of the upper concave hull of (GPUs, log V), from nothing on.
fn hull(bid: &Bid<'_>) -> Vec<(u32, f64)> {
    let mut corners: Vec<(u32, f64)> = vec![(0, bid.bidder.log_v_empty())];
    let mut rows: Vec<(u32, f64)> = bid.patterns.iter().map(|p| (p.gpus(), p.log_v)).collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    for row in rows {
        if row.1 <= corners[corners.len() - 1].1 {
            continue;
        }
        while let [.., before, last] = corners.as_slice() {
            let run = |a: &(u32, f64), b: &(u32, f64)| f64::from(b.0 - a.0);
            let rise = (last.1 - before.1) * run(before, &row);
            if rise > (row.1 - before.1) * run(before, last) {
                break;
            }
            corners.pop();
        }
        corners.push(row);
    }
    corners
}

fn paid(capacity: &[f64; MAX_ROWS], prices: &[f64; MAX_ROWS]) -> f64 {
    capacity.iter().zip(prices).map(|(capacity, price)| capacity * price).sum()
}

/// The pattern that is worth most above its price, or nothing; ties: the first.
fn respond(bid: &Bid<'_>, prices: &[f64; MAX_ROWS]) -> (f64, Use) {
    let mut best = (bid.bidder.log_v_empty(), Use::default());
    for pattern in &bid.patterns {
        let surplus = pattern.log_v - pattern.uses.cost(prices);
        if surplus > best.0 {
            best = (surplus, pattern.uses);
        }
    }
    best
}
