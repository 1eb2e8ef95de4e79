//! Hidden payments: what each winner's presence costs the others (paper, Pseudocode 1).
//!
//! `c_i` = (product over j != i of `V_j` in the allocation) / (the same in the best allocation
//! without i). With few bidders a search finds each of the latter ([`super::few`]). With more, both
//! come from one table ([`super::knapsack`]) at the prices of the dual, so that the denominator does
//! not depend on how well a re-solve went: all payments cost one divide and conquer over the core.
//! There c is the product of all V in what the table selects, over the winner's V in the allocation
//! and that denominator: what a search gave a winner beyond the selection, others lack.
//! Auctions of explicit tables are solved again without each winner, and so are small ones of few
//! bidders with limits that the search does not know ([`Few::knows_all`]), and those of the greedy
//! solver, so that both sides of the fraction come from the same one.

use super::dual::Dual;
use super::few::Few;
use super::solution::Solution;
use super::winners::Without;
use super::{Bid, Solver};
use crate::cluster::{Chunks, FreeSet};

/// c of every bidder, in (0, 1]; 1 for who wins nothing, or who takes nothing from anybody.
pub(super) fn hidden_payments(
    solver: Solver,
    offer: &FreeSet,
    chunks: &Chunks,
    bids: &[Bid<'_>],
    (solution, dual): (&Solution, &Dual),
    without: Without,
) -> Vec<f64> {
    let content: Vec<bool> =
        bids.iter().zip(&solution.log_v).map(|(bid, now)| bid.most <= *now).collect();
    let wanting = content.iter().filter(|content| !**content).count();
    let takes = |bidder: &usize| {
        solution.wins[*bidder].is_some() && wanting > usize::from(!content[*bidder])
    };
    let winners: Vec<usize> = (0..bids.len()).filter(takes).collect();
    let mut payments = vec![1.0; bids.len()];
    if winners.is_empty() {
        return payments;
    }
    let others = |winner: &usize| solution.objective_of_others(*winner);
    let logs: Vec<f64> = match without {
        Without::Table(table) => {
            let value = |winner: &usize| (*winner, solution.log_v[*winner]);
            table.log_payments(&winners.iter().map(value).collect::<Vec<_>>())
        }
        Without::Search(few) => {
            let mut few =
                few.unwrap_or_else(|| Few::new(offer, chunks, bids, dual, solution).into());
            let with: Vec<(usize, f64)> = winners.iter().map(|at| (*at, others(at))).collect();
            let without = few.without_each((offer, bids, solution), &with);
            with.iter().zip(without).map(|((_, with), without)| with - without).collect()
        }
        Without::Tables(mut tables) => {
            let without = tables.without_each(&winners);
            winners.iter().zip(without).map(|(at, without)| others(at) - without).collect()
        }
        Without::Again => {
            let again = |winner: &usize| {
                others(winner) - solver.solve_without(offer, chunks, bids, *winner)
            };
            winners.iter().map(again).collect()
        }
    };
    for (winner, log_c) in winners.into_iter().zip(logs) {
        payments[winner] = log_c.exp().clamp(f64::MIN_POSITIVE, 1.0);
    }
    payments
}
