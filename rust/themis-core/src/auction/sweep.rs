//! Good selections soon: bidder by bidder, the best beginnings that pack.
//!
//! Beginnings are compared by the least that any completion of them gives up ([`super::search`]).
//! Those that leave as many GPUs and ask for the same are one. Bidders with few good ways go first. A
//! sweep of which no beginning is left when it comes to some bidder is tried again with that one
//! first. A narrow sweep precedes one as wide as the steps allow, until nothing was left out.
//!
//! Cost: the steps of the task, counted, never timed, and one of the narrowest sweeps at most.
//! Guarantee: not worse than what is known, and a bound; where both meet, the best selection that packs.

use std::cmp::{Ordering, Reverse};
use std::collections::HashSet;

use super::menus::Way;
use super::packing::{Mixing, Packings};
use super::search::{Answer, LEAST_GAIN, Search, Task, completions};

/// Beginnings that are kept of each bidder: by a first sweep, at most, and without steps.
const NARROW: usize = 16;
const WIDEST: usize = 2_048;
const NARROWEST: usize = 4;
/// Sweeps that may end at a bidder before a wider one is tried.
const TRIES: u32 = 6;
/// Bidders are ordered by what this way gives up: those that have no such way come first.
const FIRM: usize = 3;
/// Beginnings looked at for one step.
const A_STEP: u32 = 8;

/// The choices of the first bidders.
#[derive(Clone, Copy)]
struct Beginning {
    /// What it gives up so far.
    regret: f64,
    log_v: f64,
    /// GPUs that it leaves.
    gpus: u32,
    packing: u32,
    /// Its place among those of one bidder less, and the way that its last bidder goes.
    before: u32,
    way: u32,
}

/// One that could be kept.
#[derive(Clone, Copy)]
struct Next {
    /// What any completion of it gives up.
    least: f64,
    before: u32,
    way: u32,
}

/// The best selection of sweeps, and what no selection is worth more than. `urgent` has the bidders
/// that go first, and takes up those at which a sweep came to an end.
pub(super) fn sweep(
    task: &Task<'_>,
    packings: &mut Packings,
    urgent: &mut Vec<usize>,
) -> (Answer, f64) {
    let mut answer = Answer { objective: task.known, found: None, left: task.steps };
    let gap = task.value - task.known - LEAST_GAIN;
    if gap <= 0.0 {
        return (answer, task.known);
    }
    let mut search = Search::new(task, packings, &answer, gap);
    let (mut width, mut tries) = (NARROW, TRIES);
    let mut bound = task.value - search.completion[0][task.gpus as usize];
    while search.left > 0 && bound > search.best {
        search.hurry(urgent);
        let before = search.left;
        let (left_out, stuck) = search.pass(width);
        bound = bound.min(task.value - left_out).max(search.best);
        if let Some(bidder) = stuck
            && bound > search.best
        {
            urgent.retain(|other| *other != bidder);
            urgent.insert(0, bidder);
            tries -= 1;
            if tries > 0 {
                continue;
            }
            tries = 1;
        }
        let steps = u64::from(before - search.left).max(1);
        let wider = (width as u64 * u64::from(search.left) / steps).min(WIDEST as u64) as usize;
        if wider < 2 * width {
            break;
        }
        width = wider;
    }
    answer.left = search.left;
    if let Some(found) = search.found {
        (answer.objective, answer.found) = (search.best, Some(found));
    }
    let bound = bound.max(answer.objective);
    (answer, bound)
}

