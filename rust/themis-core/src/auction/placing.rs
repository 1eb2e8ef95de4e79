//! Where a selection of patterns lies.
//!
//! What is anchored comes first, then what is bound to few GPU types, then single machines, then
//! racks, then what may lie anywhere; of each, larger parts first. What does not fit is exchanged
//! for the next best.
//!
//! Many bidders fill the offer to the last slot, and order decides who finds room. Of single machines, what needs
//! more than any slot has then comes first, since smaller parts break machines up, and what any
//! slots may hold comes last. Among equal parts, those that would give up most come first.

use std::cmp::Reverse;

use super::greedy::Greedy;
use super::knapsack::Selection;
use super::prices::Prices;
use super::{Bid, Choice, FEW};
use crate::app::Pattern;
use crate::cluster::{Fill, FreeSet, Locality, TypeSet};

/// Places a selection; whether all of it could be placed.
///
/// What can't be placed is exchanged for the bidder's next best choice that can, and that takes no
/// more GPUs than the selection leaves.
pub(super) fn place<'a>(
    offer: &FreeSet,
    bids: &'a [Bid<'a>],
    prices: &Prices,
    selection: &Selection,
) -> (Greedy<'a>, bool) {
    let turns = in_turn(offer, bids, prices, selection);
    let gpus = |turn: &Turn| bids[turn.bidder].patterns[turn.pattern].gpus();
    let mut spare = offer.total().saturating_sub(turns.iter().map(gpus).sum());
    let fill = if bids.len() <= FEW { Fill::Fullest } else { Fill::Emptiest };
    let mut greedy = Greedy::new(offer, bids).filling(fill);
    let mut whole = true;
    for Turn { bidder, pattern, .. } in turns {
        if greedy.try_step(bidder, pattern) {
            continue;
        }
        whole = false;
        spare += bids[bidder].patterns[pattern].gpus();
        for other in next_best(bids, bidder, prices, spare) {
            if other != pattern && greedy.try_step(bidder, other) {
                spare -= bids[bidder].patterns[other].gpus();
                break;
            }
        }
    }
    (greedy, whole)
}

/// A pattern to be placed: the smaller its rank, then the greater its weight, the sooner; ties: bidder
/// order.
struct Turn {
    bidder: usize,
    pattern: usize,
    rank: (bool, u32, u8, Reverse<u32>),
    weight: f64,
}

