//! Hidden payments: what each winner's presence costs the others (paper, Pseudocode 1).
//!
//! `c_i` = (product over j != i of `V_j` in the allocation) / (the same in the best allocation
//! without i), by solving again without each winner. Cost: one solve a winner whose absence can matter.

use super::Bid;
use super::winners::{Solution, solve};
use crate::cluster::FreeSet;

/// c of every bidder, in (0, 1]; 1 for who wins nothing, or who takes nothing from anybody.
pub(super) fn hidden_payments(offer: &FreeSet, bids: &[Bid<'_>], solution: &Solution) -> Vec<f64> {
    let content: Vec<bool> = bids
        .iter()
        .zip(&solution.log_v)
        .map(|(bid, now)| bid.patterns.iter().all(|pattern| pattern.log_v <= *now))
        .collect();
    let wanting = content.iter().filter(|content| !**content).count();
    let others_want = |bidder: usize| wanting > usize::from(!content[bidder]);
    (0..bids.len())
        .map(|bidder| {
            if solution.wins[bidder].is_none() || !others_want(bidder) {
                return 1.0;
            }
            let with = solution.objective_without(bidder);
            let without = solve(offer, bids, Some(bidder)).objective_without(bidder);
            (with - without).exp().clamp(f64::MIN_POSITIVE, 1.0)
        })
        .collect()
}
