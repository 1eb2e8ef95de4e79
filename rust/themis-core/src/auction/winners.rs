//! Proportional fairness: disjoint bundles that maximise the sum of log V.
//!
//! 1. Greedy gives a first solution and the target of the dual.
//! 2. The dual finds prices a GPU, a chunk and a crowded part, and with them the certified bound.
//! 3. The knapsack selects a pattern for every bidder at those prices, no GPU too many.
//! 4. The selection is placed ([`super::placing`]).
//! 5. Greedy fills what is left, and the best of all solutions stands.
//! 6. With few bidders, a search ([`super::few`]) goes on from there, and exchanges
//!    ([`super::exchange`]) where an offer has limits that the search does not know.
//!
//! Auctions of explicit tables have a search of their own instead ([`super::tables`]).

use super::dual::{self, Dual};
use super::few::Few;
use super::greedy::Greedy;
use super::knapsack::Table;
use super::placing::place;
use super::solution::Solution;
use super::tables::{self, Tables};
use super::{Bid, FEW, exchange};
use crate::cluster::{Chunks, FreeSet};

/// Bidders up to which greedy runs first. With more, the prices alone come closer.
const GREEDY_FIRST: usize = 600;
/// Gaps below this are rounding.
const LEAST_GAP: f64 = 1e-9;
/// Bidders up to which an auction with limits that the search does not know is solved again.
const AGAIN: usize = 16;
/// Bidders up to which better allocations are searched for.
const MOST_SEARCHED: usize = 128;

/// What was found, by whichever solver.
pub(super) struct Solved {
    /// The best allocation.
    pub(super) solution: Solution,
    /// The prices that bound every allocation.
    pub(super) dual: Dual,
    /// Where the allocations without each winner come from.
    pub(super) without: Without,
}

/// Where the allocations without each winner come from.
pub(super) enum Without {
    /// The same solver once more.
    Again,
    /// The knapsack's table.
    Table(Table),
    /// A search that goes on from that for the allocation of tables.
    Tables(Box<Tables>),
    /// A search that goes on from that for the allocation, if there was one.
    Search(Option<Box<Few>>),
}

/// The best allocation found, by a share (1 / `thrift`) of the steps that few bidders may cost.
pub(super) fn solve(offer: &FreeSet, chunks: &Chunks, bids: &[Bid<'_>], thrift: u32) -> Solved {
    let explicit = bids.iter().all(|bid| bid.bidder.is_table());
    if explicit {
        let (solution, tables) = tables::solve(offer, bids, &Greedy::new(offer, bids).fill());
        let dual = dual::minimise(offer, chunks, bids, Some(solution.objective()));
        return Solved { solution, dual, without: Without::Tables(tables) };
    }
    let first = (bids.len() <= GREEDY_FIRST).then(|| Greedy::new(offer, bids).fill());
    let dual = dual::minimise(offer, chunks, bids, first.as_ref().map(Solution::objective));
    let (table, favourites) = Table::new(chunks, bids, &dual);
    let selection = table.select(favourites);
    let (placed, whole) = place(offer, bids, &dual.prices, &selection);
    let placed = placed.fill();
    let mut best = match first {
        Some(first) => first.or_better(placed),
        None => placed,
    };
    let mut few = None;
    // What many lose where all of it was placed is rounding, and not worth a search.
    let is_small = Few::is_small(offer, bids);
    let knows_all = Few::knows_all(offer, bids);
    let promising = bids.len() <= if whole { FEW } else { MOST_SEARCHED };
    if promising && is_small && dual.value - best.objective() > LEAST_GAP {
        if !whole && !knows_all {
            best = exchange::improve(offer, bids, &dual.prices, best, thrift);
        }
        let mut search = Few::new(offer, chunks, bids, &dual, &best);
        best = search.improve(offer, chunks, bids, best, thrift);
        if bids.len() > FEW && !knows_all && !search.proven() {
            best = exchange::improve(offer, bids, &dual.prices, best, thrift);
        }
        few = Some(Box::new(search));
    }
    let with_tables = bids.iter().any(|bid| bid.bidder.is_table());
    let without = if bids.len() <= FEW && is_small && knows_all {
        Without::Search(few)
    } else if with_tables || bids.len() <= AGAIN && is_small {
        Without::Again
    } else {
        Without::Table(table)
    };
    Solved { solution: best, dual, without }
}
