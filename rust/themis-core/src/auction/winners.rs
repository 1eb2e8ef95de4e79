//! Proportional fairness: disjoint bundles that maximise the sum of log V.
//!
//! 1. Greedy gives a first solution and the target of the dual.
//! 2. The dual finds prices a GPU, a chunk and a crowded part, and with them the certified bound.
//! 3. The knapsack selects a pattern for every bidder at those prices, no GPU too many.
//! 4. The selection is placed ([`super::placing`]).
//! 5. With few bidders, selections a little worse at those prices are tried too ([`super::search`]).
//! 6. Greedy fills what is left, and the best of all solutions stands.
//!
//! Auctions of explicit tables are searched exactly instead ([`super::exact`]).

use super::dual::{self, Dual};
use super::greedy::Greedy;
use super::knapsack::{Selection, Table};
use super::placing::place;
use super::solution::Solution;
use super::{Bid, FEW, exact, exchange, search};
use crate::cluster::{Chunks, FreeSet};

/// Bidders up to which greedy runs first. With more, the prices alone come closer.
const GREEDY_FIRST: usize = 600;

/// What was found, by whichever solver.
pub(super) struct Solved {
    /// The best allocation.
    pub(super) solution: Solution,
    /// The prices that bound every allocation.
    pub(super) dual: Dual,
    /// The table behind it and what it selected, from which payments can be read; `None` when the
    /// auction has to be solved again without each winner.
    pub(super) knapsack: Option<(Table, Selection)>,
}

/// The best allocation found, by a share (1 / `thrift`) of the steps that few bidders may cost.
pub(super) fn solve(offer: &FreeSet, chunks: &Chunks, bids: &[Bid<'_>], thrift: u32) -> Solved {
    let explicit = bids.iter().all(|bid| bid.bidder.is_table());
    if explicit {
        let solution = exact::improve(offer, bids, Greedy::new(offer, bids).fill());
        let dual = dual::minimise(offer, chunks, bids, Some(solution.objective()));
        return Solved { solution, dual, knapsack: None };
    }
    let first = (bids.len() <= GREEDY_FIRST).then(|| Greedy::new(offer, bids).fill());
    let dual = dual::minimise(offer, chunks, bids, first.as_ref().map(Solution::objective));
    let (table, favourites) = Table::new(chunks, bids, &dual.prices);
    let selection = table.select(favourites);
    let (placed, whole) = place(offer, bids, &dual.prices, &selection);
    let placed = placed.fill();
    let mut best = match first {
        Some(first) => first.or_better(placed),
        None => placed,
    };
    if !whole && bids.len() <= search::MOST_BIDDERS {
        best = exchange::improve(offer, bids, &dual.prices, best, thrift);
        best = search::improve(offer, chunks, bids, &dual, best, thrift);
        best = exchange::improve(offer, bids, &dual.prices, best, thrift);
    }
    let from_table = bids.len() > FEW && !bids.iter().any(|bid| bid.bidder.is_table());
    Solved { solution: best, dual, knapsack: from_table.then_some((table, selection)) }
}
