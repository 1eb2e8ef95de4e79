//! One round of the partial-allocation auction (paper, section 3.3 and Pseudocode 1; Cole,
//! Gkatzelis, Goel, EC 2013).
//!
//! [`run_round`] is the round from top to bottom: visibility, bids, proportional fairness, hidden
//! payments, charging, leftovers. Each phase is a module.

mod asks;
mod attempt;
mod bid;
mod bidder;
mod changes;
mod charge;
mod clearing;
mod decision;
mod descent;
mod detours;
mod dual;
mod entrants;
mod exchange;
mod favourite;
mod few;
mod floor;
mod greedy;
mod knapsack;
mod large;
mod leftovers;
mod limits;
mod menus;
mod nearby;
mod outcome;
mod packed;
mod packing;
mod payments;
mod placing;
mod prices;
mod racks;
mod rooms;
mod search;
mod solution;
mod solver;
mod sweep;
mod tables;
mod winners;
mod wishes;
mod without;

pub use bidder::{Bidder, Table, TableRow};
pub use charge::Payment;
pub use decision::Given;
pub use entrants::{Entrant, Standing};
pub use leftovers::Leftover;
pub use outcome::{Entry, Outcome, Reason};
pub use solver::Solver;

use std::cmp::Reverse;

use fixedbitset::FixedBitSet;

use bid::{Bid, Choice};
use decision::Decision;
use entrants::Entries;
use leftovers::Claimants;

use crate::app::Pattern;
use crate::cluster::{Chunks, FreeSet, TypeSet};
use crate::fairness::{participants, worst_first};

/// Bidders up to which every one matters: apps of many jobs bid mixtures of localities too, and
/// payments come from searches without each winner, since where the last bundles fit is much of
/// what they are worth and the knapsack knows places by prices only. With more, mixtures triple the
/// patterns, and the searches seldom come to their end.
const FEW: usize = 64;

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

/// The sets of GPU types that these bidders' jobs are bound to, most wanted first.
fn most_wanted(mut wanted: Vec<TypeSet>) -> Vec<TypeSet> {
    wanted.sort_unstable_by(|a, b| b.cmp(a));
    let mut sets: Vec<(usize, TypeSet)> =
        wanted.chunk_by(|a, b| a == b).map(|same| (same.len(), same[0])).collect();
    sets.sort_by_key(|(wanted, _)| Reverse(*wanted));
    sets.into_iter().map(|(_, types)| types).collect()
}

/// The entrants worst off first, and those that see the offer, in their own order.
fn visibility(ranks: &[(f64, f64)], rules: &Rules) -> (Vec<usize>, Vec<usize>) {
    let order = worst_first(ranks);
    let mut seen = order[..participants(rules.fairness_knob, ranks.len())].to_vec();
    seen.sort_unstable();
    (order, seen)
}

/// The entrants that see an offer under these rules, in their own order.
pub fn visible(entrants: &[Entrant], rules: &Rules) -> Vec<usize> {
    let ranks: Vec<(f64, f64)> = entrants.iter().map(|entrant| entrant.rank).collect();
    visibility(&ranks, rules).1
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
    round_of_all(offer, entrants, rules, None, draws)
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
    round_of_all(offer, entrants, rules, Some(given), draws)
}

/// The same among entrants that are known by their standings, with entries of those only that the
/// round had to ask: who sees the offer, and whom GPUs were left for. [`Outcome::ask_rest`] adds
/// the others.
pub fn run_round_asking(
    offer: &FreeSet,
    standings: &[Standing],
    ask: &mut dyn FnMut(usize) -> Bidder,
    rules: &Rules,
    draws: &mut dyn Draws,
) -> Outcome {
    round(offer, standings, ask, rules, None, draws)
}

fn round_of_all(
    offer: &FreeSet,
    entrants: Vec<Entrant>,
    rules: &Rules,
    given: Option<&Given>,
    draws: &mut dyn Draws,
) -> Outcome {
    let standings: Vec<Standing> = entrants.iter().map(Entrant::standing).collect();
    let mut bidders: Vec<_> = entrants.into_iter().map(|entrant| Some(entrant.bidder)).collect();
    let mut ask = |at: usize| bidders[at].take().expect("invariant: nobody is asked twice");
    let mut outcome = round(offer, &standings, &mut ask, rules, given, draws);
    outcome.ask_rest(standings.len(), &mut ask);
    outcome
}

fn round(
    offer: &FreeSet,
    standings: &[Standing],
    ask: &mut dyn FnMut(usize) -> Bidder,
    rules: &Rules,
    given: Option<&Given>,
    draws: &mut dyn Draws,
) -> Outcome {
    // 1. Visibility: the worst off see the offer.
    let ranks: Vec<(f64, f64)> = standings.iter().map(|standing| standing.rank).collect();
    let (order, seen) = visibility(&ranks, rules);

    // 2. Bids: all see the same offer.
    let bidders: Vec<Bidder> = seen.iter().map(|at| ask(*at)).collect();
    let (mut gangs, mut pools) = (Vec::new(), Vec::new());
    let stake = |bidder| {
        gangs.extend(Bidder::gangs(bidder));
        pools.extend(bidder.pools());
        Bid::none(bidder, offer.topology())
    };
    let mut bids: Vec<Bid<'_>> = bidders.iter().map(stake).collect();
    gangs.sort_unstable();
    gangs.dedup();
    let chunks = Chunks::of(offer, &gangs, &most_wanted(pools));
    bids = bids.into_iter().map(|bid| bid.on(offer, &chunks, seen.len() <= FEW)).collect();

    // 3. and 4. Proportional fairness with a certified bound, and what each winner costs the others.
    let decision = match given {
        Some(given) => given.decide(offer, &seen, &bids),
        None => Decision::by(rules.solver, offer, &chunks, &bids),
    };
    let Decision { solution, upper_bound, payments } = decision;
    let objective = solution.objective();

    // 5. Charge.
    let told: Vec<(f64, Vec<Pattern>)> =
        bids.into_iter().map(|bid| (bid.nothing, bid.patterns)).collect();
    let mut entries = Entries::new(standings.len(), seen.len(), ask);
    let mut free = offer.clone();
    let mut paid = FixedBitSet::with_capacity(standings.len());
    let bids = bidders.into_iter().zip(told);
    for (((at, bid), win), c) in seen.iter().zip(bids).zip(solution.wins).zip(payments) {
        let (bidder, (nothing, patterns)) = bid;
        let entry = entries.see(*at, (bidder, nothing, patterns), win.as_ref(), c);
        charge::charge(entry, win, rules.payment, offer, draws);
        entry.keep(&mut free);
        paid.set(*at, entry.was_cut());
    }

    // 6. Leftovers: nothing idles that somebody could use.
    let (bidders, outside) = order.split_at(seen.len());
    let resuming = |at: &usize| standings[*at].resumes;
    let resuming: Vec<usize> = outside.iter().copied().filter(resuming).collect();
    let (paid, unpaid): (Vec<usize>, Vec<usize>) =
        bidders.iter().partition(|at| paid.contains(**at));
    let claimants = Claimants { unpaid: &unpaid, paid: &paid, outside, resuming: &resuming };
    leftovers::hand_out(&mut entries, &claimants, &mut free, rules.leftover, draws);

    // 7. Every entrant learns what it got, or why not.
    Outcome::new(entries.into_sorted(), objective, upper_bound, free.to_bundle())
}
