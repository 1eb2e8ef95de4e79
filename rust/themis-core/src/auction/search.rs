//! Few bidders: other selections, in order of what they give up.
//!
//! At the dual's prices a selection is worth D less the regrets of its choices and the price of what
//! it leaves unused. When the best selection can't be placed, those that give up less than the gap
//! are tried: depth first, with the allowance doubling from an eighth of the gap to all of it.
//!
//! Cost: [`NODES`] steps and [`PLACEMENTS`] placements of a choice at most, counted, never timed. Guarantee: not
//! worse than what it was given.

use std::cmp::Reverse;

use super::dual::Dual;
use super::knapsack::Selection;
use super::placing::place;
use super::prices::Prices;
use super::solution::Solution;
use super::{Bid, Choice};
use crate::cluster::{Chunks, FreeSet, Use};

/// Bidders with which the search is worth its while.
pub(super) const MOST_BIDDERS: usize = 128;
const NODES: u32 = 20_000;
/// Placements of one bidder's choice.
const PLACEMENTS: u32 = 2_500;

/// The best of `known` and of the selections that could beat it, by 1 / `thrift` of the placements.
pub(super) fn improve(
    offer: &FreeSet,
    chunks: &Chunks,
    bids: &[Bid<'_>],
    dual: &Dual,
    known: Solution,
    thrift: u32,
) -> Solution {
    let mut search = Search::new(offer, chunks, bids, dual, known);
    search.placements /= thrift;
    let gap = dual.value - search.best.objective();
    for share in [0.125, 0.25, 0.5, 1.0] {
        search.allowance = gap * share;
        search.visit(0, 0.0, Use::default());
    }
    search.best
}

struct Search<'a> {
    offer: &'a FreeSet,
    chunks: &'a Chunks,
    bids: &'a [Bid<'a>],
    dual: &'a Dual,
    /// Bidders, those with the largest choices first, each with its regrets, least first.
    order: Vec<(usize, Vec<(f64, Choice)>)>,
    chosen: Selection,
    best: Solution,
    allowance: f64,
    tried: Vec<Selection>,
    nodes: u32,
    placements: u32,
}

impl<'a> Search<'a> {
    fn new(
        offer: &'a FreeSet,
        chunks: &'a Chunks,
        bids: &'a [Bid<'a>],
        dual: &'a Dual,
        best: Solution,
    ) -> Self {
        let gap = dual.value - best.objective();
        let bidders = bids.iter().enumerate();
        let mut order: Vec<(usize, Vec<(f64, Choice)>)> =
            bidders.map(|(bidder, bid)| (bidder, within(bid, bidder, &dual.prices, gap))).collect();
        order.sort_by_key(|(bidder, choices)| {
            let largest = choices.iter().map(|(_, choice)| choice.gpus).max();
            (Reverse(largest), *bidder)
        });
        Self {
            offer,
            chunks,
            bids,
            dual,
            order,
            chosen: vec![None; bids.len()],
            best,
            allowance: 0.0,
            tried: Vec::new(),
            nodes: NODES,
            placements: PLACEMENTS / bids.len().max(1) as u32,
        }
    }

    fn visit(&mut self, at: usize, regret: f64, uses: Use) {
        let limit = self.allowance.min(self.dual.value - self.best.objective() - 1e-9);
        if self.nodes == 0 || self.placements == 0 || regret > limit {
            return;
        }
        self.nodes -= 1;
        let capacity = self.chunks.capacity();
        if uses.0.iter().zip(capacity).any(|(used, there)| f64::from(*used) > *there) {
            return;
        }
        if at == self.order.len() {
            self.leaf(regret, uses, limit);
            return;
        }
        let bidder = self.order[at].0;
        for choice in 0..self.order[at].1.len() {
            let (more, Choice { pattern, .. }) = self.order[at].1[choice];
            let taken = pattern.map(|p| self.bids[bidder].patterns[p].uses).unwrap_or_default();
            self.chosen[bidder] = pattern;
            self.visit(at + 1, regret + more, uses.plus(&taken));
        }
        self.chosen[bidder] = None;
    }

    /// Places a selection that would beat the best one.
    fn leaf(&mut self, regret: f64, uses: Use, limit: f64) {
        let rows = self.chunks.capacity().iter().zip(uses.0).zip(self.dual.prices.rows());
        let idle: f64 = rows.map(|((there, used), price)| (there - f64::from(used)) * price).sum();
        if regret + idle > limit || self.tried.contains(&self.chosen) {
            return;
        }
        self.tried.push(self.chosen.clone());
        self.placements -= 1;
        let (placed, _) = place(self.offer, self.bids, &self.dual.prices, &self.chosen);
        // What is left over is worth its price at most, or nearly.
        let hope = placed.solution().objective() + self.dual.prices.gpu() * placed.idle();
        if hope > self.best.objective() {
            let known = std::mem::replace(&mut self.best, Solution::nothing(self.bids));
            self.best = known.or_better(placed.fill());
        }
    }
}

/// What a bidder could choose and what it would give up, least first: less than the gap.
fn within(bid: &Bid<'_>, bidder: usize, prices: &Prices, gap: f64) -> Vec<(f64, Choice)> {
    let all: Vec<Choice> = bid.choices(bidder, prices).collect();
    let best = all.iter().map(|choice| choice.surplus).fold(f64::NEG_INFINITY, f64::max);
    let regrets = all.into_iter().map(|choice| (best - choice.surplus, choice));
    let mut near: Vec<(f64, Choice)> = regrets.filter(|(regret, _)| *regret <= gap).collect();
    near.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.pattern.cmp(&b.1.pattern)));
    near
}
