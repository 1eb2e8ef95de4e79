//! One round of the partial-allocation auction (paper, section 3.3 and Pseudocode 1; Cole,
//! Gkatzelis, Goel, EC 2013).
//!
//! [`run_round`] is the round from top to bottom: visibility, bids, proportional fairness, hidden
//! payments, charging, leftovers. Each phase is a module.

mod bidder;
mod charge;
mod decision;
mod dual;
mod exact;
mod exchange;
mod greedy;
mod knapsack;
mod leftovers;
mod outcome;
mod payments;
mod prices;
mod search;
mod solution;
mod solver;
mod winners;

pub use bidder::{Bidder, Table, TableRow};
pub use charge::Payment;
pub use decision::Given;
pub use leftovers::Leftover;
pub use outcome::{Entry, Outcome, Reason};
pub use solver::Solver;

use std::cmp::Reverse;

use decision::Decision;
use prices::Prices;

use crate::app::Pattern;
use crate::cluster::{Chunks, FreeSet, TypeSet};
use crate::fairness::{participants, worst_first};

/// Bidders up to which every one matters: apps of many jobs bid mixtures of localities too, and
/// payments come from solving again without each winner, since where the last bundles fit is much of
/// what they are worth and the knapsack knows places by prices only. With more, mixtures triple the
/// patterns and the budgeted exchanges find no more by them.
const FEW: usize = 16;

/// An app that wants more than it keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct Entrant {
    /// Its agent's answer to any offer.
    pub bidder: Bidder,
    /// What the filter ranks it by, worst (largest) first, then by the second number.
    pub rank: (f64, f64),
}

/// The rules of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// f of the paper: the worst max(1, ceil((1 - f) n)) of the entrants see the offer.
    pub fairness_knob: f64,
    /// How the allocation is found.
    pub solver: Solver,
    /// How the hidden payment is charged.
    pub payment: Payment,
    /// Who gets what nobody won.
    pub leftover: Leftover,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            fairness_knob: 0.8,
            solver: Solver::Prices,
            payment: Payment::Lottery,
            leftover: Leftover::default(),
        }
    }
}

/// Random numbers in [0, 1), one stream a purpose; the caller seeds them.
pub trait Draws {
    /// The next draw of the lottery (and of random rounding).
    fn lottery(&mut self) -> f64;
    /// The next draw for leftovers.
    fn leftover(&mut self) -> f64;
}

/// Draws for rules without chance: always 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoDraws;

impl Draws for NoDraws {
    fn lottery(&mut self) -> f64 {
        0.0
    }

    fn leftover(&mut self) -> f64 {
        0.0
    }
}

/// A bidder with its bid on the offer.
#[derive(Clone, Debug)]
struct Bid<'a> {
    bidder: &'a Bidder,
    patterns: Vec<Pattern>,
}

/// A pattern of a bid, or nothing, at given prices.
#[derive(Clone, Copy, Debug)]
struct Choice {
    /// log V above its price.
    surplus: f64,
    gpus: u32,
    pattern: Option<usize>,
}

impl Bid<'_> {
    /// Nothing, then every pattern, at what they cost this bidder.
    fn choices(&self, bidder: usize, prices: &Prices) -> impl Iterator<Item = Choice> {
        let nothing = Choice { surplus: self.bidder.log_v_empty(), gpus: 0, pattern: None };
        let patterns = self.patterns.iter().enumerate().map(move |(at, pattern)| Choice {
            surplus: pattern.log_v - prices.cost(bidder, pattern),
            gpus: pattern.gpus(),
            pattern: Some(at),
        });
        std::iter::once(nothing).chain(patterns)
    }
}

/// The sets of GPU types that these bidders' jobs are bound to, most wanted first.
fn bound<'a>(bidders: impl Iterator<Item = &'a Bidder>) -> Vec<TypeSet> {
    let mut wanted: Vec<TypeSet> = bidders.flat_map(Bidder::pools).collect();
    wanted.sort_unstable_by(|a, b| b.cmp(a));
    let mut sets: Vec<(usize, TypeSet)> =
        wanted.chunk_by(|a, b| a == b).map(|same| (same.len(), same[0])).collect();
    sets.sort_by_key(|(wanted, _)| Reverse(*wanted));
    sets.into_iter().map(|(_, types)| types).collect()
}

