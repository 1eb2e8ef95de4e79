//! The event log: everything that is reported is computed from these columns.

use crate::capacity::Change;
use crate::cause::Cause;
use crate::cause::EndedBy;
use crate::plan::AuctionRecord;
use crate::seats::WHOLE_MILLI;

/// One lease on adjacent GPUs of one slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseRow {
    pub(crate) app: u32,
    pub(crate) machine: u32,
    pub(crate) slot: u32,
    pub(crate) gpu_first: u32,
    pub(crate) gpus: u32,
    pub(crate) start_us: i64,
    pub(crate) end_us: i64,
    pub(crate) cause: Cause,
    pub(crate) renewals: u32,
    pub(crate) ended_by: EndedBy,
    /// Thousandths of each GPU.
    pub(crate) milli: u32,
}

/// Lease rows in the order in which they ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaseLog(Vec<LeaseRow>);

impl LeaseLog {
    pub(crate) fn push(&mut self, row: LeaseRow) {
        self.0.push(row);
    }

    #[cfg(test)]
    pub(crate) fn rows(&self) -> &[LeaseRow] {
        &self.0
    }

    /// Columns in the order in which the leases began; ties by machine and GPU.
    fn into_columns(mut self) -> LeaseColumns {
        self.0.sort_unstable_by_key(|row| (row.start_us, row.machine, row.gpu_first, row.end_us));
        let mut columns = LeaseColumns::default();
        for row in self.0 {
            columns.app.push(row.app);
            columns.machine.push(row.machine);
            columns.slot.push(row.slot);
            columns.gpu_first.push(row.gpu_first);
            columns.gpus.push(row.gpus);
            columns.start_us.push(row.start_us);
            columns.end_us.push(row.end_us);
            columns.cause.push(row.cause as u8);
            columns.renewals.push(row.renewals);
            columns.ended_by.push(row.ended_by as u8);
            columns.milli.push(row.milli);
        }
        columns
    }
}

/// Leases: (app, machine, slot and first GPU within the machine, GPUs, from, to, cause, ...).
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)] // one vector a column; the names say it
pub struct LeaseColumns {
    pub app: Vec<u32>,
    pub machine: Vec<u32>,
    pub slot: Vec<u32>,
    pub gpu_first: Vec<u32>,
    pub gpus: Vec<u32>,
    pub start_us: Vec<i64>,
    pub end_us: Vec<i64>,
    pub cause: Vec<u8>,
    pub renewals: Vec<u32>,
    pub ended_by: Vec<u8>,
    pub milli: Vec<u32>,
}

/// Auctions, one row each.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)] // one vector a column; the names say it
pub struct AuctionColumns {
    pub at_us: Vec<i64>,
    pub offered_gpus: Vec<u32>,
    pub active_apps: Vec<u32>,
    pub bidders: Vec<u32>,
    pub winners: Vec<u32>,
    pub leftover_gpus: Vec<u32>,
    pub min_c: Vec<f64>,
    pub mean_c: Vec<f64>,
    pub objective: Vec<f64>,
    pub upper_bound: Vec<f64>,
    pub gap: Vec<f64>,
}

/// Use of the cluster: one row a change, valid until the next.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)] // one vector a column; the names say it
pub struct UsageColumns {
    pub at_us: Vec<i64>,
    pub gpus_total: Vec<u32>,
    pub gpus_used: Vec<u32>,
    pub gpus_productive: Vec<f64>,
    pub active_apps: Vec<u32>,
    pub waiting_apps: Vec<u32>,
}

/// Changes of what machines have: (from when, machine, GPUs, cause).
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)] // one vector a column; the names say it
pub struct CapacityColumns {
    pub at_us: Vec<i64>,
    pub machine: Vec<u32>,
    pub gpus: Vec<u32>,
    pub cause: Vec<u8>,
}

/// Apps, in their order; -1 where an instant never came, NaN where a figure is undefined.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)] // one vector a column; the names say it
pub struct AppColumns {
    pub first_gpu_us: Vec<i64>,
    pub end_us: Vec<i64>,
    pub gpu_us: Vec<f64>,
    pub useful_gpu_us: Vec<f64>,
    pub slowed_gpu_us: Vec<f64>,
    pub switching_gpu_us: Vec<f64>,
    pub lost_gpu_us: Vec<f64>,
    pub n_avg: Vec<f64>,
    pub gpus_avg: Vec<f64>,
    pub t_id_s: Vec<f64>,
    pub t_sh_s: Vec<f64>,
    pub t_alone_s: Vec<f64>,
    pub placement_score: Vec<f64>,
}

/// Jobs, in their order; `phase` numbers: 2 done, 3 killed, 4 infeasible, 5 unfinished,
/// 7 rejected, 8 failed.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)] // one vector a column; the names say it
pub struct JobColumns {
    pub phase: Vec<u8>,
    pub start_us: Vec<i64>,
    pub end_us: Vec<i64>,
    pub gpu_us: Vec<f64>,
    pub work_gpu_us: Vec<f64>,
    pub preemptions: Vec<u32>,
    pub migrations: Vec<u32>,
    pub promised_us: Vec<i64>,
    pub failures: Vec<u32>,
    pub lost_gpu_us: Vec<f64>,
    /// Why its app's scheduler ended it: a position in `reasons`, of which the first is empty.
    pub reason: Vec<u32>,
    pub reasons: Vec<String>,
}