/// The patterns of a selection in the order in which they are placed.
fn in_turn(offer: &FreeSet, bids: &[Bid<'_>], prices: &Prices, selection: &Selection) -> Vec<Turn> {
    let chosen = selection.iter().enumerate();
    let chosen = chosen.filter_map(|(bidder, pattern)| Some((bidder, (*pattern)?)));
    let turn = |(bidder, at): (usize, usize)| {
        let bid = &bids[bidder];
        let pattern = &bid.patterns[at];
        let anchored = bid.bidder.anchor().is_some() || bid.bidder.is_table();
        let part = bid.largest_part(pattern);
        let (room, weight) = if bids.len() <= FEW {
            (pattern.reach.level.max(Locality::Machine) as u8, f64::from(pattern.gpus()))
        } else {
            (room(offer, pattern.reach.level, part), regret(bid, bidder, at, prices))
        };
        let rank = (!anchored, bid.bidder.breadth(pattern), room, Reverse(part));
        Turn { bidder, pattern: at, rank, weight }
    };
    let mut turns: Vec<Turn> = chosen.map(turn).collect();
    turns.sort_unstable_by(|a, b| {
        let greater = b.weight.total_cmp(&a.weight);
        a.rank.cmp(&b.rank).then(greater).then(a.bidder.cmp(&b.bidder))
    });
    turns
}

/// The place in the order of a part that must lie within one place of this level.
fn room(offer: &FreeSet, level: Locality, part: u32) -> u8 {
    let slots_are_machines = offer.topology().slots() == offer.topology().machines();
    match level {
        Locality::Machine if part > offer.largest(Locality::Slot, TypeSet::ALL) => 0,
        Locality::Slot if !slots_are_machines => 1,
        Locality::Slot | Locality::Machine => 2,
        Locality::Rack => 3,
        Locality::Cluster => 4,
    }
}

/// What a bidder gives up at these prices when it gets the same, or a step less, only further apart.
fn regret(bid: &Bid<'_>, bidder: usize, at: usize, prices: &Prices) -> f64 {
    let surplus = |pattern: &Pattern| pattern.log_v - prices.cost(bidder, pattern);
    let chosen = &bid.patterns[at];
    // Coarser patterns and those of fewer steps come before it; a table has no steps.
    let lesser = bid.patterns[..at].iter().rev();
    let lesser = lesser.take_while(|p| !bid.bidder.is_table() && p.steps + 1 >= chosen.steps);
    surplus(chosen) - lesser.map(surplus).fold(bid.nothing, f64::max)
}

/// The patterns of up to so many GPUs that are worth more than nothing at these prices, best first.
fn next_best(
    bids: &[Bid<'_>],
    bidder: usize,
    prices: &Prices,
    gpus: u32,
) -> impl Iterator<Item = usize> {
    let mut choices: Vec<Choice> = bids[bidder].choices(bidder, prices).collect();
    let nothing = choices[0].surplus;
    choices.retain(|choice| choice.gpus <= gpus && choice.surplus > nothing);
    choices.sort_by(|a, b| b.surplus.total_cmp(&a.surplus).then(a.pattern.cmp(&b.pattern)));
    choices.into_iter().filter_map(|choice| choice.pattern)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::Bidder;
    use super::*;
    use crate::app::{AppState, Job, Profile, Stopping};
    use crate::cluster::{Chunks, MachineSpec, Topology};

    /// The order in which an auction among so many bidders places what its first four chose.
    fn order(bidders: usize) -> Vec<usize> {
        let spec = MachineSpec { rack: 0, gpus: 4, slot_gpus: 2 };
        let offer = FreeSet::full(Arc::new(Topology::new(&[spec; 3]).expect("valid")));
        let chunks = Chunks::of(&offer, &[2, 4], &[TypeSet::ALL]);
        let app = |gang, slowdown| {
            let profile = Profile::new(slowdown).expect("valid");
            let jobs = vec![Job::waiting(gang, gang, 1000.0, profile)];
            let app = AppState::new(0.0, 100.0, Stopping::All, jobs);
            Bidder::App(app.with_rho_empty(Some(1e6)))
        };
        // In one slot at 3 times and at 4 times the speed, in one machine, of two GPUs and of four.
        let mut all = vec![
            app(2, [1.0, 3.0, 3.0, 3.0]),
            app(2, [1.0, 4.0, 4.0, 4.0]),
            app(2, [1.0, 1.0, 3.0, 3.0]),
            app(4, [1.0, 1.0, 3.0, 3.0]),
        ];
        all.resize(bidders, app(1, [1.0; 4]));
        let bid = |bidder| Bid::none(bidder, offer.topology()).on(&offer, &chunks, false);
        let bids: Vec<Bid<'_>> = all.iter().map(bid).collect();
        // The closest pattern is the last.
        let chosen = bids.iter().take(4).map(|bid| Some(bid.patterns.len() - 1));
        let mut selection: Selection = chosen.collect();
        selection.resize(bidders, None);
        let turns = in_turn(&offer, &bids, &Prices::zero(bidders, &[]), &selection);
        turns.iter().map(|turn| turn.bidder).collect()
    }

    #[test]
    fn whole_machines_come_before_slots_and_greater_losses_before_smaller() {
        assert_eq!(order(FEW + 1), [3, 1, 0, 2]);
        assert_eq!(order(FEW), [3, 0, 1, 2]);
    }
}
