//! Greedy by gain a GPU: the first solver, the filler of the other, and a baseline.
//!
//! The pattern whose log V rises most a GPU is placed first; a winner may trade its bundle for a
//! larger one. Bids of several sizes matter, since gains are convex near zero.
//!
//! Cost: O(wins x (patterns of a bidder + log bidders)) and the placements. Guarantee: feasible,
//! and never worse than what it starts from. Ties: fewest GPUs, then pattern, then bidder order.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use fixedbitset::FixedBitSet;

use super::Bid;
use super::solution::Solution;
use crate::app::Placed;
use crate::cluster::{Fill, FreeSet};

/// Steps of a bidder that fail in a row before the others are put in order: mostly few do.
const SCANS: u32 = 4;

/// A solution under way, and what is still free.
pub(super) struct Greedy<'a> {
    bids: &'a [Bid<'a>],
    free: FreeSet,
    fill: Fill,
    solution: Solution,
    gpus: Vec<u32>,
    /// Patterns that were tried, all bidders' one after another, and where each bidder's begin.
    failed: FixedBitSet,
    first: Vec<usize>,
    /// Steps of a bidder that failed since it last won something, and after some of them all others.
    others: Vec<(u32, BinaryHeap<Candidate>)>,
    queue: BinaryHeap<Candidate>,
}

impl<'a> Greedy<'a> {
    /// Nobody has won anything yet.
    pub(super) fn new(offer: &FreeSet, bids: &'a [Bid<'a>]) -> Self {
        let mut patterns = 0;
        let begins = |bid: &Bid<'_>| {
            patterns += bid.patterns.len();
            patterns - bid.patterns.len()
        };
        let first = bids.iter().map(begins).collect();
        Self {
            bids,
            free: offer.clone(),
            fill: Fill::Fullest,
            solution: Solution::nothing(bids),
            gpus: vec![0; bids.len()],
            failed: FixedBitSet::with_capacity(patterns),
            first,
            others: vec![(0, BinaryHeap::new()); bids.len()],
            queue: BinaryHeap::new(),
        }
    }

    /// The same with the machines of a rack in this order.
    pub(super) fn filling(self, fill: Fill) -> Self {
        Self { fill, ..self }
    }

    /// What each bidder has won already, with what is free beside it.
    pub(super) fn resume(offer: &FreeSet, bids: &'a [Bid<'a>], solution: Solution) -> Self {
        let mut greedy = Self::new(offer, bids);
        for (bidder, win) in solution.wins.into_iter().enumerate() {
            greedy.put_back(bidder, win);
        }
        greedy
    }

    /// Who has what.
    pub(super) fn solution(&self) -> &Solution {
        &self.solution
    }

    /// GPUs that a bidder has won.
    pub(super) fn gpus(&self, bidder: usize) -> u32 {
        self.gpus[bidder]
    }

    /// Takes back what a bidder has won.
    pub(super) fn release(&mut self, bidder: usize) -> Option<Placed> {
        let win = self.solution.wins[bidder].take()?;
        let who = self.bids[bidder].bidder;
        win.parts.iter().for_each(|part| who.give(&mut self.free, part));
        self.solution.log_v[bidder] = self.bids[bidder].nothing;
        self.gpus[bidder] = 0;
        Some(win)
    }

    /// Gives a bidder that has nothing a win whose GPUs are free.
    pub(super) fn put_back(&mut self, bidder: usize, win: Option<Placed>) {
        let Some(win) = win else { return };
        let who = self.bids[bidder].bidder;
        win.parts.iter().for_each(|part| who.take(&mut self.free, part));
        self.note(bidder, win);
    }

    /// Notes a win whose GPUs were taken.
    fn note(&mut self, bidder: usize, win: Placed) {
        self.solution.log_v[bidder] = win.log_v;
        self.gpus[bidder] = win.gpus();
        self.solution.wins[bidder] = Some(win);
    }

    /// GPUs that nobody has.
    pub(super) fn idle(&self) -> f64 {
        f64::from(self.free.total())
    }

    /// Raises every bidder from where it stands, until nothing more can be had.
    pub(super) fn fill(self) -> Solution {
        self.fill_without(None)
    }

    /// The same with a bidder left out.
    pub(super) fn fill_without(mut self, out: Option<usize>) -> Solution {
        if self.free.total() == 0 {
            return self.solution;
        }
        self.failed.clear();
        for bidder in (0..self.bids.len()).filter(|bidder| Some(*bidder) != out) {
            self.queue.extend(self.best_step(bidder));
        }
        while let Some(best) = self.queue.pop() {
            let (bidder, pattern) = (best.bidder, best.pattern);
            let fits = self.gpus_after(bidder, pattern) <= self.free.total();
            let next = if fits && self.try_step(bidder, pattern) {
                self.others[bidder] = (0, BinaryHeap::new());
                self.best_step(bidder)
            } else {
                self.failed.insert(self.first[bidder] + pattern);
                self.next_step(bidder)
            };
            self.queue.extend(next);
        }
        self.solution
    }

    /// GPUs beyond those the bidder has won so far.
    fn gpus_after(&self, bidder: usize, pattern: usize) -> u32 {
        self.bids[bidder].patterns[pattern].gpus().saturating_sub(self.gpus[bidder])
    }

    /// The pattern of a bidder with the largest gain a GPU.
    fn best_step(&self, bidder: usize) -> Option<Candidate> {
        self.steps(bidder).max()
    }

    /// The same of a bidder that has what it had when a step failed.
    fn next_step(&mut self, bidder: usize) -> Option<Candidate> {
        self.others[bidder].0 += 1;
        if self.others[bidder].0 < SCANS {
            return self.best_step(bidder);
        }
        if self.others[bidder].0 == SCANS {
            self.others[bidder].1 = self.steps(bidder).collect();
        }
        self.others[bidder].1.pop()
    }

    /// The patterns that a bidder could have instead of what it has.
    fn steps(&self, bidder: usize) -> impl Iterator<Item = Candidate> {
        let now = self.solution.log_v[bidder];
        let bid = &self.bids[bidder];
        let patterns = if now >= bid.most { &[][..] } else { &bid.patterns[..] };
        let open = patterns.iter().enumerate().filter(move |(at, pattern)| {
            pattern.log_v > now
                && self.gpus_after(bidder, *at) <= self.free.total()
                && !self.failed.contains(self.first[bidder] + *at)
        });
        open.map(move |(at, pattern)| Candidate {
            gain: (pattern.log_v - now) / f64::from(self.gpus_after(bidder, at)),
            gpus: pattern.gpus(),
            pattern: at,
            bidder,
        })
    }

    /// Trades what the bidder has for the pattern if it can be had; marks it as tried.
    pub(super) fn try_step(&mut self, bidder: usize, pattern: usize) -> bool {
        let bid = &self.bids[bidder];
        let before = self.release(bidder);
        let placed = bid.place(pattern, &mut self.free, self.fill);
        self.failed.insert(self.first[bidder] + pattern);
        let is_placed = placed.is_some();
        match placed {
            Some(win) => self.note(bidder, win),
            None => self.put_back(bidder, before),
        }
        is_placed
    }
}

