//! The best sum of log V without each winner, by search: what hidden payments divide by.
//!
//! A winner's GPUs go back to the others. First a short search at the prices with everybody. Where it
//! does not come to its end and c isn't known well enough ([`KNOWN`]), a better selection is sought near
//! the best that is known without it: the allocation, or one found without another winner
//! ([`super::nearby`]). Where steps are left, prices are found anew without the winner, and sweeps go by
//! these, for the winners first of whose payment most is known, so that what these leave of the steps
//! serves the others.
//!
//! Where the steps suffice, the sum found depends on nothing that the winner reported. Where they
//! don't, it lies between the best found and a bound. The bound less what the one with everybody
//! exceeds the allocation by is a good guess, since both come from the same model, and the sum is taken
//! to lie [`TRUST`] of the way there from the best found.
//!
//! Cost: [`STEPS`] at most for all together, counted, never timed, and for every winner that is swept
//! for the narrowest of sweeps.

use super::Bid;
use super::few::{A_STEP, Few};
use super::menus::Ways;
use super::nearby::{self, First};
use super::packed::Packed;
use super::search::{Answer, Task};
use super::solution::Solution;
use super::sweep::sweep;
use crate::cluster::FreeSet;

/// Steps for all winners together, of searches nearby, fewer with more than [`FULL_EFFORT`] bidders;
/// of which [`A_STEP`] take as long as one of another search or of a sweep.
const STEPS: u32 = 100_000;
const FULL_EFFORT: u32 = 30;
/// Steps of the first searches of all bidders together, or of each so many a bidder if that is more: few
/// bidders are searched to the end. Those that follow so many in vain have none.
const FIRST_STEPS: u32 = 5_000;
const FIRST_STEPS_A_BIDDER: u32 = 50;
const IN_VAIN: u32 = 3;
/// The first round of a search allows for the gap with everybody, or for this much.
const FIRST_LEAST: f64 = 0.01;
/// Where c is known within so much, nothing more is sought: a guess, [`TRUST`] of the way, is seldom more
/// than half of it off. A search nearby that began ends where it is known within so little.
const KNOWN: f64 = 0.1;
const ENOUGH: f64 = 0.08;
/// Steps of the search nearby of one.
const NEARBY_STEPS: u32 = 5_000;
/// Steps of prices without a winner, steps of a sweep that take as long, and the fewest and most of a
/// sweep.
const PRICING: u32 = 10;
const PRICING_STEPS: u32 = 300;
const LEAST_STEPS: u32 = 2_000;
const MOST_STEPS: u32 = 6_000;
/// How far a guess is trusted.
const TRUST: f64 = 0.5;

/// What a payment is found from: the offer, the bids, and the allocation with everybody.
pub(super) type Found<'a> = (&'a FreeSet, &'a [Bid<'a>], &'a Solution);

/// A winner without which the best is not known.
struct Open {
    /// Its place among the winners.
    at: usize,
    winner: usize,
    /// The sum of log V of the others in the allocation, and the best known without it.
    others: f64,
    known: f64,
    /// What the best is at most.
    bound: f64,
}

/// The others of a winner at prices of their own.
struct Priced {
    /// The price of a GPU, and D.
    price: f64,
    value: f64,
    ways: Vec<Ways>,
}

impl Open {
    /// How much c may be less, by what is known.
    fn unknown(&self) -> f64 {
        (self.others - self.known).exp() - (self.others - self.bound).exp()
    }

    /// The sum of log V by which c is known within [`ENOUGH`].
    fn enough(&self) -> f64 {
        self.others - (ENOUGH + (self.others - self.bound).exp()).ln()
    }
}

