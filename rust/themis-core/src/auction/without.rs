//! The best sum of log V without each winner, by search: what hidden payments divide by.
//!
//! A winner's GPUs go back to the others. First a short search at the prices with everybody. Where it
//! does not come to its end, the others are first given what greedy finds for them, and prices are
//! found anew without the winner; sweeps go by these, for the winners first of whose payment most is
//! known, so that what these leave of the steps serves the others.
//!
//! Where the steps suffice, the sum found depends on nothing that the winner reported. Where they
//! don't, it lies between the best found and a bound. The bound less a part ([`SHARE`]) of what it
//! exceeds the allocation with everybody by is a good guess, since both come from the same model, and
//! the sum is taken to lie [`TRUST`] of the way there from the best found.
//!
//! Cost: [`STEPS`] at most for all together, counted, never timed, and for every winner that needs it
//! [`PRICING`] and the narrowest of sweeps.

use super::Bid;
use super::few::Few;
use super::greedy::Greedy;
use super::menus::Ways;
use super::search::{Answer, Task};
use super::solution::Solution;
use super::sweep::sweep;
use crate::cluster::FreeSet;

/// Steps for all winners together, fewer with more than [`FULL_EFFORT`] bidders, and of the first
/// search of one; those that follow so many in vain have none.
const STEPS: u32 = 50_000;
const FULL_EFFORT: u32 = 30;
const FIRST_STEPS: u32 = 1_500;
const IN_VAIN: u32 = 3;
/// The first round of a search allows for the gap with everybody, or for this much.
const FIRST_LEAST: f64 = 0.01;
/// Steps of prices without a winner, and steps of a search that take as long.
const PRICING: u32 = 10;
const PRICING_STEPS: u32 = 300;
/// The part of the gap with everybody that a guess allows for, and how far it is trusted.
const SHARE: f64 = 0.75;
const TRUST: f64 = 0.5;

/// What a payment is found from: the offer, the bids, and the allocation with everybody.
pub(super) type Found<'a> = (&'a FreeSet, &'a [Bid<'a>], &'a Solution);

/// What is known of the others of a winner, at prices of their own.
struct Priced {
    winner: usize,
    /// The best sum of log V known.
    known: f64,
    /// The price of a GPU, and D.
    price: f64,
    value: f64,
    ways: Vec<Ways>,
}

impl Few {
    /// The best sum of log V without each of these winners, given what the others have with it.
    pub(super) fn without_each(&mut self, found: Found<'_>, winners: &[(usize, f64)]) -> Vec<f64> {
        let mut left = self.effort(STEPS, FULL_EFFORT);
        let mut sums = vec![0.0; winners.len()];
        let (mut open, mut in_vain) = (Vec::new(), 0);
        for (at, (winner, others)) in winners.iter().enumerate() {
            let steps = if in_vain < IN_VAIN { FIRST_STEPS.min(left) } else { 0 };
            let short = self.search(Some(*winner), *others, self.gap.max(FIRST_LEAST), steps);
            left -= steps - short.left;
            if short.left > 0 {
                (sums[at], in_vain) = (short.objective, 0);
                continue;
            }
            in_vain += 1;
            let known = short.objective.max(refilled(found, *winner));
            open.push((at, self.priced(*winner, known)));
            left = left.saturating_sub(PRICING_STEPS);
        }
        let unknown = |(at, priced): &(usize, Priced)| {
            let c = |sum: f64| (winners[*at].1 - sum).exp();
            c(priced.known) - c(priced.value)
        };
        open.sort_by(|a, b| unknown(a).total_cmp(&unknown(b)));
        let gap = (self.bound - found.2.objective()).max(0.0);
        let all = open.len();
        for (swept, (at, priced)) in open.iter().enumerate() {
            let share = left / (all - swept) as u32;
            let (sum, unused) = self.thorough(priced, gap, share);
            sums[*at] = sum;
            left -= share - unused;
        }
        sums
    }

    /// Prices of their own for the others of a winner.
    fn priced(&self, winner: usize, known: f64) -> Priced {
        let all = (&self.prices[..], self.value);
        let (prices, value, ways) =
            self.menus.priced_without(winner, all, &self.ways, known, PRICING);
        Priced { winner, known, price: prices[0], value, ways }
    }

    /// The best sum at these prices, and the steps that are left. Where they don't suffice, what it
    /// should be, given by how much the bound with everybody exceeds what was found.
    fn thorough(&mut self, priced: &Priced, gap: f64, steps: u32) -> (f64, u32) {
        let first = self.gap.max(FIRST_LEAST);
        let Self { menus, gpus, packings, urgent, .. } = self;
        let Priced { winner, known, price, value, ref ways } = *priced;
        let (without, gpus) = (Some(winner), *gpus);
        let task = Task { menus, ways, price, value, without, known, first, gpus, steps };
        let (Answer { objective, left, .. }, bound) = sweep(&task, packings, urgent);
        if bound <= objective {
            return (objective, left);
        }
        let guess = bound - SHARE * gap;
        (objective + TRUST * (guess - objective).max(0.0), left)
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
    use super::super::few::tests::{draw, solved};
    use super::*;
    use crate::cluster::{Chunks, TypeSet};

    #[test]
    fn prices_of_its_own_lead_to_the_same_sum_and_a_guess_stays_below_the_bound() {
        let mut guessed = 0;
        for seed in 0..60 {
            let (offer, bidders) = draw(seed);
            let chunks = Chunks::of(&offer, &[1, 2, 3, 4], &[TypeSet::ALL]);
            let bid = |bidder| Bid::none(bidder, offer.topology()).on(&offer, &chunks, false);
            let bids: Vec<Bid<'_>> = bidders.iter().map(bid).collect();
            let (best, mut few) = solved(&offer, &chunks, &bids);
            for winner in 0..bids.len() {
                let others = best.objective_of_others(winner);
                let exact = few.search(Some(winner), others, FIRST_LEAST, 1_000_000).objective;
                let priced = few.priced(winner, others);
                let gap = few.bound - best.objective();
                let (sum, left) = few.thorough(&priced, gap, 1_000_000);
                assert!(left > 0 && (sum - exact).abs() < 1e-9, "seed {seed}: without {winner}");
                let refilled = refilled((&offer, &bids, &best), winner);
                assert!(refilled >= others - 1e-12, "seed {seed}: without {winner}");
                let (guess, left) = few.thorough(&priced, gap, 0);
                let between = guess >= others - 1e-12 && guess <= priced.value + 1e-9;
                assert!(between, "seed {seed}: without {winner}");
                guessed += u32::from(left == 0);
            }
        }
        assert!(guessed > 50, "{guessed}");
    }
}
