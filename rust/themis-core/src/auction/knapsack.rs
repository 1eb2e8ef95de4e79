//! The last GPUs: an exact dynamic programme over the bidders that hesitate.
//!
//! At the dual's prices nearly every bidder has a clear best pattern; together these ask for a few
//! GPUs more or less than there are. The bidders with the least regret for another pattern, the
//! core, settle the difference: the programme finds, for every total change in GPUs, the least sum
//! of regrets. Without it the marginal bidder would lose its whole last bundle.
//!
//! Cost: O(core x choices that matter x window), which are a few a bidder. Guarantee: optimal within the core and window for
//! the GPU row; chunk rows enter by their prices only.

use super::dual::Dual;
use super::favourite::WINDOW;
use super::prices::Prices;
use super::{Bid, Choice};
use crate::cluster::Chunks;

/// Bidders in the core at most.
const CORE: usize = 160;
/// Bidders of a part of the core that shows which choices matter.
const PART: usize = 12;
/// Sums of logs that differ by less are equal.
const ROUNDING: f64 = 1e-9;

/// A pattern of each bidder, or nothing.
pub(super) type Selection = Vec<Option<usize>>;

/// Another choice of a bidder: change in GPUs, regret, pattern.
#[derive(Clone, Copy, Debug)]
struct Other {
    gpus: i32,
    regret: f64,
    pattern: Option<usize>,
}

/// A bidder of the core: its other choices, by GPUs.
#[derive(Clone, Debug)]
struct Hesitant {
    bidder: usize,
    others: Vec<Other>,
}

/// What every bidder would choose at the prices, and what the core would change.
#[derive(Clone, Debug)]
pub(super) struct Table {
    core: Vec<Hesitant>,
    /// GPUs and surplus of every bidder's best choice.
    best: Vec<(u32, f64)>,
    /// GPUs left over when everybody gets its best choice; negative when there are too few.
    slack: i64,
    price: f64,
}

/// Least sum of regrets for every total change in GPUs.
type Regrets = Vec<f64>;

impl Table {
    /// The table of these bidders at these prices, and the pattern that each likes best.
    pub(super) fn new(chunks: &Chunks, bids: &[Bid<'_>], dual: &Dual) -> (Self, Selection) {
        let Dual { prices, favourites, .. } = dual;
        let bests = || favourites.iter().map(|favourite| &favourite.choice);
        let regrets = favourites.iter().enumerate().map(|(at, favourite)| (favourite.regret, at));
        let mut regrets: Vec<(f64, usize)> = regrets.collect();
        let least = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        if regrets.len() > CORE {
            regrets.select_nth_unstable_by(CORE, least);
            regrets.truncate(CORE);
        }
        regrets.sort_unstable_by(least);
        let hesitant = |(_, bidder): &(f64, usize)| Hesitant {
            bidder: *bidder,
            others: others(&bids[*bidder], *bidder, prices, &favourites[*bidder].choice),
        };
        let core = regrets.iter().map(hesitant).collect();
        let asked: i64 = bests().map(|best| i64::from(best.gpus)).sum();
        let slack = chunks.capacity()[0] as i64 - asked;
        let selection = bests().map(|best| best.pattern).collect();
        let best = bests().map(|best| (best.gpus, best.surplus)).collect();
        (Self { core, best, slack, price: prices.gpu() }, selection)
    }

    /// A selection that asks for no more GPUs than there are, worth most at these prices: what
    /// everybody likes best, with the changes that the core makes.
    pub(super) fn select(&self, mut selection: Selection) -> Selection {
        for (hesitant, other) in self.core.iter().zip(self.settle()) {
            if let Some(other) = other {
                selection[hesitant.bidder] = other.pattern;
            }
        }
        selection
    }
}

/// For every other count of GPUs within the window, fewest first, the choice of least regret. Ties:
/// pattern order.
fn others(bid: &Bid<'_>, bidder: usize, prices: &Prices, best: &Choice) -> Vec<Other> {
    let mut by_change: Vec<Option<Other>> = Vec::new();
    for choice in bid.choices(bidder, prices) {
        let gpus = choice.gpus as i32 - best.gpus as i32;
        if gpus == 0 || gpus.abs() > WINDOW {
            continue;
        }
        let at = (gpus + WINDOW) as usize;
        if by_change.len() <= at {
            by_change.resize(at + 1, None);
        }
        let other = Other { gpus, regret: best.surplus - choice.surplus, pattern: choice.pattern };
        match &mut by_change[at] {
            Some(known) if known.regret <= other.regret => {}
            known => *known = Some(other),
        }
    }
    by_change.into_iter().flatten().collect()
}

const WIDTH: usize = (2 * WINDOW + 1) as usize;
const ZERO: usize = WINDOW as usize;

impl Table {
    /// For every bidder of the core, the change that it makes (or none) such that no more GPUs are
    /// used than there are, and GPUs at their price less regrets are worth most.
    fn settle(&self) -> Vec<Option<Other>> {
        let core = self.useful(std::iter::once((None, self.slack)));
        let mut regrets = nobody();
        let mut taken: Vec<Vec<u8>> = Vec::with_capacity(core.len());
        for hesitant in &core {
            let (next, choice) = add_noting(&regrets, hesitant);
            regrets = next;
            taken.push(choice);
        }
        let mut changes = vec![None; core.len()];
        let Some((mut at, _)) = self.peak(&regrets, self.slack) else { return changes };
        for (bidder, hesitant) in core.iter().enumerate().rev() {
            let choice = taken[bidder][at] as usize;
            if choice > 0 {
                let other = hesitant.others[choice - 1];
                at = (at as i32 - other.gpus) as usize;
                changes[bidder] = Some(other);
            }
        }
        changes
    }