/// A step that a bidder could take next; the greatest is taken.
#[derive(Clone, Debug)]
struct Candidate {
    gain: f64,
    gpus: u32,
    pattern: usize,
    bidder: usize,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        let ties = |c: &Self| Reverse((c.gpus, c.pattern, c.bidder));
        self.gain.total_cmp(&other.gain).then_with(|| ties(self).cmp(&ties(other)))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

#[cfg(test)]
mod tests {
    use super::super::few::tests::draw;
    use super::*;
    use crate::cluster::{Chunks, TypeSet};

    /// Who has what when every step is looked for anew; whether steps failed often in a row.
    fn by_scans(offer: &FreeSet, bids: &[Bid<'_>]) -> (Solution, bool) {
        let mut greedy = Greedy::new(offer, bids);
        let mut queue: BinaryHeap<Candidate> =
            (0..bids.len()).filter_map(|bidder| greedy.best_step(bidder)).collect();
        let (mut in_vain, mut often) = (vec![0; bids.len()], false);
        while let Some(Candidate { bidder, pattern, .. }) = queue.pop() {
            let fits = greedy.gpus_after(bidder, pattern) <= greedy.free.total();
            if fits && greedy.try_step(bidder, pattern) {
                in_vain[bidder] = 0;
            } else {
                greedy.failed.insert(greedy.first[bidder] + pattern);
                in_vain[bidder] += 1;
                often |= in_vain[bidder] > SCANS;
            }
            queue.extend(greedy.best_step(bidder));
        }
        (greedy.solution, often)
    }

    #[test]
    fn steps_put_in_order_are_taken_like_steps_looked_for_anew() {
        let mut often = 0;
        for seed in 0..2_000 {
            let (offer, bidders) = draw(seed);
            let chunks = Chunks::of(&offer, &[1, 2, 3, 4], &[TypeSet::ALL]);
            let bid = |bidder| Bid::none(bidder, offer.topology()).on(&offer, &chunks, false);
            let bids: Vec<Bid<'_>> = bidders.iter().map(bid).collect();
            let (scanned, many) = by_scans(&offer, &bids);
            assert_eq!(Greedy::new(&offer, &bids).fill().log_v, scanned.log_v, "seed {seed}");
            often += u32::from(many);
        }
        assert!(often > 5, "{often}");
    }
}
