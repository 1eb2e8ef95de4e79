//! The best sum of log V without each winner, by search: what hidden payments divide by.
//!
//! A winner's GPUs go back to the others. First a short search at the prices with everybody. Where it
//! does not come to its end, the others are first given what greedy finds for them, prices are found
//! anew without the winner, and a sweep and a search go by these.
//!
//! Where the steps suffice, the sum found depends on nothing that the winner reported. Where they
//! don't, it lies between the best found and a bound; the bound less what it exceeds the allocation
//! with everybody by is a good guess, since both come from the same model, and the sum is taken to
//! lie [`TRUST`] of the way there from the best found.
//!
//! Cost: [`STEPS`] at most for all together, counted, never timed, and for every winner that needs it
//! [`PRICING`] and a sweep.

use super::Bid;
use super::few::Few;
use super::greedy::Greedy;
use super::search::{Answer, Task, search};
use super::solution::Solution;
use super::sweep::sweep;
use crate::cluster::FreeSet;

/// Steps for all winners together, fewer with more than [`FULL_EFFORT`] bidders, and of the first
/// search of one.
const STEPS: u32 = 100_000;
const FULL_EFFORT: u32 = 32;
const FIRST_STEPS: u32 = 1_500;
/// The first round of a search allows for the gap with everybody, or for this much.
const FIRST_LEAST: f64 = 0.01;
/// Steps of prices without a winner, and steps of a search that take as long.
const PRICING: u32 = 20;
const PRICING_STEPS: u32 = 500;
/// Beginnings of a sweep.
const WIDTH: usize = 4;
/// How far a guess is trusted.
const TRUST: f64 = 0.5;

/// What a payment is found from: the offer, the bids, and the allocation with everybody.
pub(super) type Found<'a> = (&'a FreeSet, &'a [Bid<'a>], &'a Solution);

impl Few {
    /// The best sum of log V without each of these winners in turn, given what the others have with
    /// it; what one search leaves of its share of the steps serves the next.
    pub(super) fn without_each(&mut self, found: Found<'_>, winners: &[(usize, f64)]) -> Vec<f64> {
        let mut left = self.effort(STEPS, FULL_EFFORT);
        let without = |(at, winner): (usize, &(usize, f64))| {
            let share = left / (winners.len() - at) as u32;
            let (objective, used) = self.without(found, *winner, share);
            left -= used.min(left);
            objective
        };
        winners.iter().enumerate().map(without).collect()
    }

    /// The same of one winner, and the steps used.
    fn without(
        &mut self,
        found: Found<'_>,
        (winner, others): (usize, f64),
        share: u32,
    ) -> (f64, u32) {
        let steps = share.min(FIRST_STEPS);
        let short = self.search(Some(winner), others, self.gap.max(FIRST_LEAST), steps);
        if short.left > 0 {
            return (short.objective, steps - short.left);
        }
        let known = short.objective.max(refilled(found, winner));
        let steps = share.saturating_sub(FIRST_STEPS + PRICING_STEPS);
        let (objective, left) = self.thorough(found.2, (winner, known), steps);
        (objective, share - left)
    }

    /// The same at prices of its own, from what is known, and the steps that are left.
    fn thorough(
        &mut self,
        solution: &Solution,
        (winner, known): (usize, f64),
        steps: u32,
    ) -> (f64, u32) {
        let first = self.gap.max(FIRST_LEAST);
        let Self { menus, gpus, packings, .. } = self;
        let all = (&self.prices[..], self.value);
        let (prices, value, ways) = menus.priced_without(winner, all, &self.ways, known, PRICING);
        let (ways, price, without, gpus) = (&ways[..], prices[0], Some(winner), *gpus);
        let task = Task { menus, ways, price, value, without, known, first, gpus, steps };
        let (swept, bound) = sweep(&task, packings, WIDTH);
        let task = Task { known: swept.objective, steps: swept.left, ..task };
        let Answer { objective, left, .. } = search(&task, packings);
        let guess = bound - (self.bound - solution.objective());
        let more = if left > 0 { 0.0 } else { TRUST * (guess - objective).max(0.0) };
        (objective + more, left)
    }
}

/// What the others have when greedy gives them what a winner had.
fn refilled((offer, bids, solution): Found<'_>, winner: usize) -> f64 {
    let mut greedy = Greedy::resume(offer, bids, solution.clone());
    greedy.release(winner);
    greedy.fill_without(Some(winner)).objective_of_others(winner)
}

#[cfg(test)]
mod tests {
    use super::super::Bidder;
    use super::super::few::tests::{draw, solved};
    use super::*;
    use crate::cluster::{Chunks, TypeSet};

    #[test]
    fn prices_of_its_own_lead_to_the_same_sum_and_a_guess_stays_below_the_bound() {
        let mut guessed = 0;
        for seed in 0..60 {
            let (offer, bidders) = draw(seed);
            let chunks = Chunks::of(&offer, &[1, 2, 3, 4], &[TypeSet::ALL]);
            let bid = |bidder| Bid::new(bidder, Bidder::patterns(bidder, &offer, &chunks));
            let bids: Vec<Bid<'_>> = bidders.iter().map(bid).collect();
            let (best, mut few) = solved(&offer, &chunks, &bids);
            for winner in 0..bids.len() {
                let others = best.objective_of_others(winner);
                let exact = few.search(Some(winner), others, FIRST_LEAST, 1_000_000).objective;
                let (sum, left) = few.thorough(&best, (winner, others), 1_000_000);
                assert!(left > 0 && (sum - exact).abs() < 1e-9, "seed {seed}: without {winner}");
                let refilled = refilled((&offer, &bids, &best), winner);
                assert!(refilled >= others - 1e-12, "seed {seed}: without {winner}");
                let (guess, left) = few.thorough(&best, (winner, others), 0);
                let bound = few.value - few.ways[winner].0;
                let between = guess >= others - 1e-12 && guess <= bound + 1e-9;
                assert!(between, "seed {seed}: without {winner}");
                guessed += u32::from(left == 0);
            }
        }
        assert!(guessed > 50, "{guessed}");
    }
}
