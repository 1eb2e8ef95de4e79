//! Better selections of rows near one, region by region.
//!
//! A region is a bidder with those that hold the slots of its best ways, those that would like its own,
//! and so on from these, up to a few. Its members choose again among themselves ([`super::branch`]) while
//! all others keep what they have. Regions grow once none of a size helps.
//!
//! Cost: the steps given, counted, never timed. Guarantee: never worse. Ties: bidders that lose most go
//! first, then bidder order.

use fixedbitset::FixedBitSet;

use super::branch::{self, Answer, Task};
use super::rows::Rows;

/// Members of a region at first, and what they grow to by [`GROW`].
const MEMBERS: usize = 6;
const LARGEST: usize = 10;
const GROW: usize = 2;
/// Ways of a member whose slots are looked at.
const WANTED: usize = 3;
/// Steps of a search in a region.
const REGION_STEPS: u32 = 3_000;

/// Rows at prices a slot.
#[derive(Debug)]
pub(super) struct Priced {
    pub(super) rows: Rows,
    pub(super) prices: Vec<f64>,
    /// Ways of every bidder, by surplus.
    pub(super) order: Vec<Vec<u32>>,
    /// Bidders whose best way wants a slot.
    favoured: Vec<Vec<u32>>,
}

impl Priced {
    pub(super) fn new(rows: Rows, prices: Vec<f64>) -> Self {
        let mut favoured = vec![Vec::new(); rows.offer.len()];
        let mut order = Vec::with_capacity(rows.ways.len());
        for (bidder, ways) in rows.ways.iter().enumerate() {
            let surplus: Vec<f64> =
                ways.iter().map(|way| way.log_v - rows.cost(way, &prices)).collect();
            let mut by_surplus: Vec<u32> = (0..ways.len() as u32).collect();
            by_surplus.sort_by(|a, b| surplus[*b as usize].total_cmp(&surplus[*a as usize]));
            for (slot, _) in rows.asked(bidder, by_surplus[0]) {
                favoured[*slot as usize].push(bidder as u32);
            }
            order.push(by_surplus);
        }
        Self { rows, prices, order, favoured }
    }

    /// What a way is worth to a bidder above its price.
    pub(super) fn surplus(&self, bidder: usize, way: u32) -> f64 {
        let way = &self.rows.ways[bidder][way as usize];
        way.log_v - self.rows.cost(way, &self.prices)
    }

    /// What a bidder gives up by this way rather than its best.
    fn loss(&self, bidder: usize, way: u32) -> f64 {
        self.surplus(bidder, self.order[bidder][0]) - self.surplus(bidder, way)
    }
}

/// A selection under way.
pub(super) struct Deal<'a> {
    priced: &'a Priced,
    pub(super) ways: Vec<u32>,
    free: Vec<u32>,
    /// Bidders that hold GPUs of a slot.
    holders: Vec<Vec<u32>>,
    /// A bidder that is left out.
    out: Option<usize>,
}

impl<'a> Deal<'a> {
    pub(super) fn new(priced: &'a Priced, ways: &[u32], out: Option<usize>) -> Self {
        let mut deal = Self {
            priced,
            ways: vec![0; ways.len()],
            free: priced.rows.offer.clone(),
            holders: vec![Vec::new(); priced.rows.offer.len()],
            out,
        };
        for (bidder, way) in ways.iter().enumerate() {
            if Some(bidder) != out {
                deal.take(bidder, *way);
            }
        }
        deal
    }

    /// Gives the one that is left out a way: who holds its GPUs loses all that it has.
    pub(super) fn force(&mut self, bidder: usize, way: u32) {
        let asked = self.priced.rows.asked(bidder, way);
        for (slot, gpus) in asked {
            while self.free[*slot as usize] < *gpus {
                let holder = self.holders[*slot as usize][0] as usize;
                self.give(holder);
            }
        }
        self.take(bidder, way);
    }

    /// From now on nobody is left out.
    pub(super) fn let_in(&mut self) {
        self.out = None;
    }

    /// The sum of log V of all but who is left out.
    pub(super) fn log_v(&self) -> f64 {
        self.priced.rows.log_v(&self.ways, self.out)
    }