    /// The core with those choices only that a best total change may contain: within each of these
    /// slacks, the bidder beside it left out.
    ///
    /// No change is worth more than the slack at the GPUs' price, less its regrets. What a part of
    /// the core can do alone is worth something, so that the best change regrets no more than the
    /// difference, and neither does a choice in it. Two parts serve: a bidder is in one at most.
    fn useful(&self, slacks: impl Iterator<Item = (Option<usize>, i64)>) -> Vec<Hesitant> {
        let known = |skip: usize| {
            let part = self.core.iter().take(2 * PART).skip(skip).step_by(2);
            self.peaks(&part.fold(nobody(), |sum, one| add(&sum, one)))
        };
        let parts = [known(0), known(1)];
        let second = |bidder| {
            let first = self.core.iter().take(2 * PART).step_by(2);
            usize::from(first.into_iter().any(|hesitant| Some(hesitant.bidder) == bidder))
        };
        let at_most = |(bidder, slack)| {
            let worth = peak_within(&parts[second(bidder)], slack);
            self.price * slack as f64 - worth.unwrap_or(f64::NEG_INFINITY)
        };
        let most = slacks.map(at_most).fold(0.0, f64::max) + ROUNDING;
        let pruned = |hesitant: &Hesitant| {
            let others = hesitant.others.iter().filter(|other| other.regret <= most);
            Hesitant { bidder: hesitant.bidder, others: others.copied().collect() }
        };
        self.core.iter().map(pruned).collect()
    }

    /// The best total change within the slack, and what it is worth.
    fn peak(&self, regrets: &Regrets, slack: i64) -> Option<(usize, f64)> {
        let mut best: Option<(usize, f64)> = None;
        for (at, regret) in regrets.iter().enumerate() {
            let change = at as i64 - ZERO as i64;
            if change > slack || !regret.is_finite() {
                continue;
            }
            let worth = self.price * change as f64 - regret;
            if best.is_none_or(|(_, most)| worth > most) {
                best = Some((at, worth));
            }
        }
        best
    }

