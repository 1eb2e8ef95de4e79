//! A certified upper bound on the sum of log V, from one price a GPU.
//!
//! For any price p >= 0 the dual D(p) = p C + sum over bidders of max(log V(nothing), max over
//! GPUs n of (log V at best with n) - p n) is at least the optimum: relax "each GPU once" to "no
//! more GPUs than C". D is convex in p; the slope C - (GPUs asked for at p) tells the side of its
//! minimum. Cost: O(rows of all bidders) a step, 60 steps at most. Placement is relaxed too, so
//! the gap includes what fragmentation costs.

use super::Bid;
use super::winners::Solution;
use crate::cluster::FreeSet;

const STEPS: u32 = 60;

/// The bound; the objective itself when it is known to be optimal.
pub(super) fn upper_bound(offer: &FreeSet, bids: &[Bid<'_>], solution: &Solution) -> f64 {
    let objective = solution.objective();
    if solution.exact {
        return objective;
    }
    let rows: Vec<Rows> = bids
        .iter()
        .map(|bid| Rows { empty: bid.bidder.log_v_empty(), rows: bid.bidder.bound(offer) })
        .collect();
    let capacity = f64::from(offer.total());
    let (mut best, asked) = dual(&rows, capacity, 0.0);
    if asked as f64 > capacity {
        let (mut low, mut high) = (0.0, rows.iter().map(Rows::steepest).fold(0.0, f64::max));
        for _ in 0..STEPS {
            let price = f64::midpoint(low, high);
            let (value, asked) = dual(&rows, capacity, price);
            best = best.min(value);
            if asked as f64 > capacity {
                low = price;
            } else {
                high = price;
            }
        }
    }
    best.max(objective)
}

struct Rows {
    empty: f64,
    rows: Vec<(u32, f64)>,
}

impl Rows {
    /// The gain a GPU above which the bidder asks for nothing.
    fn steepest(&self) -> f64 {
        let gains = self.rows.iter().map(|(gpus, log_v)| (log_v - self.empty) / f64::from(*gpus));
        gains.fold(0.0, f64::max)
    }
}

/// D(p) and the GPUs asked for at that price (fewest among equals).
fn dual(bidders: &[Rows], capacity: f64, price: f64) -> (f64, u64) {
    let mut value = price * capacity;
    let mut asked = 0;
    for bidder in bidders {
        let mut best = (bidder.empty, 0);
        for (gpus, log_v) in &bidder.rows {
            let surplus = log_v - price * f64::from(*gpus);
            if surplus > best.0 {
                best = (surplus, *gpus);
            }
        }
        value += best.0;
        asked += u64::from(best.1);
    }
    (value, asked)
}
