//! Exact proportional fairness for small auctions of explicit tables.
//!
//! Depth-first over bidders in order, each taking one of its rows or nothing, pruned by what the
//! rest could reach at best. A budget of steps (never of time) bounds the search; when it runs
//! out, the best allocation found so far stands, and the certified bound says how good it is.

use super::solution::Solution;
use super::{Bid, Bidder};
use crate::app::Placed;
use crate::cluster::FreeSet;

/// Rows tried before the search gives up.
const BUDGET: u32 = 200_000;

/// The better of the greedy solution and the exact one, where the exact one can be had.
pub(super) fn improve(
    offer: &FreeSet,
    bids: &[Bid<'_>],
    skip: Option<usize>,
    greedy: Solution,
) -> Solution {
    if !bids.iter().all(|bid| matches!(bid.bidder, Bidder::Table(_))) {
        return greedy;
    }
    let mut search = Search::new(offer, bids, skip, &greedy);
    search.visit(0, 0.0);
    let finished = search.budget > 0;
    match search.best {
        None => Solution { exact: finished, ..greedy },
        Some(rows) => Solution { exact: finished, ..rebuild(offer, bids, &rows) },
    }
}

struct Search<'a> {
    bids: &'a [Bid<'a>],
    skip: Option<usize>,
    free: FreeSet,
    /// What bidders from here on could reach at best.
    reach: Vec<f64>,
    chosen: Vec<Option<usize>>,
    best: Option<Vec<Option<usize>>>,
    best_objective: f64,
    budget: u32,
}

impl<'a> Search<'a> {
    fn new(offer: &FreeSet, bids: &'a [Bid<'a>], skip: Option<usize>, greedy: &Solution) -> Self {
        let top = |bid: &Bid<'_>| {
            let rows = bid.patterns.iter().map(|pattern| pattern.log_v);
            rows.fold(bid.bidder.log_v_empty(), f64::max)
        };
        let mut reach = vec![0.0; bids.len() + 1];
        for at in (0..bids.len()).rev() {
            let here =
                if Some(at) == skip { bids[at].bidder.log_v_empty() } else { top(&bids[at]) };
            reach[at] = reach[at + 1] + here;
        }
        Self {
            bids,
            skip,
            free: offer.clone(),
            reach,
            chosen: vec![None; bids.len()],
            best: None,
            best_objective: greedy.objective(),
            budget: BUDGET,
        }
    }

    fn visit(&mut self, at: usize, objective: f64) {
        // A hair's margin, so that equal allocations leave the first one found standing.
        if self.budget == 0 || objective + self.reach[at] <= self.best_objective + 1e-12 {
            return;
        }
        let Some(bid) = self.bids.get(at) else {
            self.best_objective = objective;
            self.best = Some(self.chosen.clone());
            return;
        };
        if Some(at) != self.skip {
            for (row, pattern) in bid.patterns.iter().enumerate() {
                self.budget = self.budget.saturating_sub(1);
                if let Some(win) = bid.bidder.place(pattern, &mut self.free) {
                    self.chosen[at] = Some(row);
                    self.visit(at + 1, objective + pattern.log_v);
                    self.chosen[at] = None;
                    for part in &win.parts {
                        self.free.give(&part.bundle);
                    }
                }
            }
        }
        self.visit(at + 1, objective + bid.bidder.log_v_empty());
    }
}

fn rebuild(offer: &FreeSet, bids: &[Bid<'_>], rows: &[Option<usize>]) -> Solution {
    let mut free = offer.clone();
    let mut solution = Solution::nothing(bids);
    for (at, (bid, row)) in bids.iter().zip(rows).enumerate() {
        let win: Option<Placed> =
            row.and_then(|row| bid.bidder.place(&bid.patterns[row], &mut free));
        if let Some(win) = win {
            solution.log_v[at] = win.log_v;
            solution.wins[at] = Some(win);
        }
    }
    solution
}
