//! Auctions of explicit tables: every bidder gets one of its rows whole, or nothing.
//!
//! A table names the slots it wants, so slots are what has a price here ([`prices`]), which bounds
//! every allocation. From the better of greedy and what a short branch and bound ([`branch`]) over all
//! bidders finds, regions choose again ([`regions`]), and it goes on from there. Where it does not come to its
//! end, *detours* follow: each winner is left out, regions choose again without it and once more with it. What
//! they find without a winner is what it is charged by; payments search on from there.
//!
//! Cost: [`EASY`], [`NEAR`] (more with many bidders), [`HARD`], [`DETOURS`] and [`PAYMENTS`] steps, counted,
//! never timed: some 10 ns each. Guarantee: never worse than greedy; the best, and exact payments, where
//! branch and bound comes to its end; else an upper bound. Ties: what was found first.

mod branch;
mod prices;
mod regions;
mod rows;

use std::cmp::Reverse;

use self::branch::{Answer, LEAST_GAIN, Task};
use self::regions::{Deal, Priced};
use self::rows::Rows;
use super::solution::Solution;
use super::without::guess;
use super::{Bid, FEW};
use crate::cluster::FreeSet;

/// Passes to find prices.
const PASSES: u32 = 200;
/// Steps of branch and bound at once, and once regions have chosen again.
const EASY: u32 = 50_000;
const HARD: u32 = 200_000;
/// Bidders that choose before prices are not found anew any more, in branch and bound over all.
const DEPTH: u32 = 2;
/// Steps of regions, and as many more a bidder.
const NEAR: u32 = 100_000;
const NEAR_EACH: u32 = 1_000;
/// Steps of all detours, of one at most, there or back, and how often each winner makes one.
const DETOURS: u32 = 4_000_000;
const DETOUR: u32 = 60_000;
const ROUNDS: u32 = 4;
/// Steps of all payments, and of one at most.
const PAYMENTS: u32 = 3_000_000;
const PAYMENT: u32 = 300_000;
/// By how much fewer they are where the allocation is not known to be the best: few would come to an end.
const UNPROVEN: u32 = 8;
/// Steps with which something is found: with fewer, what others have is all that is known.
const LEAST: u32 = 1_000;
/// Selections that are remembered.
const REMEMBERED: usize = 128;
/// Where the best sum without a winner is taken to lie between the best found and a bound, less
/// what the bound with everybody exceeds the allocation by.
const TRUST: f64 = 0.6;

/// What is known of an auction of tables.
#[derive(Debug)]
pub(super) struct Tables {
    priced: Priced,
    best: Vec<u32>,
    /// Selections that were found, with everybody or without somebody.
    known: Vec<Vec<u32>>,
    /// Of these, what the detours of each winner began from and came to.
    tried: Vec<Vec<usize>>,
    /// No selection is worth more: at the prices, and as far as branch and bound came.
    value: f64,
    bound: f64,
    /// Whether there is none better than the best.
    proven: bool,
}

