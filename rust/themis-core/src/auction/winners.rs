//! Proportional fairness: disjoint bundles that maximise the sum of log V.
//!
//! 1. Greedy gives a first solution and the target of the dual.
//! 2. The dual finds prices a GPU, a chunk and a crowded part, and with them the certified bound.
//! 3. The knapsack selects a pattern for every bidder at those prices, no GPU too many.
//! 4. The selection is placed: what is anchored first, then what is bound to few GPU types, single machines, then racks, then what
//!    may lie anywhere, larger bundles first; what does not fit is exchanged for the next best.
//! 5. With few bidders, selections a little worse at those prices are tried too ([`super::search`]).
//! 6. Greedy fills what is left, and the best of all solutions stands.
//!
//! Auctions of explicit tables are searched exactly instead ([`super::exact`]).

use std::cmp::Reverse;

use super::dual;
use super::greedy::Greedy;
use super::knapsack::{Selection, Table};
use super::prices::Prices;
use super::solution::Solution;
use super::solver::Solved;
use super::{Bid, Choice, FEW, exact, exchange, search};
use crate::cluster::{Chunks, FreeSet, Locality};

/// Bidders up to which greedy runs first. With more, the prices alone come closer.
const GREEDY_FIRST: usize = 600;

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
        Some(first) => better(first, placed),
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

/// The solution with the larger objective; ties: the first.
pub(super) fn better(one: Solution, other: Solution) -> Solution {
    if other.objective() > one.objective() { other } else { one }
}

/// Places a selection; whether all of it could be placed.
///
/// What can't be placed is exchanged for the bidder's next best choice that can, and that takes no
/// more GPUs than the selection leaves.
pub(super) fn place<'a>(
    offer: &FreeSet,
    bids: &'a [Bid<'a>],
    prices: &Prices,
    selection: &Selection,
) -> (Greedy<'a>, bool) {
    let mut order: Vec<(usize, usize)> = selection
        .iter()
        .enumerate()
        .filter_map(|(bidder, pattern)| pattern.map(|pattern| (bidder, pattern)))
        .collect();
    let gpus = |(bidder, pattern): &(usize, usize)| bids[*bidder].patterns[*pattern].gpus();
    let mut spare = offer.total().saturating_sub(order.iter().map(gpus).sum());
    order.sort_by_cached_key(|(bidder, pattern)| {
        let bid = &bids[*bidder];
        let pattern = &bid.patterns[*pattern];
        let anchored = bid.bidder.anchor().is_some() || bid.bidder.is_table();
        let level = pattern.reach.level.max(Locality::Machine);
        (
            !anchored,
            bid.bidder.breadth(pattern),
            level,
            Reverse(bid.bidder.largest_part(pattern)),
            Reverse(pattern.gpus()),
            *bidder,
        )
    });
    let mut greedy = Greedy::new(offer, bids);
    let mut whole = true;
    for (bidder, pattern) in order {
        if greedy.try_step(bidder, pattern) {
            continue;
        }
        whole = false;
        spare += bids[bidder].patterns[pattern].gpus();
        for other in next_best(bids, bidder, prices, spare) {
            if other != pattern && greedy.try_step(bidder, other) {
                spare -= bids[bidder].patterns[other].gpus();
                break;
            }
        }
    }
    (greedy, whole)
}

/// The patterns of up to so many GPUs that are worth more than nothing at these prices, best first.
fn next_best(
    bids: &[Bid<'_>],
    bidder: usize,
    prices: &Prices,
    gpus: u32,
) -> impl Iterator<Item = usize> {
    let mut choices: Vec<Choice> = bids[bidder].choices(bidder, prices).collect();
    let nothing = choices[0].surplus;
    choices.retain(|choice| choice.gpus <= gpus && choice.surplus > nothing);
    choices.sort_by(|a, b| b.surplus.total_cmp(&a.surplus).then(a.pattern.cmp(&b.pattern)));
    choices.into_iter().filter_map(|choice| choice.pattern)
}