    /// The worth of the best total change within every slack of the window.
    fn peaks(&self, regrets: &Regrets) -> Vec<f64> {
        let mut best = f64::NEG_INFINITY;
        let worth = |(change, regret): (i32, &f64)| self.price * f64::from(change) - regret;
        let most = |worth: f64| {
            best = best.max(worth);
            best
        };
        (-WINDOW..=WINDOW).zip(regrets).map(worth).map(most).collect()
    }

    /// By how much the others are worse off with each of these bidders than without it, in log:
    /// log c, from the table with everybody and the tables that leave one out. `log_v` is the
    /// bidder's value in the allocation.
    pub(super) fn log_payments(&self, bidders: &[(usize, f64)]) -> Vec<f64> {
        let slack_without = |bidder: usize| self.slack + i64::from(self.best[bidder].0);
        let slacks = bidders.iter().map(|(bidder, _)| (Some(*bidder), slack_without(*bidder)));
        let core = self.useful(slacks.chain([(None, self.slack)]));
        let all = self.peaks(&core.iter().fold(nobody(), |sum, one| add(&sum, one)));
        let Some(worth) = peak_within(&all, self.slack) else { return vec![0.0; bidders.len()] };
        let mut without: Vec<Option<f64>> = vec![None; self.best.len()];
        let mut wanted = vec![false; self.best.len()];
        for (bidder, _) in bidders {
            without[*bidder] = peak_within(&all, slack_without(*bidder));
            wanted[*bidder] = true;
        }
        self.leave_out(&core, &nobody(), &wanted, &mut without);
        let payment = |(bidder, log_v): &(usize, f64)| {
            let (gpus, surplus) = self.best[*bidder];
            let rest = without[*bidder].unwrap_or(worth);
            (self.price * f64::from(gpus) + worth + surplus - log_v - rest).min(0.0)
        };
        bidders.iter().map(payment).collect()
    }

