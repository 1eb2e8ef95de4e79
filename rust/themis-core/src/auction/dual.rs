//! A certified upper bound on the sum of log V, from a few prices.
//!
//! For any prices p >= 0, one a row of [`Chunks`] and one a [`Contest`], D(p) = p . capacity + sum
//! over bidders of max(log V(nothing), max over bundles of log V - p . use) is at least the optimum:
//! the rows relax "each GPU once". D is convex. Each price in turn becomes the best one with the
//! others given, which is exact from the bids' concave hulls; with few bidders, steps of all prices
//! at once follow (subgradients towards the best allocation known, Polyak).
//!
//! Cost: O(patterns x rows) a price or step, [`ROUNDS`] rounds over the prices and [`STEPS`] steps at
//! most. Guarantee: the bound holds whatever was found, since any prices do.

use smallvec::{SmallVec, smallvec};

use super::descent::{Pace, descend};
use super::favourite::Favourite;
use super::prices::{Contest, Prices};
use super::solution::Solution;
use super::{Bid, Choice};
use crate::app::Pattern;
use crate::cluster::{Chunks, FreeSet, MAX_ROWS};

/// Rounds over all prices.
const ROUNDS: u32 = 12;
/// Rounds over all prices and all bidders at most, after those over a sample.
const LAST_ROUNDS: u32 = 3;
/// Bidders of a sample.
const SAMPLE: usize = 512;
/// Steps of all prices at once.
const STEPS: u32 = 60;
/// Steps without progress before the aim is lowered.
const PATIENCE: u32 = 2;
/// The gap a bidder below which a round or a step is not worth its while.
const NEAR_ENOUGH: f64 = 1e-5;

/// Prices, and what they say.
#[derive(Clone, Debug)]
pub(super) struct Dual {
    pub(super) prices: Prices,
    pub(super) value: f64,
    /// What every bidder likes best at them.
    pub(super) favourites: Vec<Favourite>,
}

