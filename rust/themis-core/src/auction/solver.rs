//! Which solver a round uses, for the allocation and for the payments alike: `c_i` compares two
//! allocations, and means something only when both were found in the same way.

use super::greedy::Greedy;
use super::winners::{self, Solved, Without};
use super::{Bid, dual};
use crate::cluster::{Chunks, FreeSet};

/// An allocation without a winner may cost this share (1 / `THRIFT`) of one with all: there are as
/// many of them as winners.
const THRIFT: u32 = 8;

/// How the proportionally fair allocation is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Solver {
    /// Prices, a knapsack over the bidders that hesitate, and a search with few bidders
    /// ([`super::winners`]); tables alone are searched exactly.
    #[default]
    Prices,
    /// Greedy by gain a GPU ([`super::greedy`]), solved again without each winner: the baseline.
    Greedy,
}

impl Solver {
    /// The best allocation found.
    pub(super) fn solve(self, offer: &FreeSet, chunks: &Chunks, bids: &[Bid<'_>]) -> Solved {
        match self {
            Self::Prices => winners::solve(offer, chunks, bids, 1),
            Self::Greedy => {
                let solution = Greedy::new(offer, bids).fill();
                let dual = dual::minimise(offer, chunks, bids, Some(solution.objective()));
                Solved { solution, dual, without: Without::Again }
            }
        }
    }

    /// The objective of the allocation without one bidder, from scratch.
    pub(super) fn solve_without(
        self,
        offer: &FreeSet,
        chunks: &Chunks,
        bids: &[Bid<'_>],
        one: usize,
    ) -> f64 {
        let others = bids.iter().enumerate().filter(|(at, _)| *at != one);
        let others: Vec<Bid<'_>> = others.map(|(_, bid)| bid.clone()).collect();
        let solution = match self {
            Self::Prices => winners::solve(offer, chunks, &others, THRIFT).solution,
            Self::Greedy => Greedy::new(offer, &others).fill(),
        };
        solution.objective()
    }
}
