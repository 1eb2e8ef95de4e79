//! Proportional fairness: disjoint bundles that maximise the sum of log V.
//!
//! Greedy by gain a GPU: the pattern whose log V rises most a GPU is placed first; a winner may
//! trade its bundle for a larger one. Bids of several sizes matter, since gains are convex near
//! zero. Small auctions of explicit tables are solved exactly ([`super::exact`]).
//!
//! Cost: O(wins x (patterns of a bidder + log bidders)) and the placements. Guarantee: feasible,
//! never worse than nothing for anybody, and within the certified gap of the optimum.
//! Ties: fewest GPUs, then pattern order, then bidder order.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::{Bid, exact};
use crate::app::Placed;
use crate::cluster::FreeSet;

/// What each bidder wins.
#[derive(Debug)]
pub(super) struct Solution {
    /// Placed bundles, beside the bids.
    pub(super) wins: Vec<Option<Placed>>,
    /// log V of each bidder, won or not.
    pub(super) log_v: Vec<f64>,
    /// True when no allocation is better.
    pub(super) exact: bool,
}

impl Solution {
    /// Nobody wins.
    pub(super) fn nothing(bids: &[Bid<'_>]) -> Self {
        Self {
            wins: bids.iter().map(|_| None).collect(),
            log_v: bids.iter().map(|bid| bid.bidder.log_v_empty()).collect(),
            exact: false,
        }
    }

    /// The sum of log V, in bidder order; 0 without bidders.
    pub(super) fn objective(&self) -> f64 {
        self.log_v.iter().fold(0.0, |sum, log_v| sum + log_v)
    }

    /// The same without one bidder.
    pub(super) fn objective_without(&self, skip: usize) -> f64 {
        let others = self.log_v.iter().enumerate().filter(|(at, _)| *at != skip);
        others.map(|(_, log_v)| log_v).sum()
    }
}

/// Solves for all bids, or for all but one.
pub(super) fn solve(offer: &FreeSet, bids: &[Bid<'_>], skip: Option<usize>) -> Solution {
    let greedy = Greedy::new(offer, bids, skip).run();
    exact::improve(offer, bids, skip, greedy)
}

struct Greedy<'a> {
    bids: &'a [Bid<'a>],
    free: FreeSet,
    solution: Solution,
    gpus: Vec<u32>,
    failed: Vec<Vec<bool>>,
    queue: BinaryHeap<Candidate>,
}

impl<'a> Greedy<'a> {
    fn new(offer: &FreeSet, bids: &'a [Bid<'a>], skip: Option<usize>) -> Self {
        let mut greedy = Self {
            bids,
            free: offer.clone(),
            solution: Solution::nothing(bids),
            gpus: vec![0; bids.len()],
            failed: bids.iter().map(|bid| vec![false; bid.patterns.len()]).collect(),
            queue: BinaryHeap::new(),
        };
        for bidder in (0..bids.len()).filter(|bidder| Some(*bidder) != skip) {
            greedy.queue.extend(greedy.best_step(bidder));
        }
        greedy
    }

    fn run(mut self) -> Solution {
        while let Some(best) = self.queue.pop() {
            let (bidder, pattern) = (best.bidder, best.pattern);
            if self.gpus_after(bidder, pattern) <= self.free.total() {
                self.try_step(bidder, pattern);
            } else {
                self.failed[bidder][pattern] = true;
            }
            self.queue.extend(self.best_step(bidder));
        }
        self.solution
    }

    /// GPUs beyond those the bidder has won so far.
    fn gpus_after(&self, bidder: usize, pattern: usize) -> u32 {
        self.bids[bidder].patterns[pattern].gpus.saturating_sub(self.gpus[bidder])
    }

    /// The pattern of a bidder with the largest gain a GPU.
    fn best_step(&self, bidder: usize) -> Option<Candidate> {
        let now = self.solution.log_v[bidder];
        let open = self.bids[bidder].patterns.iter().enumerate().filter(|(at, pattern)| {
            !self.failed[bidder][*at]
                && pattern.log_v > now
                && self.gpus_after(bidder, *at) <= self.free.total()
        });
        open.map(|(at, pattern)| Candidate {
            gain: (pattern.log_v - now) / f64::from(self.gpus_after(bidder, at)),
            gpus: pattern.gpus,
            pattern: at,
            bidder,
        })
        .max()
    }

    /// Trades what the bidder has for the pattern, or marks the pattern as not to be had.
    fn try_step(&mut self, bidder: usize, pattern: usize) {
        let bid = &self.bids[bidder];
        let before = self.solution.wins[bidder].take();
        for part in before.iter().flat_map(|win| &win.parts) {
            self.free.give(&part.bundle);
        }
        let placed = bid.bidder.place(&bid.patterns[pattern], &mut self.free);
        self.failed[bidder][pattern] = true;
        if let Some(win) = placed {
            self.solution.log_v[bidder] = win.log_v;
            self.gpus[bidder] = win.gpus();
            self.solution.wins[bidder] = Some(win);
        } else {
            for part in before.iter().flat_map(|win| &win.parts) {
                self.free.take(&part.bundle);
            }
            self.solution.wins[bidder] = before;
        }
    }
}

/// A step that a bidder could take next; the greatest is taken.
#[derive(Debug)]
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