impl Few {
    /// The best sum of log V without each of these winners, given what the others have with it.
    pub(super) fn without_each(&mut self, found: Found<'_>, winners: &[(usize, f64)]) -> Vec<f64> {
        let mut left = self.effort(STEPS, FULL_EFFORT);
        let mut sums = vec![0.0; winners.len()];
        let (mut open, mut in_vain) = (Vec::new(), 0);
        let bidders = self.menus.of.len() as u32;
        let first = (FIRST_STEPS / bidders).max(FIRST_STEPS_A_BIDDER * bidders);
        for (at, (winner, others)) in winners.iter().copied().enumerate() {
            let steps = if in_vain < IN_VAIN { first.min(left / A_STEP) } else { 0 };
            let short = self.search(Some(winner), others, self.gap.max(FIRST_LEAST), steps);
            left -= A_STEP * (steps - short.left);
            if short.left > 0 {
                (sums[at], in_vain) = (short.objective, 0);
                continue;
            }
            in_vain += 1;
            let (known, bound) = (short.objective, self.value - self.ways[winner].0);
            open.push(Open { at, winner, others, known, bound });
        }
        if open.is_empty() {
            return sums;
        }
        left = self.nearby_each(found, &mut open, left);
        let objective = found.2.objective();
        let (known, open): (Vec<Open>, Vec<Open>) =
            open.into_iter().partition(|open| open.unknown() < KNOWN);
        for Open { at, known, bound, .. } in known {
            sums[at] = guess(known, bound, self.value - objective, TRUST);
        }
        if suffices(left, open.len()) {
            self.sweep_each(open, objective, left / A_STEP, &mut sums);
        } else {
            for Open { at, known, bound, .. } in open {
                sums[at] = guess(known, bound, self.value - objective, TRUST);
            }
        }
        sums
    }

    /// Seeks better selections without each of these winners near the best that is known without it; the
    /// steps that are left.
    fn nearby_each(&mut self, found: Found<'_>, open: &mut [Open], mut left: u32) -> u32 {
        let (offer, bids, solution) = found;
        let mut known = vec![Packed::of(&self.menus, offer.topology(), bids, solution)];
        let all = open.len();
        for (at, open) in open.iter_mut().enumerate() {
            if open.unknown() < KNOWN {
                continue;
            }
            let winner = open.winner;
            let values =
                known.iter().map(|packed| (packed.log_v(&self.menus, Some(winner)), packed));
            let start = values.reduce(|a, b| if b.0 > a.0 { b } else { a });
            let Some((_, start)) = start else { continue };
            let start = start.clone();
            let steps = NEARBY_STEPS.min(left / (all - at) as u32);
            let (task, ..) = self.task(Some(winner), open.known, 0.0, steps);
            let task = Task { enough: open.enough(), ..task };
            let (packed, log_v, unused) = nearby::improve(&task, start, First::Gains);
            left -= steps - unused;
            open.known = open.known.max(log_v);
            known.push(packed);
        }
        left
    }

    /// Sweeps for the best sums, at prices of their own.
    fn sweep_each(&mut self, open: Vec<Open>, objective: f64, steps: u32, sums: &mut [f64]) {
        let mut left = steps - PRICING_STEPS * open.len() as u32;
        let gap = (self.bound - objective).max(0.0);
        let priced = |mut open: Open| {
            let priced = self.price(&mut open);
            (open, priced)
        };
        let mut open: Vec<(Open, Priced)> = open.into_iter().map(priced).collect();
        open.sort_by(|a, b| a.0.unknown().total_cmp(&b.0.unknown()));
        let all = open.len();
        for (swept, (open, priced)) in open.iter().enumerate() {
            if open.unknown() < KNOWN {
                sums[open.at] = guess(open.known, open.bound, gap, TRUST);
                continue;
            }
            let share = (left / (all - swept) as u32).min(MOST_STEPS);
            let (sum, unused) = self.thorough(open, priced, gap, share);
            sums[open.at] = sum;
            left -= share - unused;
        }
    }

    /// Prices of their own for the others of a winner, and so a bound.
    fn price(&self, open: &mut Open) -> Priced {
        let Open { winner, known, .. } = *open;
        let all = (&self.prices[..], self.value);
        let (prices, value, ways) =
            self.menus.priced_without(winner, all, &self.ways, known, PRICING);
        open.bound = open.bound.min(value);
        Priced { price: prices[0], value, ways }
    }