    /// Lets regions choose again, those around who would like these slots first, until none helps or
    /// the steps run out; the steps that are left.
    pub(super) fn improve(&mut self, slots: &[(u32, u32)], mut left: u32) -> u32 {
        let seeds = self.seeds(slots);
        let (mut at, mut since, mut members) = (0, 0, MEMBERS);
        while left > 0 && !seeds.is_empty() {
            let region = self.region(seeds[at], members);
            let steps = branch::enough(&self.priced.order, &region, REGION_STEPS).min(left);
            let (better, unused) = self.choose_again(&region, steps);
            left -= steps - unused;
            since = if better { 0 } else { since + 1 };
            at = (at + 1) % seeds.len();
            if since >= seeds.len() {
                if members >= LARGEST {
                    break;
                }
                (members, since) = (members + GROW, 0);
            }
        }
        left
    }

    /// All bidders, those that would like one of these slots first, then those that lose most.
    fn seeds(&self, slots: &[(u32, u32)]) -> Vec<usize> {
        let wants = |bidder: usize| {
            let better = self.priced.order[bidder].iter();
            better.take_while(|way| **way != self.ways[bidder]).any(|way| {
                let asked = self.priced.rows.asked(bidder, *way).iter();
                asked.into_iter().any(|(slot, _)| slots.iter().any(|(near, _)| near == slot))
            })
        };
        let all = (0..self.ways.len()).filter(|bidder| Some(*bidder) != self.out);
        let mut seeds: Vec<(bool, f64, usize)> =
            all.map(|at| (wants(at), self.priced.loss(at, self.ways[at]), at)).collect();
        seeds.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
        seeds.into_iter().map(|(_, _, bidder)| bidder).collect()
    }

    /// A bidder and those around it, up to so many.
    fn region(&self, seed: usize, members: usize) -> Vec<usize> {
        let rows = &self.priced.rows;
        let mut inside = FixedBitSet::with_capacity(self.ways.len());
        let mut region = vec![seed];
        inside.insert(seed);
        inside.extend(self.out);
        let mut at = 0;
        while at < region.len() && region.len() < members {
            let me = region[at];
            at += 1;
            let wanted = self.priced.order[me].iter().filter(|way| **way != self.ways[me]);
            let wanted = wanted.take(WANTED).flat_map(|way| rows.asked(me, *way));
            let holders = wanted.flat_map(|(slot, _)| &self.holders[*slot as usize]);
            let mine = rows.asked(me, self.ways[me]).iter();
            let rivals = mine.flat_map(|(slot, _)| self.rivals(*slot));
            for bidder in holders.map(|bidder| *bidder as usize).chain(rivals) {
                if region.len() < members && !inside.put(bidder) {
                    region.push(bidder);
                }
            }
        }
        region
    }

    /// Bidders whose best way wants a slot, and that have another, those that lose most first.
    fn rivals(&self, slot: u32) -> Vec<usize> {
        let favoured = self.priced.favoured[slot as usize].iter().map(|bidder| *bidder as usize);
        let lacking = favoured.filter(|at| self.priced.order[*at][0] != self.ways[*at]);
        let mut rivals: Vec<(f64, usize)> =
            lacking.map(|at| (self.priced.loss(at, self.ways[at]), at)).collect();
        rivals.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        rivals.into_iter().map(|(_, bidder)| bidder).collect()
    }

    /// The best for the members of a region; whether it is better, and the steps that are left.
    fn choose_again(&mut self, members: &[usize], steps: u32) -> (bool, u32) {
        let before: Vec<u32> = members.iter().map(|bidder| self.ways[*bidder]).collect();
        for bidder in members {
            self.give(*bidder);
        }
        let Priced { rows, order, prices, .. } = self.priced;
        let log_v = |(at, way): (&usize, &u32)| rows.ways[*at][*way as usize].log_v;
        let known = members.iter().zip(&before).map(log_v).sum();
        let free = &self.free;
        let Answer { found, left, .. } =
            branch::search(&Task { rows, order, prices, members, free, known, steps, depth: 0 });
        let better = found.is_some();
        let kept = || members.iter().copied().zip(before).collect();
        for (bidder, way) in found.unwrap_or_else(kept) {
            self.take(bidder, way);
        }
        (better, left)
    }

    fn take(&mut self, bidder: usize, way: u32) {
        self.ways[bidder] = way;
        for (slot, gpus) in self.priced.rows.asked(bidder, way) {
            self.free[*slot as usize] -= gpus;
            self.holders[*slot as usize].push(bidder as u32);
        }
    }

    fn give(&mut self, bidder: usize) {
        for (slot, gpus) in self.priced.rows.asked(bidder, self.ways[bidder]) {
            self.free[*slot as usize] += gpus;
            self.holders[*slot as usize].retain(|other| *other as usize != bidder);
        }
        self.ways[bidder] = 0;
    }
}
