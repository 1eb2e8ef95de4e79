//! A good selection soon: bidder by bidder, the few best beginnings that pack.
//!
//! Beginnings are compared by the least that any completion of them gives up ([`super::search`]).
//! Those that leave as many GPUs and lie alike are one.
//!
//! Cost: O(bidders x width x ways), and a packing for every beginning that is kept. Guarantee: not
//! worse than what is known, and the bound of the knapsack over all bidders.

use super::packing::Packings;
use super::search::{Answer, LEAST_GAIN, Search, Task};

/// Beginnings looked at for one step.
const A_STEP: u32 = 8;

/// The choices of the first bidders.
#[derive(Clone, Copy)]
struct Beginning {
    /// What it gives up at least in the end, and what so far.
    least: f64,
    regret: f64,
    log_v: f64,
    /// GPUs that it leaves.
    gpus: u32,
    packing: u32,
    /// Its place among those of one bidder less, and the way that its last bidder goes.
    before: u32,
    way: u32,
}

/// The best selection of a sweep with so many beginnings, and what no selection is worth more than.
pub(super) fn sweep(task: &Task<'_>, packings: &mut Packings, width: usize) -> (Answer, f64) {
    let mut answer = Answer { objective: task.known, found: None, left: task.steps };
    let gap = task.value - task.known - LEAST_GAIN;
    if gap <= 0.0 {
        return (answer, task.known);
    }
    let mut search = Search::new(task, packings, &answer, gap);
    let least = search.completion[0][task.gpus as usize];
    if least > gap {
        return (answer, task.known);
    }
    let (gpus, packing) = (task.gpus, 0);
    let nothing = Beginning { least, regret: 0.0, log_v: 0.0, gpus, packing, before: 0, way: 0 };
    let mut rows = vec![vec![nothing]];
    for at in 0..search.order.len() {
        let next = search.widen(at, &rows[at], width);
        rows.push(next);
    }
    answer.left = search.left;
    let better = |best: Beginning, one: Beginning| if one.log_v > best.log_v { one } else { best };
    let whole = rows[search.order.len()].iter().copied().reduce(better);
    if let Some(best) = whole.filter(|best| best.log_v > task.known + LEAST_GAIN) {
        answer.objective = best.log_v;
        answer.found = Some((search.choices(&rows, best), best.packing));
    }
    (answer, task.value - least)
}

impl Search<'_> {
    /// Beginnings of one bidder more. Ties: the order of those before, then of the ways.
    fn widen(&mut self, at: usize, row: &[Beginning], width: usize) -> Vec<Beginning> {
        let (bidder, ways) = self.order[at];
        let menu = &self.task.menus.of[bidder];
        let limit = self.gap();
        let mut next: Vec<Beginning> = Vec::new();
        for (before, one) in (0..).zip(row) {
            for (number, way) in (0..).zip(ways) {
                let regret = one.regret + way.regret;
                if regret > limit {
                    break;
                }
                let Some(gpus) = one.gpus.checked_sub(way.gpus) else { continue };
                let least = regret + self.completion[at + 1][gpus as usize];
                if least <= limit {
                    let log_v = one.log_v + menu[way.choice as usize].log_v;
                    let packing = one.packing;
                    next.push(Beginning {
                        least,
                        regret,
                        log_v,
                        gpus,
                        packing,
                        before,
                        way: number,
                    });
                }
            }
        }
        self.left = self.left.saturating_sub(next.len() as u32 / A_STEP);
        next.sort_by(|a, b| a.least.total_cmp(&b.least));
        let mut kept: Vec<Beginning> = Vec::with_capacity(width);
        for one in next {
            if kept.len() == width {
                break;
            }
            let choice = &menu[ways[one.way as usize].choice as usize];
            let Some(packing) = self.pack(one.packing, choice) else { continue };
            // Of those that leave the same, the best came first.
            if !kept.iter().any(|other| (other.packing, other.gpus) == (packing, one.gpus)) {
                kept.push(Beginning { packing, ..one });
            }
        }
        kept
    }

    /// The pattern of each bidder that led to a beginning of all.
    fn choices(&self, rows: &[Vec<Beginning>], mut one: Beginning) -> Vec<Option<usize>> {
        let mut chosen = vec![None; self.task.menus.of.len()];
        for ((bidder, ways), before) in self.order.iter().zip(rows).rev() {
            let choice = ways[one.way as usize].choice;
            chosen[*bidder] = self.task.menus.of[*bidder][choice as usize].pattern;
            one = before[one.before as usize];
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::super::Bid;
    use super::super::Bidder;
    use super::super::few::Few;
    use super::super::few::tests::draw;
    use super::super::prices::Prices;
    use super::super::solution::Solution;
    use super::*;
    use crate::cluster::{Chunks, TypeSet};

    #[test]
    fn wide_sweeps_find_the_best_narrow_ones_no_more_and_none_exceeds_the_bound() {
        let mut best_of_narrow = 0;
        for seed in 0..60 {
            let (offer, bidders) = draw(seed);
            let chunks = Chunks::of(&offer, &[1, 2, 3, 4], &[TypeSet::ALL]);
            let bid = |bidder| Bid::new(bidder, Bidder::patterns(bidder, &offer, &chunks));
            let bids: Vec<Bid<'_>> = bidders.iter().map(bid).collect();
            let known = Solution::nothing(&bids).objective();
            let prices = Prices::zero(bids.len(), &[]);
            let mut few = Few::new(&offer, &chunks, &bids, &prices, known);
            let exact = few.search(None, known, 0.01, 1_000_000).objective;
            let mut swept = |width| {
                let (task, packings) = few.task(None, known, 0.0, 1_000_000);
                let (answer, bound) = sweep(&task, packings, width);
                assert!(bound >= exact - 1e-9, "seed {seed}");
                answer.objective
            };
            assert!((swept(100_000) - exact).abs() < 1e-9, "seed {seed}");
            let narrow = swept(4);
            assert!(narrow <= exact + 1e-9, "seed {seed}");
            best_of_narrow += u32::from(narrow > exact - 1e-9);
        }
        assert!(best_of_narrow > 30, "{best_of_narrow}");
    }
}
