//! Who wins what.

use super::Bid;
use crate::app::Placed;

/// What each bidder wins.
#[derive(Clone, Debug)]
pub(super) struct Solution {
    /// Placed bundles, beside the bids.
    pub(super) wins: Vec<Option<Placed>>,
    /// log V of each bidder, won or not.
    pub(super) log_v: Vec<f64>,
    /// No allocation has a larger sum of log V, as far as the solver knows; infinite if it doesn't.
    pub(super) bound: f64,
}

impl Solution {
    /// Nobody wins.
    pub(super) fn nothing(bids: &[Bid<'_>]) -> Self {
        Self {
            wins: bids.iter().map(|_| None).collect(),
            log_v: bids.iter().map(|bid| bid.nothing).collect(),
            bound: f64::INFINITY,
        }
    }

    /// The one with the larger objective; ties: this one.
    pub(super) fn or_better(self, other: Self) -> Self {
        if other.objective() > self.objective() { other } else { self }
    }

    /// The sum of log V, in bidder order; 0 without bidders.
    pub(super) fn objective(&self) -> f64 {
        self.log_v.iter().fold(0.0, |sum, log_v| sum + log_v)
    }

    /// The same of all others than one bidder.
    pub(super) fn objective_of_others(&self, than: usize) -> f64 {
        let others = self.log_v.iter().enumerate().filter(|(at, _)| *at != than);
        others.fold(0.0, |sum, (_, log_v)| sum + log_v)
    }
}
