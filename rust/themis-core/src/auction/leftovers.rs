//! Work conservation: what nobody won, and what payments freed, goes to who can use it.
//!
//! In job-sized claims: first apps outside the auction, then bidders by need, last of all those
//! whose payment freed GPUs, or a payment would cost nothing. Cost: O(1) a claim granted and one
//! failed claim an app: free GPUs only shrink, so that a claim which fails once is not tried again.

use super::Draws;
use super::outcome::{Entry, Outcome};
use crate::cluster::FreeSet;

/// Who among the apps outside the auction is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Leftover {
    /// One claim at a time, to an app drawn at random (the paper's words).
    #[default]
    Random,
    /// Worst first, each with all that it can use.
    WorstFirst,
}

/// Gives out what is free; `outcome.order` is worst first, its first `visible` were bidders.
pub(super) fn hand_out(
    outcome: &mut Outcome,
    free: &mut FreeSet,
    visible: usize,
    rule: Leftover,
    draws: &mut dyn Draws,
) {
    let (bidders, outside) = outcome.order.split_at(visible);
    let (paid, unpaid): (Vec<usize>, Vec<usize>) =
        bidders.iter().partition(|at| outcome.entries[**at].was_cut());
    match rule {
        Leftover::WorstFirst => serve(&mut outcome.entries, outside, free),
        Leftover::Random => {
            let mut pool = outside.to_vec();
            while free.total() > 0 && !pool.is_empty() {
                let drawn = ((draws.leftover() * pool.len() as f64) as usize).min(pool.len() - 1);
                if !claim(&mut outcome.entries[pool[drawn]], free) {
                    pool.swap_remove(drawn);
                }
            }
        }
    }
    serve(&mut outcome.entries, &unpaid, free);
    serve(&mut outcome.entries, &paid, free);
}

fn serve(entries: &mut [Entry], order: &[usize], free: &mut FreeSet) {
    for at in order {
        while claim(&mut entries[*at], free) {}
    }
}

/// One claim; false when nothing that is free helps the app.
fn claim(entry: &mut Entry, free: &mut FreeSet) -> bool {
    let Some(part) = entry.bidder.claim_one(free) else { return false };
    free.take(&part.bundle);
    entry.bidder.hold(&part);
    entry.leftover.push(part);
    true
}
