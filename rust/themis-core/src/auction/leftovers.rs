//! Work conservation: what nobody won, and what payments freed, goes to who can use it.
//!
//! In job-sized claims: first apps outside the auction, then bidders by need, last of all those
//! whose payment freed GPUs, or a payment would cost nothing. Cost: O(1) a claim granted and one
//! failed claim an app: free GPUs only shrink, so that a claim which fails once is not tried again.

use super::outcome::{Entry, Outcome};
use super::{Bidder, Draws};
use crate::app::Part;
use crate::cluster::FreeSet;

/// Who among the apps outside the auction is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Leftover {
    /// One claim at a time, to an app drawn at random (the paper's words).
    Random,
    /// One job of each app whose leases just ended goes on with its GPUs, where they are left; then
    /// as [`Leftover::Random`]. No app loses all that it has to a draw.
    #[default]
    HoldersFirst,
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
    let entries = &mut outcome.entries;
    match rule {
        Leftover::WorstFirst => serve(entries, outside, free, Bidder::claim_one),
        Leftover::Random => serve_drawn(entries, outside, free, draws),
        Leftover::HoldersFirst => {
            for at in outside {
                take(&mut entries[*at], free, Bidder::resume_one);
            }
            serve_drawn(entries, outside, free, draws);
        }
    }
    serve(entries, &unpaid, free, Bidder::claim_one);
    serve(entries, &paid, free, Bidder::claim_one);
}

/// What a bidder takes of free GPUs next.
type Next = fn(&Bidder, &FreeSet) -> Option<Part>;

/// One app after the other.
fn serve(entries: &mut [Entry], order: &[usize], free: &mut FreeSet, next: Next) {
    for at in order {
        while take(&mut entries[*at], free, next) {}
    }
}

/// One claim at a time, to an app drawn at random.
fn serve_drawn(entries: &mut [Entry], apps: &[usize], free: &mut FreeSet, draws: &mut dyn Draws) {
    let mut pool = apps.to_vec();
    while free.total() > 0 && !pool.is_empty() {
        let drawn = ((draws.leftover() * pool.len() as f64) as usize).min(pool.len() - 1);
        if !take(&mut entries[pool[drawn]], free, Bidder::claim_one) {
            pool.swap_remove(drawn);
        }
    }
}

/// One claim; false when nothing that is free helps the app.
fn take(entry: &mut Entry, free: &mut FreeSet, next: Next) -> bool {
    let Some(part) = next(&entry.bidder, free) else { return false };
    free.take(&part.bundle);
    entry.bidder.hold(&part);
    entry.leftover.push(part);
    true
}
