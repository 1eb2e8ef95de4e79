//! Hidden payments: what each winner's presence costs the others (paper, Pseudocode 1).
//!
//! `c_i` = (product over j != i of `V_j` in the allocation) / (the same in the best allocation
//! without i). Both come from one table ([`super::knapsack`]) at the prices of the dual, so that the
//! denominator does not depend on how well a re-solve went: all payments cost one divide and
//! conquer over the core. Auctions in which somebody bids an explicit table are solved again
//! without each winner instead, since a table's bundles do not fit the rows of prices; so are those
//! of the greedy solver, so that both sides of the fraction come from the same one.

use super::winners::Solved;
use super::{Bid, Solver};
use crate::cluster::{Chunks, FreeSet};

/// c of every bidder, in (0, 1]; 1 for who wins nothing, or who takes nothing from anybody.
pub(super) fn hidden_payments(
    solver: Solver,
    offer: &FreeSet,
    chunks: &Chunks,
    bids: &[Bid<'_>],
    solved: &Solved,
) -> Vec<f64> {
    let solution = &solved.solution;
    let content: Vec<bool> = bids
        .iter()
        .zip(&solution.log_v)
        .map(|(bid, now)| bid.patterns.iter().all(|pattern| pattern.log_v <= *now))
        .collect();
    let wanting = content.iter().filter(|content| !**content).count();
    let takes = |bidder: &usize| {
        solution.wins[*bidder].is_some() && wanting > usize::from(!content[*bidder])
    };
    let winners: Vec<usize> = (0..bids.len()).filter(takes).collect();
    let mut payments = vec![1.0; bids.len()];
    if winners.is_empty() {
        return payments;
    }
    let logs: Vec<f64> = if let Some((table, selection)) = &solved.knapsack {
        let value = |winner: &usize| {
            let bid = &bids[*winner];
            let chosen = selection[*winner].map(|pattern| bid.patterns[pattern].log_v);
            (*winner, chosen.unwrap_or(bid.bidder.log_v_empty()))
        };
        table.log_payments(&winners.iter().map(value).collect::<Vec<_>>())
    } else {
        let again = |winner: &usize| {
            let without = solver.solve_without(offer, chunks, bids, *winner);
            solution.objective_of_others(*winner) - without
        };
        winners.iter().map(again).collect()
    };
    for (winner, log_c) in winners.into_iter().zip(logs) {
        payments[winner] = log_c.exp().clamp(f64::MIN_POSITIVE, 1.0);
    }
    payments
}
