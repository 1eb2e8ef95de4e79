//! What explicit tables ask of the slots on offer, laid out for search.

use super::super::solution::Solution;
use super::super::{Bid, Bidder};
use crate::cluster::{Bundle, Fill, FreeSet};
use crate::ids::SlotId;

/// A way to serve a bidder: with nothing, or with a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) log_v: f64,
    /// Where its (slot, GPUs) begin and end among all.
    first: u32,
    last: u32,
}

/// All ways of all bidders: nothing first, then the patterns of the bid.
#[derive(Debug)]
pub(super) struct Rows {
    /// GPUs on offer, by slot.
    pub(super) offer: Vec<u32>,
    pub(super) ways: Vec<Vec<Way>>,
    uses: Vec<(u32, u32)>,
}

impl Rows {
    pub(super) fn new(offer: &FreeSet, bids: &[Bid<'_>]) -> Self {
        let slots = 0..offer.topology().slots() as u32;
        let mut rows = Self {
            offer: slots.map(|slot| offer.slot(SlotId(slot))).collect(),
            ways: Vec::with_capacity(bids.len()),
            uses: Vec::new(),
        };
        for bid in bids {
            let mut ways = vec![rows.way(bid.nothing, &Bundle::EMPTY)];
            if let Bidder::Table(table) = bid.bidder {
                let bundle = |steps: u32| &table.rows[steps as usize].bundle;
                let patterns = bid.patterns.iter();
                ways.extend(patterns.map(|p| rows.way(p.log_v, bundle(p.steps))));
            }
            rows.ways.push(ways);
        }
        rows
    }

    fn way(&mut self, log_v: f64, bundle: &Bundle) -> Way {
        let first = self.uses.len() as u32;
        self.uses.extend(bundle.iter().map(|(slot, gpus)| (slot.0, gpus)));
        Way { log_v, first, last: self.uses.len() as u32 }
    }

    /// (slot, GPUs) of a way.
    #[inline]
    pub(super) fn uses(&self, way: &Way) -> &[(u32, u32)] {
        &self.uses[way.first as usize..way.last as usize]
    }

    /// (slot, GPUs) of a bidder's way.
    pub(super) fn asked(&self, bidder: usize, way: u32) -> &[(u32, u32)] {
        self.uses(&self.ways[bidder][way as usize])
    }

    /// What a way costs at these prices a slot.
    #[inline]
    pub(super) fn cost(&self, way: &Way, prices: &[f64]) -> f64 {
        let uses = self.uses(way).iter();
        uses.map(|(slot, gpus)| prices[*slot as usize] * f64::from(*gpus)).sum()
    }

    /// Whether so much is free.
    #[inline]
    pub(super) fn fits(&self, way: &Way, free: &[u32]) -> bool {
        self.uses(way).iter().all(|(slot, gpus)| free[*slot as usize] >= *gpus)
    }

    /// The ways of an allocation, whose wins are rows.
    pub(super) fn of(&self, solution: &Solution) -> Vec<u32> {
        let way = |(bidder, ways): (usize, &Vec<Way>)| {
            let Some(win) = &solution.wins[bidder] else { return 0 };
            let parts = win.parts.iter().flat_map(|part| part.bundle.iter());
            let won: Vec<(u32, u32)> = parts.map(|(slot, gpus)| (slot.0, gpus)).collect();
            let same = |way: &Way| {
                way.log_v.total_cmp(&win.log_v).is_eq() && self.uses(way) == won.as_slice()
            };
            ways.iter().position(same).unwrap_or(0) as u32
        };
        self.ways.iter().enumerate().map(way).collect()
    }

    /// The sum of log V of these ways, in bidder order; one bidder may be left out.
    pub(super) fn log_v(&self, ways: &[u32], out: Option<usize>) -> f64 {
        let all = self.ways.iter().zip(ways).enumerate();
        let counted = all.filter(|(bidder, _)| Some(*bidder) != out);
        counted.fold(0.0, |sum, (_, (ways, way))| sum + ways[*way as usize].log_v)
    }

    /// The allocation of these ways.
    pub(super) fn solution(offer: &FreeSet, bids: &[Bid<'_>], ways: &[u32]) -> Solution {
        let mut free = offer.clone();
        let mut solution = Solution::nothing(bids);
        for (at, (bid, way)) in bids.iter().zip(ways).enumerate() {
            let pattern = way.checked_sub(1).map(|pattern| pattern as usize);
            let win = pattern.and_then(|at| bid.place(at, &mut free, Fill::Fullest));
            if let Some(win) = win {
                solution.log_v[at] = win.log_v;
                solution.wins[at] = Some(win);
            }
        }
        solution
    }
}