impl Search<'_> {
    /// Sweeps once for something better than is known: the least that is given up by what was left
    /// out, and the bidder at which no beginning was left.
    fn pass(&mut self, width: usize) -> (f64, Option<usize>) {
        let gpus = self.task.gpus;
        let (regret, log_v, packing) = (0.0, 0.0, 0);
        let nothing = Beginning { regret, log_v, gpus, packing, before: 0, way: 0 };
        let mut rows = vec![vec![nothing]];
        let (mut left_out, mut nexts) = (f64::INFINITY, Vec::new());
        for at in 0..self.order.len() {
            let width = if self.left == 0 { NARROWEST.min(width) } else { width };
            let (next, out) = self.widen(at, &rows[at], width, &mut nexts);
            left_out = left_out.min(out);
            if next.is_empty() {
                return (left_out, Some(self.order[at].0));
            }
            rows.push(next);
        }
        let better =
            |best: Beginning, one: Beginning| if one.log_v > best.log_v { one } else { best };
        let whole = rows[self.order.len()].iter().copied().reduce(better);
        if let Some(best) = whole.filter(|best| best.log_v > self.best + LEAST_GAIN) {
            self.best = best.log_v;
            self.found = Some((self.choices(&rows, best), best.packing));
        }
        (left_out, None)
    }

    /// Puts these bidders first, then those with few good ways.
    fn hurry(&mut self, urgent: &[usize]) {
        let rank =
            |bidder| urgent.iter().position(|other| *other == bidder).unwrap_or(urgent.len());
        self.order.sort_by_cached_key(|(bidder, ways)| {
            let firm = ways.get(FIRM).map_or(f64::INFINITY, |way| way.regret);
            (ways.len() > 1, rank(*bidder), Reverse(firm.to_bits()))
        });
        self.completion = completions(&self.order, self.task.price, self.task.gpus);
    }

    /// Beginnings of one bidder more, and the least that one gives up that is left out. Ties: the
    /// order of those before, then of the ways.
    fn widen(
        &mut self,
        at: usize,
        row: &[Beginning],
        width: usize,
        nexts: &mut Vec<Next>,
    ) -> (Vec<Beginning>, f64) {
        let (bidder, ways) = self.order[at];
        let limit = self.gap();
        let mut out = f64::INFINITY;
        nexts.clear();
        for (before, one) in (0..).zip(row) {
            for (way, Way { regret, gpus, .. }) in (0..).zip(ways) {
                let regret = one.regret + regret;
                if regret > limit {
                    break;
                }
                let Some(gpus) = one.gpus.checked_sub(*gpus) else { continue };
                let least = regret + self.completion[at + 1][gpus as usize];
                if least <= limit && least < out {
                    nexts.push(Next { least, before, way });
                }
            }
            if nexts.len() >= 4 * width {
                self.left = self.left.saturating_sub(nexts.len() as u32 / A_STEP);
                let (_, first, _) = nexts.select_nth_unstable_by(2 * width, Next::order);
                out = first.least;
                nexts.truncate(2 * width);
            }
        }
        self.left = self.left.saturating_sub(nexts.len() as u32 / A_STEP);
        nexts.sort_unstable_by(Next::order);
        let menu = &self.task.menus.of[bidder];
        let mut kept: Vec<Beginning> = Vec::with_capacity(width.min(nexts.len()));
        let mut seen: HashSet<(u32, u32), Mixing> = HashSet::default();
        for Next { least, before, way } in nexts.iter().copied() {
            if kept.len() == width {
                return (kept, least);
            }
            let one = row[before as usize];
            let Way { regret, gpus, choice } = ways[way as usize];
            let choice = &menu[choice as usize];
            let Some(packing) = self.pack(one.packing, choice) else { continue };
            let (regret, gpus) = (one.regret + regret, one.gpus - gpus);
            // Of those that leave the same, the best came first.
            if seen.insert((packing, gpus)) {
                let log_v = one.log_v + choice.log_v;
                kept.push(Beginning { regret, log_v, gpus, packing, before, way });
            }
        }
        (kept, out)
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

impl Next {
    fn order(&self, other: &Self) -> Ordering {
        let ties = (self.before, self.way).cmp(&(other.before, other.way));
        self.least.total_cmp(&other.least).then(ties)
    }
}

#[cfg(test)]
mod tests {
    use super::super::few::tests::for_each_auction;
    use super::*;

    #[test]
    fn many_steps_lead_to_the_best_few_to_no_more_and_no_bound_is_below_it() {
        let mut best_of_narrow = 0;
        for_each_auction(|seed, few, start| {
            let known = start.log_v(&few.menus, None);
            let exact = few.search(None, known, 0.01, 1_000_000).objective;
            let mut swept = |steps| {
                let (task, packings, urgent) = few.task(None, known, 0.0, steps);
                let (answer, bound) = sweep(&task, packings, urgent);
                assert!(bound >= exact - 1e-9, "seed {seed}");
                answer.objective
            };
            let narrow = swept(1);
            assert!((swept(1_000_000) - exact).abs() < 1e-9, "seed {seed}");
            assert!(narrow <= exact + 1e-9, "seed {seed}");
            best_of_narrow += u32::from(narrow > exact - 1e-9);
        });
        assert!(best_of_narrow > 30, "{best_of_narrow}");
    }
}