/// The entrants worst off first, and those that see the offer, in their own order.
fn visibility(entrants: &[Entrant], rules: &Rules) -> (Vec<usize>, Vec<usize>) {
    let ranks: Vec<(f64, f64)> = entrants.iter().map(|entrant| entrant.rank).collect();
    let order = worst_first(&ranks);
    let mut seen = order[..participants(rules.fairness_knob, entrants.len())].to_vec();
    seen.sort_unstable();
    (order, seen)
}

/// The entrants that see an offer under these rules, in their own order.
pub fn visible(entrants: &[Entrant], rules: &Rules) -> Vec<usize> {
    visibility(entrants, rules).1
}

/// Clears one auction over `offer`. Entrants are numbered in the order that decides ties.
///
/// Every GPU of the offer ends in exactly one place: kept by a winner, given as a leftover, or in
/// [`Outcome::unused`] because it helps no entrant.
pub fn run_round(
    offer: &FreeSet,
    entrants: Vec<Entrant>,
    rules: &Rules,
    draws: &mut dyn Draws,
) -> Outcome {
    round(offer, entrants, rules, None, draws)
}

/// The same with an allocation and payments found outside, which must fit the offer
/// ([`Given::fits`]): they are charged, and leftovers handed out, as those of a solver here.
pub fn run_round_given(
    offer: &FreeSet,
    entrants: Vec<Entrant>,
    rules: &Rules,
    given: &Given,
    draws: &mut dyn Draws,
) -> Outcome {
    round(offer, entrants, rules, Some(given), draws)
}

fn round(
    offer: &FreeSet,
    entrants: Vec<Entrant>,
    rules: &Rules,
    given: Option<&Given>,
    draws: &mut dyn Draws,
) -> Outcome {
    // 1. Visibility: the worst off see the offer.
    let (order, seen) = visibility(&entrants, rules);

    // 2. Bids: all see the same offer.
    let mut gangs: Vec<u32> = seen.iter().flat_map(|at| entrants[*at].bidder.gangs()).collect();
    gangs.sort_unstable();
    gangs.dedup();
    let chunks = Chunks::of(offer, &gangs, &bound(seen.iter().map(|at| &entrants[*at].bidder)));
    let bid = |at: &usize| {
        let bidder = &entrants[*at].bidder;
        let mut patterns = bidder.patterns(offer, &chunks);
        if seen.len() <= FEW {
            patterns.extend(bidder.mixtures(offer, &chunks));
        }
        Bid { bidder, patterns }
    };
    let bids: Vec<Bid<'_>> = seen.iter().map(bid).collect();

    // 3. and 4. Proportional fairness with a certified bound, and what each winner costs the others.
    let decision = match given {
        Some(given) => given.decide(offer, &seen, &bids),
        None => Decision::by(rules.solver, offer, &chunks, &bids),
    };
    let Decision { solution, upper_bound, payments } = decision;
    let objective = solution.objective();

    // 5. Charge.
    let patterns: Vec<Vec<Pattern>> = bids.into_iter().map(|bid| bid.patterns).collect();
    let mut outcome = Outcome::new(entrants, order, objective, upper_bound);
    let mut free = offer.clone();
    for (((at, win), patterns), c) in seen.iter().zip(solution.wins).zip(patterns).zip(payments) {
        let entry = outcome.entries[*at].see(patterns, win.as_ref(), c);
        charge::charge(entry, win, rules.payment, offer, draws);
        entry.keep(&mut free);
    }

    // 6. Leftovers: nothing idles that somebody could use.
    leftovers::hand_out(&mut outcome, &mut free, seen.len(), rules.leftover, draws);

    // 7. Every entrant learns what it got, or why not.
    outcome.explain(free.to_bundle());
    outcome
}
