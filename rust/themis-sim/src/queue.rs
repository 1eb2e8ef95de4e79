//! Timed events that may become void before they are due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Ends of running jobs. A job that is moved or stopped gets a new epoch, which voids its entry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends(BinaryHeap<Reverse<(i64, u32, u32)>>);

impl Ends {
    /// Plans an end: O(log entries).
    pub(crate) fn plan(&mut self, at_us: i64, job: u32, epoch: u32) {
        self.0.push(Reverse((at_us, job, epoch)));
    }

    /// The next valid end, dropping void ones.
    pub(crate) fn next(&mut self, is_valid: impl Fn(u32, u32) -> bool) -> Option<i64> {
        while let Some(Reverse((at_us, job, epoch))) = self.0.peek().copied() {
            if is_valid(job, epoch) {
                return Some(at_us);
            }
            self.0.pop();
        }
        None
    }

    /// Takes the next job that ends at `now` and whose entry is valid; equal times by job number.
    pub(crate) fn pop(&mut self, now_us: i64, is_valid: impl Fn(u32, u32) -> bool) -> Option<u32> {
        if self.next(is_valid)? > now_us {
            return None;
        }
        self.0.pop().map(|Reverse((_, job, _))| job)
    }
}

/// When apps next have an expiring lease. Entries are hints: the leases themselves decide.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expiries(BinaryHeap<Reverse<(i64, u32)>>);

impl Expiries {
    pub(crate) fn plan(&mut self, at_us: i64, app: u32) {
        self.0.push(Reverse((at_us, app)));
    }

    /// The earliest hint.
    pub(crate) fn peek(&self) -> Option<(i64, u32)> {
        self.0.peek().map(|Reverse(entry)| *entry)
    }

    pub(crate) fn pop(&mut self) -> Option<(i64, u32)> {
        self.0.pop().map(|Reverse(entry)| entry)
    }
}
