//! Use of the cluster over time, written while it happens.
//!
//! Work begins after a switch, and jobs may be stopped before: changes of what works are known ahead
//! of time and become rows once their instant has passed, so that only those still to come are kept.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::log::UsageColumns;
use crate::seats::WHOLE_MILLI;

/// GPUs that exist and that are held, active and waiting apps.
pub(crate) type Counts = [u32; 4];

/// Rows of use, and what will become rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct UsageLog {
    columns: UsageColumns,
    /// Counts from an instant on, by time.
    noted: VecDeque<(i64, Counts)>,
    /// The last that were noted, and those of the last row.
    last: Option<Counts>,
    counts: Counts,
    /// (instant, change) of the thousandths of GPUs that work.
    working: BinaryHeap<Reverse<(i64, i64)>>,
    productive_milli: i64,
}

impl UsageLog {
    /// Notes the counts after an instant's decision, if they changed.
    pub(crate) fn note(&mut self, at_us: i64, counts: Counts) {
        self.write(at_us);
        if self.last.replace(counts) != Some(counts) {
            self.noted.push_back((at_us, counts));
        }
    }

    /// So many thousandths of GPUs more (or less) work from an instant on, which is not past.
    pub(crate) fn change_work(&mut self, at_us: i64, milli: i64) {
        if milli != 0 {
            self.working.push(Reverse((at_us, milli)));
        }
    }

    /// All rows up to the end of the run.
    pub(crate) fn into_columns(mut self, end_us: i64) -> UsageColumns {
        self.write(end_us + 1);
        self.columns
    }

    /// Writes the rows of all instants before this one.
    fn write(&mut self, until_us: i64) {
        loop {
            let noted = self.noted.front().map(|(at_us, _)| *at_us);
            let change = self.working.peek().map(|Reverse((at_us, _))| *at_us);
            let next = [noted, change].into_iter().flatten().min();
            let Some(at_us) = next.filter(|at_us| *at_us < until_us) else { return };
            let is_noted = noted == Some(at_us);
            if is_noted && let Some((_, counts)) = self.noted.pop_front() {
                self.counts = counts;
            }
            let before = self.productive_milli;
            while let Some(Reverse((_, milli))) =
                self.working.peek().filter(|next| next.0.0 == at_us)
            {
                self.productive_milli += milli;
                self.working.pop();
            }
            if is_noted || before != self.productive_milli {
                self.push(at_us);
            }
        }
    }

    fn push(&mut self, at_us: i64) {
        let [total, used, active, waiting] = self.counts;
        let productive = self.productive_milli.max(0) as f64 / f64::from(WHOLE_MILLI);
        self.columns.at_us.push(at_us);
        self.columns.gpus_total.push(total);
        self.columns.gpus_used.push(used);
        self.columns.gpus_productive.push(productive);
        self.columns.active_apps.push(active);
        self.columns.waiting_apps.push(waiting);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn working_gpus_are_merged_into_the_rows_of_use() {
        let mut log = UsageLog::default();
        log.change_work(10, 3500);
        log.change_work(99, 1);
        log.note(0, [8, 4, 1, 0]);
        log.note(5, [8, 4, 1, 0]);
        log.change_work(20, -3500);
        log.change_work(99, -1);
        log.note(20, [7, 0, 0, 0]);
        assert_eq!(log.working.len(), 3);
        let usage = log.into_columns(50);
        assert_eq!(usage.at_us, vec![0, 10, 20]);
        assert_eq!(usage.gpus_used, vec![4, 4, 0]);
        assert_eq!(usage.gpus_total, vec![8, 8, 7]);
        assert_eq!(usage.gpus_productive, vec![0.0, 3.5, 0.0]);
    }
}
