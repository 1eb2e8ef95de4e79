//! What an app's bid rests on, whatever the offer: worked out once a round, for all who ask.

use smallvec::SmallVec;

use crate::app::{AppState, Step, Stopping, Value};
use crate::cluster::{MAX_ROWS, Topology};

/// The steps and figures of an app at one instant.
#[derive(Clone, Debug)]
pub struct Stake {
    /// Its steps in the order of service.
    pub(crate) steps: SmallVec<[Step; 8]>,
    /// What a pace is worth to it.
    pub(crate) value: Value,
    /// The pace of its jobs on what they keep.
    pub(super) pace: f64,
    /// How many jobs want GPUs, when all must end and these are rigid, alike and hold nothing.
    pub(super) alike: Option<usize>,
    /// The most GPUs that one of its jobs can use.
    pub(crate) largest: u32,
}

impl Stake {
    /// Whether some of its jobs could lie closer together than others to its advantage: not equal ones
    /// where GPUs cost the same wherever they lie.
    pub(crate) fn could_mix(&self, prices: &[f64; MAX_ROWS]) -> bool {
        self.alike.is_none() || prices[1..].iter().any(|price| *price > 0.0)
    }
}

impl AppState {
    /// What its bids rest on. Cost: O(steps + jobs log jobs).
    pub fn stake(&self, topology: &Topology) -> Stake {
        Stake {
            steps: self.steps(),
            value: self.value(),
            pace: self.pace(&self.held_rates(topology)),
            alike: self.alike(),
            largest: self.jobs.iter().map(|job| job.max).max().unwrap_or(0),
        }
    }

    fn alike(&self) -> Option<usize> {
        let mut open = self.jobs.iter().filter(|job| job.unmet() > 0);
        let first = open.next().filter(|_| self.stopping == Stopping::All)?;
        let rest = open.try_fold(1, |count, job| job.bids_like(first).then_some(count + 1))?;
        first.bids_like(first).then_some(rest)
    }
}