/// What a run leaves behind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventLog {
    /// Leases by start.
    pub leases: LeaseColumns,
    /// Auctions by time.
    pub auctions: AuctionColumns,
    /// Use of the cluster by time.
    pub usage: UsageColumns,
    /// Changes of the cluster's capacity by time.
    pub capacity: CapacityColumns,
    /// Apps in their order.
    pub apps: AppColumns,
    /// Jobs in their order.
    pub jobs: JobColumns,
    /// When the run ended.
    pub end_us: i64,
}

/// Collects rows during a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) leases: LeaseLog,
    auctions: AuctionColumns,
    usage: UsageColumns,
    capacity: CapacityColumns,
    /// (instant, change) of the thousandths of GPUs that work.
    working: Vec<(i64, i64)>,
}

impl Recorder {
    pub(crate) fn auction(&mut self, at_us: i64, offered: u32, active: u32, row: &AuctionRecord) {
        let columns = &mut self.auctions;
        columns.at_us.push(at_us);
        columns.offered_gpus.push(offered);
        columns.active_apps.push(active);
        columns.bidders.push(row.bidders);
        columns.winners.push(row.winners);
        columns.leftover_gpus.push(row.leftover_gpus);
        columns.min_c.push(row.min_c);
        columns.mean_c.push(row.mean_c);
        columns.objective.push(row.objective);
        columns.upper_bound.push(row.upper_bound);
        columns.gap.push(row.gap);
    }

    /// Notes that a machine has so many GPUs from now on.
    pub(crate) fn capacity(&mut self, at_us: i64, change: &Change) {
        let columns = &mut self.capacity;
        columns.at_us.push(at_us);
        columns.machine.push(change.machine);
        columns.gpus.push(change.gpus);
        columns.cause.push(change.cause as u8);
    }

    /// Notes the use of the cluster after an instant's decision, if it changed: GPUs that exist and
    /// that are held, active and waiting apps.
    pub(crate) fn usage(&mut self, at_us: i64, total: u32, used: u32, active: u32, waiting: u32) {
        let columns = &mut self.usage;
        let same = columns.gpus_total.last() == Some(&total)
            && columns.gpus_used.last() == Some(&used)
            && columns.active_apps.last() == Some(&active)
            && columns.waiting_apps.last() == Some(&waiting);
        if same {
            return;
        }
        columns.at_us.push(at_us);
        columns.gpus_total.push(total);
        columns.gpus_used.push(used);
        columns.active_apps.push(active);
        columns.waiting_apps.push(waiting);
    }

    /// So many thousandths of GPUs more work from an instant on.
    pub(crate) fn start_work(&mut self, (at_us, milli): (i64, i64)) {
        if milli > 0 {
            self.working.push((at_us, milli));
        }
    }

    /// So many stop working then, or never will have worked.
    pub(crate) fn stop_work(&mut self, (at_us, milli): (i64, i64)) {
        if milli > 0 {
            self.working.push((at_us, -milli));
        }
    }

    /// The columns that do not belong to apps and jobs.
    pub(crate) fn into_log(mut self, end_us: i64) -> EventLog {
        self.working.sort_unstable();
        let usage = with_work(&self.usage, &self.working, end_us);
        let leases = self.leases.into_columns();
        let (auctions, capacity) = (self.auctions, self.capacity);
        EventLog { leases, auctions, usage, capacity, end_us, ..EventLog::default() }
    }
}

/// Merges the changes of working GPUs into the rows of use, one row an instant.
fn with_work(usage: &UsageColumns, working: &[(i64, i64)], end_us: i64) -> UsageColumns {
    let mut merged = UsageColumns::default();
    let (mut row, mut change, mut productive) = (0, 0, 0_i64);
    let (mut total, mut used, mut active, mut waiting) = (0, 0, 0, 0);
    loop {
        let next_row = usage.at_us.get(row).copied();
        let next_change = working.get(change).map(|(at, _)| *at).filter(|at| *at <= end_us);
        let Some(at) = [next_row, next_change].into_iter().flatten().min() else { return merged };
        if next_row == Some(at) {
            (total, used) = (usage.gpus_total[row], usage.gpus_used[row]);
            (active, waiting) = (usage.active_apps[row], usage.waiting_apps[row]);
            row += 1;
        }
        let before = productive;
        while let Some((_, by)) = working.get(change).filter(|(when, _)| *when == at) {
            productive += by;
            change += 1;
        }
        if next_row == Some(at) || before != productive {
            merged.at_us.push(at);
            merged.gpus_total.push(total);
            merged.gpus_used.push(used);
            merged.gpus_productive.push(productive.max(0) as f64 / f64::from(WHOLE_MILLI));
            merged.active_apps.push(active);
            merged.waiting_apps.push(waiting);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn working_gpus_are_merged_into_the_rows_of_use() {
        let mut recorder = Recorder::default();
        recorder.usage(0, 8, 4, 1, 0);
        recorder.usage(5, 8, 4, 1, 0);
        recorder.usage(20, 7, 0, 0, 0);
        recorder.working = vec![(10, 3500), (20, -3500), (99, 1), (99, -1)];
        let usage = recorder.into_log(50).usage;
        assert_eq!(usage.at_us, vec![0, 10, 20]);
        assert_eq!(usage.gpus_used, vec![4, 4, 0]);
        assert_eq!(usage.gpus_total, vec![8, 8, 7]);
        assert_eq!(usage.gpus_productive, vec![0.0, 3.5, 0.0]);
    }
}