    /// Fills in, for the wanted bidders of a part of the core, the worth of the table without each:
    /// `outside` has everybody outside the part. Halves: O(core log core) additions in all.
    fn leave_out(
        &self,
        part: &[Hesitant],
        outside: &Regrets,
        wanted: &[bool],
        without: &mut [Option<f64>],
    ) {
        if !part.iter().any(|hesitant| wanted[hesitant.bidder]) {
            return;
        }
        if let [one] = part {
            let slack = self.slack + i64::from(self.best[one.bidder].0);
            without[one.bidder] = self.peak(outside, slack).map(|peak| peak.1);
            return;
        }
        let (left, right) = part.split_at(part.len() / 2);
        let with = |more: &[Hesitant]| more.iter().fold(outside.clone(), |sum, one| add(&sum, one));
        self.leave_out(left, &with(right), wanted, without);
        self.leave_out(right, &with(left), wanted, without);
    }
}

/// The worth of the best total change within a slack; `None` if none is.
fn peak_within(peaks: &[f64], slack: i64) -> Option<f64> {
    let at = usize::try_from(slack + i64::from(WINDOW)).ok()?;
    Some(peaks[at.min(WIDTH - 1)]).filter(|worth| worth.is_finite())
}

/// The table of an empty core.
fn nobody() -> Regrets {
    let mut regrets = vec![f64::INFINITY; WIDTH];
    regrets[ZERO] = 0.0;
    regrets
}

/// The table with one more bidder.
fn add(regrets: &Regrets, one: &Hesitant) -> Regrets {
    let mut next = regrets.clone();
    for other in &one.others {
        let (before, after) = shifted(regrets, &mut next, other.gpus);
        for (so_far, sum) in before.iter().zip(after) {
            let more = so_far + other.regret;
            *sum = if more < *sum { more } else { *sum };
        }
    }
    next
}

/// The same, and which choice led to each total: 0, or that many in the order of the others.
fn add_noting(regrets: &Regrets, one: &Hesitant) -> (Regrets, Vec<u8>) {
    let mut next = regrets.clone();
    let mut chosen = vec![0; WIDTH];
    for (choice, other) in (1..=u8::MAX).zip(&one.others) {
        let (before, after) = shifted(regrets, &mut next, other.gpus);
        let from = other.gpus.max(0) as usize;
        for ((so_far, sum), chosen) in before.iter().zip(after).zip(&mut chosen[from..]) {
            let more = so_far + other.regret;
            if more < *sum {
                (*sum, *chosen) = (more, choice);
            }
        }
    }
    (next, chosen)
}

/// The totals before a change and, beside them, those after it.
fn shifted<'a>(before: &'a [f64], after: &'a mut [f64], gpus: i32) -> (&'a [f64], &'a mut [f64]) {
    let by = gpus.unsigned_abs() as usize;
    let width = before.len() - by;
    if gpus >= 0 {
        (&before[..width], &mut after[by..])
    } else {
        (&before[by..], &mut after[..width])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hesitant(bidder: usize, others: &[(i32, f64)]) -> Hesitant {
        let others: Vec<Other> = others
            .iter()
            .map(|(gpus, regret)| Other { gpus: *gpus, regret: *regret, pattern: None })
            .collect();
        Hesitant { bidder, others }
    }

    fn table(slack: i64) -> Table {
        let core = vec![
            hesitant(0, &[(-4, 0.5), (2, 0.1)]),
            hesitant(1, &[(-2, 0.2), (-4, 0.9)]),
            hesitant(2, &[(-1, 0.3), (4, 0.05)]),
        ];
        Table { core, best: vec![(4, 1.0), (4, 1.0), (1, 1.0), (2, 1.0)], slack, price: 0.1 }
    }

    /// Every combination of changes.
    fn brute(table: &Table, skip: Option<usize>, slack: i64) -> f64 {
        let core: Vec<&Hesitant> = table.core.iter().filter(|h| Some(h.bidder) != skip).collect();
        let mut sums = vec![(0, 0.0)];
        for one in core {
            let before = sums.clone();
            for other in &one.others {
                sums.extend(before.iter().map(|(g, r)| (g + other.gpus, r + other.regret)));
            }
        }
        let fits = sums.iter().filter(|(gpus, _)| i64::from(*gpus) <= slack);
        fits.map(|(gpus, regret)| 0.1 * f64::from(*gpus) - regret).fold(f64::NEG_INFINITY, f64::max)
    }

    #[test]
    fn the_programme_finds_the_best_combination() {
        for slack in -9..9 {
            let table = table(slack);
            let all = table.core.iter().fold(nobody(), |sum, one| add(&sum, one));
            let worth = table.peak(&all, slack).map(|peak| peak.1).expect("some change fits");
            assert!((worth - brute(&table, None, slack)).abs() < 1e-12, "slack {slack}");
            let changes = table.settle();
            let gpus: i32 = changes.iter().flatten().map(|other| other.gpus).sum();
            let regret: f64 = changes.iter().flatten().map(|other| other.regret).sum();
            assert!(i64::from(gpus) <= slack);
            assert!((0.1 * f64::from(gpus) - regret - worth).abs() < 1e-12);
        }
    }

    #[test]
    fn leaving_one_out_is_solving_again_without_it() {
        for slack in -5..6 {
            let table = table(slack);
            let values: Vec<(usize, f64)> = (0..4).map(|bidder| (bidder, 5.0)).collect();
            let payments = table.log_payments(&values);
            for ((bidder, log_v), payment) in values.iter().zip(payments) {
                let (gpus, surplus) = table.best[*bidder];
                let rest = brute(&table, Some(*bidder), slack + i64::from(gpus));
                let with = brute(&table, None, slack);
                let want = 0.1 * f64::from(gpus) + with + surplus - log_v - rest;
                assert!((payment - want.min(0.0)).abs() < 1e-12, "slack {slack} bidder {bidder}");
            }
        }
    }
}
