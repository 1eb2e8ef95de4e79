//! The event log: everything that is reported is computed from these columns.

use crate::capacity::Change;
use crate::cause::Cause;
use crate::cause::EndedBy;
use crate::plan::AuctionRecord;
use crate::usage_log::UsageLog;
use std::collections::BTreeMap;

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

/// Rows whose memory is given back together.
const ROWS_AT_ONCE: usize = 1 << 16;

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

    /// Columns in the order in which the leases began; ties by machine and GPU. Rows go as columns
    /// come: together they would be twice the log.
    fn into_columns(self) -> LeaseColumns {
        let mut rows = self.0;
        rows.sort_unstable_by_key(|row| (row.start_us, row.machine, row.gpu_first, row.end_us));
        rows.reverse();
        let mut columns = LeaseColumns::default();
        while let Some(row) = rows.pop() {
            if rows.len().is_multiple_of(ROWS_AT_ONCE) {
                rows.shrink_to_fit();
            }
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

impl AppColumns {
    fn new(rows: usize) -> Self {
        Self {
            first_gpu_us: vec![0; rows],
            end_us: vec![0; rows],
            gpu_us: vec![0.0; rows],
            useful_gpu_us: vec![0.0; rows],
            slowed_gpu_us: vec![0.0; rows],
            switching_gpu_us: vec![0.0; rows],
            lost_gpu_us: vec![0.0; rows],
            n_avg: vec![0.0; rows],
            gpus_avg: vec![0.0; rows],
            t_id_s: vec![0.0; rows],
            t_sh_s: vec![0.0; rows],
            t_alone_s: vec![0.0; rows],
            placement_score: vec![0.0; rows],
        }
    }
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
    /// Why it ended otherwise than done: a position in `reasons`, of which the first is empty and the
    /// others stand in the order in which they came up.
    pub reason: Vec<u32>,
    pub reasons: Vec<String>,
}

impl JobColumns {
    fn new(rows: usize) -> Self {
        Self {
            phase: vec![0; rows],
            start_us: vec![0; rows],
            end_us: vec![0; rows],
            gpu_us: vec![0.0; rows],
            work_gpu_us: vec![0.0; rows],
            preemptions: vec![0; rows],
            migrations: vec![0; rows],
            promised_us: vec![0; rows],
            failures: vec![0; rows],
            lost_gpu_us: vec![0.0; rows],
            reason: vec![0; rows],
            reasons: Vec::new(),
        }
    }
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
    usage: UsageLog,
    capacity: CapacityColumns,
    /// Rows of apps that are over, and of their jobs.
    pub(crate) apps: AppColumns,
    pub(crate) jobs: JobColumns,
    reasons: BTreeMap<String, u32>,
}

impl Recorder {
    /// A log that will have so many apps and jobs.
    pub(crate) fn new(apps: usize, jobs: usize) -> Self {
        let (apps, jobs) = (AppColumns::new(apps), JobColumns::new(jobs));
        let mut log = Self { apps, jobs, ..Self::default() };
        log.number_of("");
        log
    }

    /// The number of a reason.
    pub(crate) fn number_of(&mut self, reason: &str) -> u32 {
        let next = self.reasons.len() as u32;
        *self.reasons.entry(reason.to_string()).or_insert_with(|| {
            self.jobs.reasons.push(reason.to_string());
            next
        })
    }

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
    pub(crate) fn usage(&mut self, at_us: i64, counts: [u32; 4]) {
        self.usage.note(at_us, counts);
    }

    /// So many thousandths of GPUs more work from an instant on.
    pub(crate) fn start_work(&mut self, (at_us, milli): (i64, i64)) {
        self.usage.change_work(at_us, milli);
    }

    /// So many stop working then, or never will have worked.
    pub(crate) fn stop_work(&mut self, (at_us, milli): (i64, i64)) {
        self.usage.change_work(at_us, -milli);
    }

    /// The whole log.
    pub(crate) fn into_log(self, end_us: i64) -> EventLog {
        let usage = self.usage.into_columns(end_us);
        let leases = self.leases.into_columns();
        let (auctions, capacity) = (self.auctions, self.capacity);
        EventLog { leases, auctions, usage, capacity, apps: self.apps, jobs: self.jobs, end_us }
    }
}
