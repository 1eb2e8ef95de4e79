//! Where a selection of patterns lies: what is anchored first, then what is bound to few GPU types,
//! single machines, then racks, then what may lie anywhere, larger bundles first; what does not fit
//! is exchanged for the next best.

use std::cmp::Reverse;

use super::greedy::Greedy;
use super::knapsack::Selection;
use super::prices::Prices;
use super::{Bid, Choice};
use crate::cluster::{FreeSet, Locality};

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
    let mut order: Vec<(usize, usize)> = selection
        .iter()
        .enumerate()
        .filter_map(|(bidder, pattern)| pattern.map(|pattern| (bidder, pattern)))
        .collect();
    let gpus = |(bidder, pattern): &(usize, usize)| bids[*bidder].patterns[*pattern].gpus();
    let mut spare = offer.total().saturating_sub(order.iter().map(gpus).sum());
    order.sort_by_cached_key(|(bidder, pattern)| {
        let bid = &bids[*bidder];
        let pattern = &bid.patterns[*pattern];
        let anchored = bid.bidder.anchor().is_some() || bid.bidder.is_table();
        let level = pattern.reach.level.max(Locality::Machine);
        (
            !anchored,
            bid.bidder.breadth(pattern),
            level,
            Reverse(bid.bidder.largest_part(pattern)),
            Reverse(pattern.gpus()),
            *bidder,
        )
    });
    let mut greedy = Greedy::new(offer, bids);
    let mut whole = true;
    for (bidder, pattern) in order {
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