    /// The best sum at these prices, and the steps that are left. Where they don't suffice, what it
    /// should be, given by how much the bound with everybody exceeds what was found.
    fn thorough(&mut self, open: &Open, priced: &Priced, gap: f64, steps: u32) -> (f64, u32) {
        let first = self.gap.max(FIRST_LEAST);
        let Self { menus, gpus, packings, urgent, .. } = self;
        let Priced { price, value, ref ways } = *priced;
        let (without, known, gpus) = (Some(open.winner), open.known, *gpus);
        let (fixed, enough) = (None, f64::INFINITY);
        let task =
            Task { menus, ways, price, value, without, fixed, known, enough, first, gpus, steps };
        let (Answer { objective, left, .. }, bound) = sweep(&task, packings, urgent);
        if bound <= objective {
            return (objective, left);
        }
        (guess(objective, bound, gap, TRUST), left)
    }
}

/// Whether steps suffice for sweeps without so many winners.
fn suffices(steps: u32, winners: usize) -> bool {
    steps / A_STEP >= (PRICING_STEPS + LEAST_STEPS) * winners as u32
}

/// What the best sum should be, of which this much was found, by how much a bound exceeds what was
/// found with everybody: it is trusted to lie so far from what was found to the bound less that.
pub(super) fn guess(found: f64, bound: f64, gap: f64, trust: f64) -> f64 {
    found + trust * (bound - gap - found).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::few::tests::{draw, solved};
    use super::*;
    use crate::cluster::{Chunks, TypeSet};

    #[test]
    fn by_what_is_enough_c_is_known_so_well() {
        for (others, bound) in [(-3.0, -2.5), (-20.0, -18.0), (-1.0, -0.99)] {
            let mut open = Open { at: 0, winner: 0, others, known: others, bound };
            open.known = open.enough();
            assert!((open.unknown() - ENOUGH).abs() < 1e-12);
        }
    }

    #[test]
    fn prices_of_its_own_lead_to_the_same_sum_and_a_guess_stays_below_the_bound() {
        let (mut guessed, mut nearby) = (0, 0);
        for seed in 0..60 {
            let (offer, bidders) = draw(seed);
            let chunks = Chunks::of(&offer, &[1, 2, 3, 4], &[TypeSet::ALL]);
            let bid = |bidder| Bid::none(bidder, offer.topology()).on(&offer, &chunks, false);
            let bids: Vec<Bid<'_>> = bidders.iter().map(bid).collect();
            let (best, mut few) = solved(&offer, &chunks, &bids);
            for winner in 0..bids.len() {
                let others = best.objective_of_others(winner);
                let exact = few.search(Some(winner), others, FIRST_LEAST, 1_000_000).objective;
                let (known, bound) = (others, few.value - few.ways[winner].0);
                let mut open = [Open { at: 0, winner, others, known, bound }];
                let left = few.nearby_each((&offer, &bids, &best), &mut open, STEPS);
                let known = open[0].known;
                assert!(left > 0 && known >= others && known <= exact + 1e-9, "seed {seed}");
                nearby += u32::from(known > exact - 0.05);
                open[0].known = others;
                let priced = few.price(&mut open[0]);
                assert!(open[0].bound >= exact - 1e-9, "seed {seed}: without {winner}");
                let gap = few.bound - best.objective();
                let (sum, left) = few.thorough(&open[0], &priced, gap, 1_000_000);
                assert!(left > 0 && (sum - exact).abs() < 1e-9, "seed {seed}: without {winner}");
                let (guess, left) = few.thorough(&open[0], &priced, gap, 0);
                let between = guess >= others - 1e-12 && guess <= priced.value + 1e-9;
                assert!(between, "seed {seed}: without {winner}");
                guessed += u32::from(left == 0);
            }
        }
        assert!(guessed > 50 && nearby > 270, "{guessed} {nearby}");
    }
}
