//! Exact proportional fairness for auctions of explicit tables.
//!
//! A table names the slots it wants, so slots are what has a price here: the dual with one price a
//! slot bounds every completion of a partial choice by what it has, the best surplus of each bidder
//! to come, and the price of the GPUs left. Depth first, the bidders with most to lose first, their
//! rows by surplus, pruned by that bound.
//!
//! Cost: [`STEPS`] passes over all rows for the prices, then at most [`BUDGET`] rows tried: counted,
//! never timed. Guarantee: optimal when the budget suffices; otherwise the best allocation found,
//! and the dual's bound. Ties: the allocation found first stands, greedy's before all.

use super::solution::Solution;
use super::{Bid, Bidder};
use crate::cluster::{Bundle, Fill, FreeSet};
use crate::ids::SlotId;

/// Rows tried before the search gives up.
const BUDGET: u32 = 1_000_000;
/// Subgradient steps for the prices.
const STEPS: u32 = 200;

/// The better of the greedy solution and what the search finds.
pub(super) fn improve(offer: &FreeSet, bids: &[Bid<'_>], greedy: Solution) -> Solution {
    let tables: Vec<Table<'_>> =
        bids.iter().enumerate().map(|(at, bid)| Table::new(bid, at)).collect();
    let (prices, bound) = slot_prices(offer, &tables, greedy.objective());
    let mut search = Search::new(offer, &tables, prices, &greedy);
    search.visit(0, 0.0);
    let finished = search.budget > 0;
    let found = search.best.take().map(|rows| rebuild(offer, bids, &rows));
    let best = found.unwrap_or(greedy);
    let bound = if finished { best.objective() } else { bound.max(best.objective()) };
    Solution { bound, ..best }
}

/// A bidder's ways: log V, GPUs, row; nothing first.
struct Table<'a> {
    bidder: usize,
    ways: Vec<(f64, &'a Bundle, Option<usize>)>,
}

static NOTHING: Bundle = Bundle::EMPTY;

impl<'a> Table<'a> {
    fn new(bid: &'a Bid<'_>, bidder: usize) -> Self {
        let mut ways = vec![(bid.nothing, &NOTHING, None)];
        if let Bidder::Table(table) = bid.bidder {
            ways.extend(bid.patterns.iter().enumerate().map(|(at, pattern)| {
                (pattern.log_v, &table.rows[pattern.steps as usize].bundle, Some(at))
            }));
        }
        Self { bidder, ways }
    }

    /// The best surplus at these prices, and its GPUs.
    fn respond(&self, prices: &[f64]) -> (f64, &'a Bundle) {
        let mut best = (f64::NEG_INFINITY, &NOTHING);
        for (log_v, bundle, _) in &self.ways {
            let surplus = log_v - cost(bundle, prices);
            if surplus > best.0 {
                best = (surplus, *bundle);
            }
        }
        best
    }
}

fn cost(bundle: &Bundle, prices: &[f64]) -> f64 {
    bundle.iter().map(|(slot, gpus)| prices[slot.index()] * f64::from(gpus)).sum()
}

/// Prices a slot of a small dual value, and that value.
fn slot_prices(offer: &FreeSet, tables: &[Table<'_>], target: f64) -> (Vec<f64>, f64) {
    let slots = offer.topology().slots();
    let capacity: Vec<f64> =
        (0..slots as u32).map(|slot| f64::from(offer.slot(SlotId(slot)))).collect();
    let mut prices = vec![0.0; slots];
    let mut best = (prices.clone(), f64::INFINITY);
    let (mut pace, mut idle) = (1.0, 0);
    for _ in 0..STEPS {
        let mut value: f64 = capacity.iter().zip(&prices).map(|(c, p)| c * p).sum();
        let mut excess: Vec<f64> = capacity.iter().map(|c| -c).collect();
        for table in tables {
            let (surplus, bundle) = table.respond(&prices);
            value += surplus;
            for (slot, gpus) in bundle.iter() {
                excess[slot.index()] += f64::from(gpus);
            }
        }
        idle += 1;
        if value < best.1 - 1e-9 {
            best = (prices.clone(), value);
            idle = 0;
        } else if idle > 5 {
            (pace, idle) = (pace / 2.0, 0);
            prices.clone_from(&best.0);
        }
        for (excess, price) in excess.iter_mut().zip(&prices) {
            if *price <= 0.0 && *excess < 0.0 {
                *excess = 0.0;
            }
        }
        let norm: f64 = excess.iter().map(|e| e * e).sum();
        if norm < 1e-9 || value - target < 1e-12 {
            break;
        }
        let step = pace * (value - target) / norm;
        for (price, excess) in prices.iter_mut().zip(&excess) {
            *price = (*price + step * excess).max(0.0);
        }
    }
    best
}

struct Search<'a> {
    /// Bidders in the order of the search, with their ways by surplus.
    tables: Vec<Table<'a>>,
    prices: Vec<f64>,
    free: FreeSet,
    /// The price of the GPUs that are free.
    reserve: f64,
    /// Best surpluses of the bidders from here on.
    rest: Vec<f64>,
    chosen: Vec<Option<usize>>,
    best: Option<Vec<Option<usize>>>,
    best_objective: f64,
    budget: u32,
}

impl<'a> Search<'a> {
    fn new(offer: &FreeSet, tables: &[Table<'a>], prices: Vec<f64>, greedy: &Solution) -> Self {
        let mut ordered: Vec<(f64, Table<'a>)> = tables
            .iter()
            .map(|table| {
                let surplus = |way: &(f64, &Bundle, _)| way.0 - cost(way.1, &prices);
                let mut ways = table.ways.clone();
                ways.sort_by(|a, b| surplus(b).total_cmp(&surplus(a)).then(a.2.cmp(&b.2)));
                let loss =
                    ways.get(1).map_or(f64::INFINITY, |second| surplus(&ways[0]) - surplus(second));
                (loss, Table { bidder: table.bidder, ways })
            })
            .collect();
        ordered.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.bidder.cmp(&b.1.bidder)));
        let ordered: Vec<Table<'a>> = ordered.into_iter().map(|(_, table)| table).collect();
        let mut rest = vec![0.0; ordered.len() + 1];
        for (at, table) in ordered.iter().enumerate().rev() {
            rest[at] = rest[at + 1] + table.respond(&prices).0;
        }
        Self {
            reserve: cost(&offer.to_bundle(), &prices),
            chosen: vec![None; ordered.len()],
            best: None,
            best_objective: greedy.objective(),
            budget: BUDGET,
            free: offer.clone(),
            tables: ordered,
            prices,
            rest,
        }
    }

    fn visit(&mut self, at: usize, objective: f64) {
        // A hair's margin, so that equal allocations leave the first one found standing.
        let bound = objective + self.rest[at] + self.reserve;
        if self.budget == 0 || bound <= self.best_objective + 1e-12 {
            return;
        }
        if at == self.tables.len() {
            if objective > self.best_objective + 1e-12 {
                self.best_objective = objective;
                self.best = Some(self.chosen.clone());
            }
            return;
        }
        let bidder = self.tables[at].bidder;
        for way in 0..self.tables[at].ways.len() {
            let (log_v, bundle, row) = self.tables[at].ways[way];
            self.budget = self.budget.saturating_sub(1);
            if self.free.has(bundle) {
                let price = cost(bundle, &self.prices);
                self.free.take(bundle);
                self.reserve -= price;
                self.chosen[bidder] = row;
                self.visit(at + 1, objective + log_v);
                self.reserve += price;
                self.free.give(bundle);
            }
        }
        self.chosen[bidder] = None;
    }
}

fn rebuild(offer: &FreeSet, bids: &[Bid<'_>], rows: &[Option<usize>]) -> Solution {
    let mut free = offer.clone();
    let mut solution = Solution::nothing(bids);
    for (at, (bid, row)) in bids.iter().zip(rows).enumerate() {
        let win = row.and_then(|row| bid.place(row, &mut free, Fill::Fullest));
        if let Some(win) = win {
            solution.log_v[at] = win.log_v;
            solution.wins[at] = Some(win);
        }
    }
    solution
}