/// The best allocation found, and what payments go on from.
pub(super) fn solve(
    offer: &FreeSet,
    bids: &[Bid<'_>],
    greedy: &Solution,
) -> (Solution, Box<Tables>) {
    let rows = Rows::new(offer, bids);
    let best = rows.of(greedy);
    let all = || rows.ways.iter().map(Vec::as_slice);
    let (free, target) = (&rows.offer, greedy.objective());
    let (prices, value) =
        prices::balance(&rows, free, all, &vec![0.0; free.len()], (target, PASSES));
    let priced = Priced::new(rows, prices);
    let (known, tried) = (Vec::new(), vec![Vec::new(); best.len()]);
    let mut tables = Tables { priced, best, known, tried, value, bound: value, proven: false };
    tables.improve();
    let found = Rows::solution(offer, bids, &tables.best);
    let bound = if tables.proven { found.objective() } else { tables.bound };
    (Solution { bound, ..found }, Box::new(tables))
}

impl Tables {
    fn improve(&mut self) {
        self.search_all(EASY);
        if !self.proven {
            let mut deal = Deal::new(&self.priced, &self.best, None);
            deal.improve(
                &[],
                NEAR.saturating_add(NEAR_EACH.saturating_mul(self.best.len() as u32)),
            );
            self.best = deal.ways;
            self.search_all(HARD);
        }
        self.known.push(self.best.clone());
        if !self.proven {
            self.make_detours();
        }
    }

    /// Branch and bound over everybody.
    fn search_all(&mut self, steps: u32) {
        let answer = self.search(None, self.log_v(&self.best, None), steps);
        self.bound = self.bound.min(answer.bound).max(answer.log_v);
        self.proven = answer.left > 0;
        if let Some(found) = answer.found {
            for (bidder, way) in found {
                self.best[bidder] = way;
            }
        }
    }

    /// Branch and bound over all bidders but one, for more than is known.
    fn search(&self, out: Option<usize>, known: f64, steps: u32) -> Answer {
        let Priced { rows, prices, order, .. } = &self.priced;
        let members: Vec<usize> = (0..self.best.len()).filter(|at| Some(*at) != out).collect();
        let (members, free) = (&members[..], &rows.offer[..]);
        let steps = branch::enough(order, members, steps);
        branch::search(&Task { rows, order, prices, members, free, known, steps, depth: DEPTH })
    }

    fn log_v(&self, ways: &[u32], out: Option<usize>) -> f64 {
        self.priced.rows.log_v(ways, out)
    }

    /// Leaves each winner out for a while, those with most GPUs first, until no round of that helps.
    fn make_detours(&mut self) {
        let mut left = DETOURS;
        for _ in 0..ROUNDS {
            let before = self.log_v(&self.best, None);
            for winner in self.largest_first() {
                if left == 0 || self.known.len() >= REMEMBERED {
                    return;
                }
                left = self.make_detour(winner, left);
            }
            for bidder in 0..self.best.len() {
                left = self.make_visit(bidder, left);
            }
            if self.log_v(&self.best, None) <= before + LEAST_GAIN {
                return;
            }
        }
    }

    /// Winners, those with most GPUs first; ties: bidder order.
    fn largest_first(&self) -> Vec<usize> {
        let gpus = |at: usize| -> u32 {
            self.priced.rows.asked(at, self.best[at]).iter().map(|(_, gpus)| gpus).sum()
        };
        let mut winners: Vec<usize> =
            (0..self.best.len()).filter(|at| self.best[*at] != 0).collect();
        winners.sort_by_key(|at| (Reverse(gpus(*at)), *at));
        winners
    }

    /// Leaves a winner out, from the best selection known for the others that was not tried for it;
    /// the steps that are left.
    fn make_detour(&mut self, winner: usize, left: u32) -> u32 {
        let Some(start) = self.best_known(winner) else { return left };
        self.tried[winner].extend([start, self.known.len()]);
        let (deal, left) = self.improved_without(winner, start, left);
        let without = deal.ways;
        let mut back = Deal::new(&self.priced, &without, None);
        let steps = DETOUR.min(left);
        let unused = back.improve(&[], steps);
        let better = back.log_v() > self.log_v(&self.best, None) + LEAST_GAIN;
        let ways = back.ways;
        self.known.push(without);
        if better {
            self.known.push(ways.clone());
            self.best = ways;
        }
        left - (steps - unused)
    }

    /// Gives a bidder the best way that it does not have, whoever has its GPUs, while regions without
    /// it choose again, and then with it; the steps that are left.
    fn make_visit(&mut self, bidder: usize, left: u32) -> u32 {
        let others = self.priced.order[bidder].iter().filter(|way| **way != self.best[bidder]);
        let Some(way) = others.copied().find(|way| *way != 0).filter(|_| left > 0) else {
            return left;
        };
        let mut deal = Deal::new(&self.priced, &self.best, Some(bidder));
        deal.force(bidder, way);
        let steps = DETOUR.min(left);
        let unused = deal.improve(self.priced.rows.asked(bidder, way), steps);
        deal.let_in();
        let left = left - (steps - unused);
        let steps = DETOUR.min(left);
        let unused = deal.improve(&[], steps);
        if deal.log_v() > self.log_v(&self.best, None) + LEAST_GAIN {
            let ways = deal.ways;
            self.best.clone_from(&ways);
            self.known.push(ways);
        }
        left - (steps - unused)
    }

    /// Of what is known, the best for the others of a winner that was not tried yet.
    fn best_known(&self, winner: usize) -> Option<usize> {
        let open = (0..self.known.len()).filter(|at| !self.tried[winner].contains(at));
        let valued = open.map(|at| (self.log_v(&self.known[at], Some(winner)), at));
        valued.reduce(|a, b| if b.0 > a.0 { b } else { a }).map(|(_, at)| at)
    }

    /// What regions without a winner come to from a selection that is known, and the steps left.
    fn improved_without(&self, winner: usize, start: usize, left: u32) -> (Deal<'_>, u32) {
        let start = &self.known[start];
        let mut deal = Deal::new(&self.priced, start, Some(winner));
        let steps = DETOUR.min(left);
        let unused = deal.improve(self.priced.rows.asked(winner, start[winner]), steps);
        (deal, left - (steps - unused))
    }

    /// The best sum of log V of the others without each of these winners.
    pub(super) fn without_each(&mut self, winners: &[usize]) -> Vec<f64> {
        let share = if self.proven || self.best.len() > FEW { 1 } else { UNPROVEN };
        let each = (PAYMENTS / winners.len().max(1) as u32).min(PAYMENT) / share;
        winners.iter().map(|winner| self.without(*winner, each)).collect()
    }

    fn without(&mut self, winner: usize, steps: u32) -> f64 {
        let mut known = self.log_v(&self.best, Some(winner));
        if steps >= LEAST {
            let values = self.known.iter().map(|ways| self.log_v(ways, Some(winner)));
            known = values.fold(known, f64::max);
            if self.tried[winner].is_empty()
                && let Some(start) = self.best_known(winner)
            {
                let (deal, _) = self.improved_without(winner, start, steps);
                known = known.max(deal.log_v());
            }
        }
        let mut bound = self.value - self.priced.surplus(winner, self.priced.order[winner][0]);
        if self.best.len() <= FEW {
            let answer = self.search(Some(winner), known, steps);
            if answer.left > 0 {
                return answer.log_v;
            }
            (known, bound) = (answer.log_v, bound.min(answer.bound));
        }
        let gap = self.value - self.log_v(&self.best, None);
        guess(known, bound, gap, TRUST)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::greedy::Greedy;
    use super::super::{Bidder, Table, TableRow};
    use super::*;
    use crate::cluster::{Bundle, Chunks, MachineSpec, Topology, TypeSet};
    use crate::ids::SlotId;

    /// Six bidders with up to five rows each on four machines; by Lehmer's numbers.
    fn draw(seed: u64) -> (FreeSet, Vec<Bidder>) {
        let mut state = seed * 7_919 + 1;
        let mut below = |limit: u64| {
            state = state * 48_271 % 0x7fff_ffff;
            (state % limit) as u32
        };
        let spec = MachineSpec { rack: 0, gpus: 4, slot_gpus: 4 };
        let offer = FreeSet::full(Arc::new(Topology::new(&[spec; 4]).expect("valid")));
        let bidders = (0..6).map(|_| {
            let log_v_empty = -f64::from(below(300)) / 100.0;
            let rows = (0..=below(5)).map(|_| {
                let bundle: Bundle =
                    (0..=below(2)).map(|_| (SlotId(below(4)), 1 + below(3))).collect();
                let gain = f64::from(bundle.gpus() * (20 + below(60))) / 100.0;
                TableRow { bundle, log_v: log_v_empty + gain.ln_1p() }
            });
            Bidder::Table(Table { log_v_empty, rows: rows.collect(), held: Bundle::new() })
        });
        let bidders = bidders.collect();
        (offer, bidders)
    }

    fn with_bids(seed: u64, then: impl FnOnce(&FreeSet, &[Bid<'_>])) {
        let (offer, bidders) = draw(seed);
        let chunks = Chunks::of(&offer, &[], &[TypeSet::ALL]);
        let bid = |bidder| Bid::none(bidder, offer.topology()).on(&offer, &chunks, false);
        let bids: Vec<Bid<'_>> = bidders.iter().map(bid).collect();
        then(&offer, &bids);
    }

    /// The best sum of log V without a bidder, all ways tried.
    fn best(rows: &Rows, out: Option<usize>) -> f64 {
        fn from(rows: &Rows, at: usize, free: &mut Vec<u32>, out: Option<usize>) -> f64 {
            let Some(ways) = rows.ways.get(at) else { return 0.0 };
            if Some(at) == out {
                return from(rows, at + 1, free, out);
            }
            let mut best = f64::NEG_INFINITY;
            for way in ways {
                if !rows.fits(way, free) {
                    continue;
                }
                rows.uses(way).iter().for_each(|(slot, gpus)| free[*slot as usize] -= *gpus);
                best = best.max(way.log_v + from(rows, at + 1, free, out));
                rows.uses(way).iter().for_each(|(slot, gpus)| free[*slot as usize] += *gpus);
            }
            best
        }
        from(rows, 0, &mut rows.offer.clone(), out)
    }

    #[test]
    fn allocations_and_payments_are_those_of_trying_everything() {
        for seed in 0..200 {
            with_bids(seed, |offer, bids| {
                let greedy = Greedy::new(offer, bids).fill();
                let (solution, mut tables) = solve(offer, bids, &greedy);
                let most = best(&tables.priced.rows, None);
                assert!((solution.objective() - most).abs() < 1e-9, "seed {seed}");
                assert!(tables.proven && tables.value >= most - 1e-9, "seed {seed}");
                let all: Vec<usize> = (0..bids.len()).collect();
                for (out, sum) in tables.without_each(&all).into_iter().enumerate() {
                    let most = best(&tables.priced.rows, Some(out));
                    assert!((sum - most).abs() < 1e-9, "seed {seed}: without {out}");
                }
            });
        }
    }

    #[test]
    fn regions_and_detours_from_nothing_come_close_and_give_nothing_twice() {
        let (mut by_regions, mut by_detours) = (0, 0);
        for seed in 0..200 {
            with_bids(seed, |offer, bids| {
                let (_, mut tables) = solve(offer, bids, &Solution::nothing(bids));
                let most = best(&tables.priced.rows, None);
                let nothing = vec![0; bids.len()];
                let mut deal = Deal::new(&tables.priced, &nothing, None);
                let left = deal.improve(&[], NEAR);
                assert!(left > 0 && deal.log_v() <= most + 1e-9, "seed {seed}");
                by_regions += u32::from(deal.log_v() > most - 1e-9);
                (tables.best, tables.known) = (nothing.clone(), vec![nothing]);
                tables.tried.iter_mut().for_each(Vec::clear);
                tables.make_detours();
                for ways in &tables.known {
                    let found = Rows::solution(offer, bids, ways).objective();
                    assert!((found - tables.log_v(ways, None)).abs() < 1e-9, "seed {seed}");
                }
                by_detours += u32::from(tables.log_v(&tables.best, None) > most - 1e-9);
            });
        }
        assert!(by_regions > 190 && by_detours > 190, "{by_regions} {by_detours}");
    }

    #[test]
    fn few_steps_leave_a_bound() {
        for seed in 0..50 {
            with_bids(seed, |offer, bids| {
                let (_, tables) = solve(offer, bids, &Solution::nothing(bids));
                let most = best(&tables.priced.rows, None);
                for steps in [0, 40, 400] {
                    let known = tables.log_v(&vec![0; bids.len()], None);
                    let answer = tables.search(None, known, steps);
                    assert!(answer.bound >= most - 1e-9, "seed {seed}");
                    assert!(answer.log_v <= most + 1e-9, "seed {seed}");
                    let exact = (answer.log_v - most).abs() < 1e-9;
                    assert!(answer.left == 0 || exact, "seed {seed}");
                }
            });
        }
    }
}
