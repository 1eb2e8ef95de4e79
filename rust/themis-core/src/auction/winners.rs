//! Proportional fairness: disjoint bundles that maximise the sum of log V.
//!
//! 1. Greedy gives a first solution and the target of the dual.
//! 2. The dual finds prices a GPU and a chunk, and with them the certified bound.
//! 3. The knapsack selects a pattern for every bidder at those prices, no GPU too many.
//! 4. The selection is placed: what is anchored first, then single machines, then racks, larger
//!    bundles first; what does not fit goes to the filler.
//! 5. With few bidders, selections a little worse at those prices are tried too ([`super::search`]).
//! 6. Greedy fills what is left, and the best of all solutions stands.
//!
//! Auctions of explicit tables are searched exactly instead ([`super::exact`]).

use std::cmp::Reverse;

use super::dual::{self, Dual};
use super::greedy::Greedy;
use super::knapsack::{self, Selection};
use super::solution::Solution;
use super::{Bid, exact, search};
use crate::cluster::{Chunks, FreeSet, Locality};

/// Bidders up to which greedy runs first. With more, the prices alone come closer.
const GREEDY_FIRST: usize = 600;

/// The best allocation found, and the prices that bound it.
pub(super) fn solve(offer: &FreeSet, chunks: &Chunks, bids: &[Bid<'_>]) -> (Solution, Dual) {
    let explicit = bids.iter().all(|bid| bid.bidder.is_table());
    if explicit {
        let solution = exact::improve(offer, bids, Greedy::new(offer, bids).fill());
        let dual = dual::minimise(chunks, bids, Some(solution.objective()));
        return (solution, dual);
    }
    let first = (bids.len() <= GREEDY_FIRST).then(|| Greedy::new(offer, bids).fill());
    let dual = dual::minimise(chunks, bids, first.as_ref().map(Solution::objective));
    let (selection, _) = knapsack::select(chunks, bids, &dual.prices);
    let (placed, whole) = place(offer, bids, &selection);
    let mut best = match first {
        Some(first) => better(first, placed),
        None => placed,
    };
    if !whole && bids.len() <= search::MOST_BIDDERS {
        best = search::improve(offer, chunks, bids, &dual, best);
    }
    (best, dual)
}

/// The solution with the larger objective; ties: the first.
pub(super) fn better(one: Solution, other: Solution) -> Solution {
    if other.objective() > one.objective() { other } else { one }
}

/// Places a selection and fills what is left; whether all of it could be placed.
pub(super) fn place(offer: &FreeSet, bids: &[Bid<'_>], selection: &Selection) -> (Solution, bool) {
    let mut order: Vec<(usize, usize)> = selection
        .iter()
        .enumerate()
        .filter_map(|(bidder, pattern)| pattern.map(|pattern| (bidder, pattern)))
        .collect();
    order.sort_by_key(|(bidder, pattern)| {
        let bid = &bids[*bidder];
        let pattern = &bid.patterns[*pattern];
        let spans = pattern.level > Locality::Machine;
        (!bid.bidder.is_anchored(), spans, Reverse(pattern.gpus()), *bidder)
    });
    let mut greedy = Greedy::new(offer, bids);
    let mut whole = true;
    for (bidder, pattern) in order {
        whole &= greedy.try_step(bidder, pattern);
    }
    (greedy.fill(), whole)
}