/// The bound; the solver's own where that is tighter.
pub(super) fn upper_bound(
    offer: &FreeSet,
    chunks: &Chunks,
    bids: &[Bid<'_>],
    solution: &Solution,
    dual: &Dual,
) -> f64 {
    certified(offer, chunks, bids, dual).min(solution.bound).max(solution.objective())
}

/// D at these prices, over every way to serve every bidder.
fn certified(offer: &FreeSet, chunks: &Chunks, bids: &[Bid<'_>], dual: &Dual) -> f64 {
    let more = |(at, bid): (usize, &Bid<'_>)| {
        let most = bid.beyond(offer, chunks, dual.prices.rows())?;
        Some((most - dual.favourites[at].choice.surplus).max(0.0))
    };
    bids.iter().enumerate().filter_map(more).fold(dual.value, |value, more| value + more)
}

/// Prices of a small D, over the patterns of all bidders.
///
/// With many bidders the first rounds look at every k-th only, against its share of the capacity:
/// the prices that balance a large sample nearly balance all.
pub(super) fn minimise(
    offer: &FreeSet,
    chunks: &Chunks,
    bids: &[Bid<'_>],
    known: Option<f64>,
) -> Dual {
    let whole = Market::new(chunks, bids.iter().collect(), 1.0, Contest::all(offer, bids));
    let mut start = Prices::zero(bids.len(), &whole.contests);
    let sampled = bids.len() > 2 * SAMPLE;
    let rounds = if sampled {
        let sample: Vec<&Bid<'_>> = bids.iter().step_by(bids.len() / SAMPLE).collect();
        let share = sample.len() as f64 / bids.len() as f64;
        let sample = Market::new(chunks, sample, share, Vec::new());
        let nothing = Prices::zero(sample.bids.len(), &[]);
        start.set_rows(*sample.balance(nothing, ROUNDS, false).prices.rows());
        whole.clear_contests(&mut start);
        LAST_ROUNDS
    } else {
        ROUNDS
    };
    let mut dual = whole.balance(start, rounds, sampled);
    if let Some(known) = known {
        let prices = whole.descend((&dual.prices, dual.value), known);
        let (favourites, value, _) = whole.favourites(&prices);
        if value < dual.value {
            dual = Dual { prices, value, favourites };
        }
    }
    dual
}

/// Some bidders, and what they compete for.
struct Market<'a> {
    rows: usize,
    bids: Vec<&'a Bid<'a>>,
    capacity: [f64; MAX_ROWS],
    contests: Vec<Contest>,
}

impl<'a> Market<'a> {
    fn new(chunks: &Chunks, bids: Vec<&'a Bid<'a>>, share: f64, contests: Vec<Contest>) -> Self {
        let capacity = chunks.capacity().map(|there| there * share);
        Self { rows: chunks.len(), bids, capacity, contests }
    }

    /// Rounds in which every price in turn becomes the best one, the others given: D never rises.
    /// Where prices start near the best ones, a second round is worth some 1e-5 of log V a bidder, seldom 1e-4.
    fn balance(&self, mut prices: Prices, rounds: u32, near: bool) -> Dual {
        let (mut value, mut favourites) = (f64::INFINITY, Vec::new());
        // The GPUs first: without a price on them all would ask for far too many chunks.
        let mut asked = [0.0; MAX_ROWS];
        asked[0] = f64::INFINITY;
        for _ in 0..rounds {
            self.clear_rows(&mut prices, &asked);
            self.clear_contests(&mut prices);
            let before = value;
            (favourites, value, asked) = self.favourites(&prices);
            let progress = before - value;
            if progress <= NEAR_ENOUGH * self.bids.len() as f64
                || self.is_settled(&prices, &asked, near)
            {
                break;
            }
        }
        Dual { prices, value, favourites }
    }

    /// What everybody likes best, D, and what is asked for of each row.
    fn favourites(&self, prices: &Prices) -> (Vec<Favourite>, f64, [f64; MAX_ROWS]) {
        let mut all = Vec::with_capacity(self.bids.len());
        let (value, asked) = self.sum(prices, |at, bid| {
            let favourite = Favourite::of(bid, at, prices);
            all.push(favourite);
            let Choice { surplus, pattern, .. } = favourite.choice;
            (surplus, pattern.map(|at| &bid.patterns[at]))
        });
        (all, value, asked)
    }

    /// Whether every row that is short has a price, and prices were near the best ones before, or that of
    /// GPUs is the only one: then another round would find it again.
    fn is_settled(&self, prices: &Prices, asked: &[f64; MAX_ROWS], near: bool) -> bool {
        let priced = |row: usize| prices.rows()[row] > 0.0;
        let short = |row: usize| asked[row] > self.capacity[row];
        let alone = self.contests.is_empty() && !(1..self.rows).any(priced);
        (near || alone) && !(1..self.rows).any(|row| !priced(row) && short(row))
    }

    /// The best price in turn of every row that has one, or of which too much is asked for.
    fn clear_rows(&self, prices: &mut Prices, asked: &[f64; MAX_ROWS]) {
        for (row, asked) in asked.iter().enumerate().take(self.rows) {
            if *asked > self.capacity[row] || prices.rows()[row] > 0.0 {
                prices.set_row(row, 0.0);
                let uses = |pattern: &Pattern| pattern.uses.of_row(row);
                let price = self.clear(0..self.bids.len(), uses, self.capacity[row], prices);
                prices.set_row(row, price);
            }
        }
    }

    /// The best toll of every contest in turn.
    fn clear_contests(&self, prices: &mut Prices) {
        for (at, contest) in self.contests.iter().enumerate() {
            prices.set_toll(at, contest, 0.0);
            let uses = |pattern: &Pattern| contest.uses(pattern);
            let bidders = contest.bidders.iter().copied();
            let toll = self.clear(bidders, uses, f64::from(contest.free), prices);
            prices.set_toll(at, contest, toll);
        }
    }

    /// The price at which no more is asked for than there is, the other prices given.
    ///
    /// What a bidder asks for as the price falls are the corners of the upper concave hull of
    /// (use, surplus): the steps of all hulls, steepest first, are handed out until there is no
    /// more.
    fn clear(
        &self,
        bidders: impl Iterator<Item = usize>,
        uses: impl Fn(&Pattern) -> u32,
        left: f64,
        prices: &Prices,
    ) -> f64 {
        let mut steps: Vec<(f64, u32)> = Vec::new();
        let (mut points, mut corners) = (Vec::new(), Vec::new());
        for bidder in bidders {
            let bid = self.bids[bidder];
            points.clear();
            let surplus = |p: &Pattern| (uses(p), p.log_v - prices.cost(bidder, p));
            points.extend(bid.patterns.iter().map(surplus));
            hull(bid.nothing, &mut points, &mut corners);
            let slope = |a: &(u32, f64), b: &(u32, f64)| (b.1 - a.1) / f64::from(b.0 - a.0);
            steps.extend(corners.windows(2).map(|w| (slope(&w[0], &w[1]), w[1].0 - w[0].0)));
        }
        marginal(&mut steps, left)
    }

    /// Steps of all rows' prices at once, for where no price alone can improve: among patterns that a
    /// better allocation than the one known could have.
    fn descend(&self, (prices, value): (&Prices, f64), known: f64) -> Prices {
        let gap = (value - known).max(0.0);
        let near = |(at, bid): (usize, &&'a Bid<'a>)| near(bid, at, prices, gap);
        let near: Vec<(f64, Vec<&Pattern>)> = self.bids.iter().enumerate().map(near).collect();
        let least = NEAR_ENOUGH * self.bids.len() as f64;
        let pace = Pace { steps: STEPS, patience: PATIENCE, keep: 0.0, least };
        let start = (prices.rows()[..self.rows].to_vec(), value);
        let mut at = prices.clone();
        let (rows, _) = descend(start, gap, pace, |rows, excess| {
            at.set_first_rows(rows);
            let (value, asked) = self.sum(&at, |bidder, _| respond(&near[bidder], bidder, &at));
            for ((excess, asked), there) in excess.iter_mut().zip(asked).zip(self.capacity) {
                *excess = asked - there;
            }
            value
        });
        at.set_first_rows(&rows);
        at
    }

    /// The same where everybody answers with a surplus and its pattern.
    fn sum(
        &self,
        prices: &Prices,
        mut answer: impl FnMut(usize, &'a Bid<'a>) -> (f64, Option<&'a Pattern>),
    ) -> (f64, [f64; MAX_ROWS]) {
        let mut value = prices.of_everything(&self.capacity, &self.contests);
        let mut asked = [0.0; MAX_ROWS];
        for (at, bid) in self.bids.iter().copied().enumerate() {
            let (surplus, chosen) = answer(at, bid);
            value += surplus;
            let Some(pattern) = chosen else { continue };
            for (asked, amount) in asked.iter_mut().zip(pattern.uses.rows()) {
                *asked += f64::from(amount);
            }
        }
        (value, asked)
    }
}

/// The slope of the first step, steepest first, for which nothing is left; 0 when all get theirs.
fn marginal(mut steps: &mut [(f64, u32)], mut left: f64) -> f64 {
    let amount = |steps: &[(f64, u32)]| steps.iter().map(|step| f64::from(step.1)).sum::<f64>();
    if amount(steps) <= left {
        return 0.0;
    }
    while steps.len() > 1 {
        let middle = steps.len() / 2;
        steps.select_nth_unstable_by(middle, |a, b| b.0.total_cmp(&a.0));
        let (steep, flat) = steps.split_at_mut(middle);
        let asked = amount(steep);
        if asked > left {
            steps = steep;
        } else {
            (steps, left) = (flat, left - asked);
        }
    }
    steps[0].0
}

/// The corners of the upper concave hull of points, from no use on; uses rise and slopes fall.
fn hull(nothing: f64, points: &mut Vec<(u32, f64)>, corners: &mut Vec<(u32, f64)>) {
    if !points.is_sorted_by_key(|point| point.0) {
        sort_by_use(points);
    }
    corners.clear();
    corners.push((0, nothing));
    for point in points.iter().copied() {
        let last = corners[corners.len() - 1];
        if point.1 <= last.1 {
            continue;
        }
        if point.0 == last.0 {
            corners.pop();
        }
        while let [.., before, last] = corners.as_slice() {
            let run = |a: &(u32, f64), b: &(u32, f64)| f64::from(b.0 - a.0);
            if (last.1 - before.1) * run(before, &point) > (point.1 - before.1) * run(before, last)
            {
                break;
            }
            corners.pop();
        }
        corners.push(point);
    }
}

/// Sorts points by use. Uses are small numbers mostly: then of each the best, in one pass.
fn sort_by_use(points: &mut Vec<(u32, f64)>) {
    let most = points.iter().map(|point| point.0).max().unwrap_or(0) as usize;
    if most > 4 * points.len() {
        return points.sort_unstable_by_key(|point| point.0);
    }
    let mut best: SmallVec<[f64; 64]> = smallvec![f64::NEG_INFINITY; most + 1];
    for (uses, surplus) in points.drain(..) {
        let best = &mut best[uses as usize];
        *best = best.max(surplus);
    }
    points.extend((0..).zip(best).filter(|(_, surplus)| *surplus > f64::NEG_INFINITY));
}

/// What nothing is worth to a bidder, and the patterns that give up so much at most at these prices.
fn near<'a>(bid: &'a Bid<'_>, at: usize, prices: &Prices, gap: f64) -> (f64, Vec<&'a Pattern>) {
    let surplus = |pattern: &Pattern| pattern.log_v - prices.cost(at, pattern);
    let surpluses: Vec<f64> = bid.patterns.iter().map(surplus).collect();
    let most = surpluses.iter().copied().fold(bid.nothing, f64::max);
    let near = bid.patterns.iter().zip(surpluses).filter(|(_, surplus)| most - surplus <= gap);
    (bid.nothing, near.map(|(pattern, _)| pattern).collect())
}

/// The pattern that is worth most above its price, or nothing; ties: the first.
fn respond<'a>(
    (nothing, patterns): &(f64, Vec<&'a Pattern>),
    at: usize,
    prices: &Prices,
) -> (f64, Option<&'a Pattern>) {
    let mut best = (*nothing, None);
    for pattern in patterns {
        let surplus = pattern.log_v - prices.cost(at, pattern);
        if surplus > best.0 {
            best = (surplus, Some(*pattern));
        }
    }
    best
}
