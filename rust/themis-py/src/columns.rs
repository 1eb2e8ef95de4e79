//! The event log as a dictionary of numpy columns; rows of host resources.

use numpy::{Element, IntoPyArray, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use themis_core::app::rho_of;
use themis_sim::{BidColumns, EventLog};

/// Rows of CPU and memory, in thousandths of a core and MiB.
pub(crate) fn host_rows(rows: &PyReadonlyArray2<'_, i64>) -> PyResult<Vec<[i64; 2]>> {
    let rows = rows.as_array();
    if rows.ncols() != 2 {
        return Err(PyValueError::new_err("host resources: expected two a row"));
    }
    Ok(rows.rows().into_iter().map(|row| [row[0], row[1]]).collect())
}

/// Columns of one table.
pub(crate) struct Table<'py> {
    py: Python<'py>,
    pub(crate) columns: Bound<'py, PyDict>,
}

impl<'py> Table<'py> {
    pub(crate) fn new(py: Python<'py>) -> Self {
        Self { py, columns: PyDict::new(py) }
    }

    /// Moves a vector into a numpy column, without a copy.
    pub(crate) fn with<T: Element>(self, name: &str, values: Vec<T>) -> PyResult<Self> {
        self.columns.set_item(name, values.into_pyarray(self.py))?;
        Ok(self)
    }
}

/// `{"leases": {...}, "auctions": {...}, "usage": {...}, "capacity": {...},
/// "apps": {...}, "jobs": {...}}`.
pub(crate) fn log_to_dict(py: Python<'_>, log: EventLog) -> PyResult<Bound<'_, PyDict>> {
    let tables = PyDict::new(py);
    let (leases, auctions, usage) = (log.leases, log.auctions, log.usage);
    let table = Table::new(py)
        .with("app", leases.app)?
        .with("machine", leases.machine)?
        .with("slot", leases.slot)?
        .with("gpu_first", leases.gpu_first)?
        .with("gpus", leases.gpus)?
        .with("start_us", leases.start_us)?
        .with("end_us", leases.end_us)?
        .with("cause", leases.cause)?
        .with("renewals", leases.renewals)?
        .with("ended_by", leases.ended_by)?
        .with("gpu_milli", leases.milli)?;
    tables.set_item("leases", table.columns)?;
    let table = Table::new(py)
        .with("at_us", auctions.at_us)?
        .with("offered_gpus", auctions.offered_gpus)?
        .with("active_apps", auctions.active_apps)?
        .with("bidders", auctions.bidders)?
        .with("winners", auctions.winners)?
        .with("leftover_gpus", auctions.leftover_gpus)?
        .with("min_c", auctions.min_c)?
        .with("mean_c", auctions.mean_c)?
        .with("objective", auctions.objective)?
        .with("upper_bound", auctions.upper_bound)?
        .with("gap", auctions.gap)?;
    tables.set_item("auctions", table.columns)?;
    let table = Table::new(py)
        .with("at_us", usage.at_us)?
        .with("gpus_total", usage.gpus_total)?
        .with("gpus_used", usage.gpus_used)?
        .with("gpus_productive", usage.gpus_productive)?
        .with("active_apps", usage.active_apps)?
        .with("waiting_apps", usage.waiting_apps)?;
    tables.set_item("usage", table.columns)?;
    let capacity = log.capacity;
    let table = Table::new(py)
        .with("at_us", capacity.at_us)?
        .with("machine", capacity.machine)?
        .with("gpus", capacity.gpus)?
        .with("cause", capacity.cause)?;
    tables.set_item("capacity", table.columns)?;
    tables.set_item("apps", app_columns(py, log.apps)?)?;
    tables.set_item("jobs", job_columns(py, log.jobs)?)?;
    tables.set_item("end_us", log.end_us)?;
    Ok(tables)
}

fn app_columns(py: Python<'_>, apps: themis_sim::AppColumns) -> PyResult<Bound<'_, PyDict>> {
    let table = Table::new(py)
        .with("first_gpu_us", apps.first_gpu_us)?
        .with("end_us", apps.end_us)?
        .with("gpu_us", apps.gpu_us)?
        .with("useful_gpu_us", apps.useful_gpu_us)?
        .with("slowed_gpu_us", apps.slowed_gpu_us)?
        .with("switching_gpu_us", apps.switching_gpu_us)?
        .with("lost_gpu_us", apps.lost_gpu_us)?
        .with("n_avg", apps.n_avg)?
        .with("gpus_avg", apps.gpus_avg)?
        .with("t_id_s", apps.t_id_s)?
        .with("t_sh_s", apps.t_sh_s)?
        .with("t_alone_s", apps.t_alone_s)?
        .with("placement_score", apps.placement_score)?;
    Ok(table.columns)
}

fn job_columns(py: Python<'_>, jobs: themis_sim::JobColumns) -> PyResult<Bound<'_, PyDict>> {
    let table = Table::new(py)
        .with("phase", jobs.phase)?
        .with("start_us", jobs.start_us)?
        .with("end_us", jobs.end_us)?
        .with("gpu_us", jobs.gpu_us)?
        .with("work_gpu_us", jobs.work_gpu_us)?
        .with("preemptions", jobs.preemptions)?
        .with("migrations", jobs.migrations)?
        .with("promised_us", jobs.promised_us)?
        .with("failures", jobs.failures)?
        .with("lost_gpu_us", jobs.lost_gpu_us)?
        .with("reason", jobs.reason)?;
    table.columns.set_item("reasons", jobs.reasons)?;
    Ok(table.columns)
}

/// rho of a log V; not a number where it is unbounded, or there is none.
pub(crate) fn rho(log_v: f64) -> f64 {
    rho_of(log_v).unwrap_or(f64::NAN)
}

/// An app's part in the auctions of a run.
pub(crate) fn bids_to_dict(py: Python<'_>, bids: BidColumns) -> PyResult<Bound<'_, PyDict>> {
    let table = Table::new(py)
        .with("at_us", bids.at_us)?
        .with("visible", bids.visible)?
        .with("rho_empty", bids.log_v_empty.into_iter().map(rho).collect())?
        .with("best_rho", bids.best_log_v.into_iter().map(rho).collect())?
        .with("best_gpus", bids.best_gpus)?
        .with("won_gpus", bids.won_gpus)?
        .with("c", bids.c)?
        .with("kept_gpus", bids.kept_gpus)?
        .with("lease_fraction", bids.lease_fraction)?
        .with("leftover_gpus", bids.leftover_gpus)?;
    table.columns.set_item("reason", bids.reason)?;
    Ok(table.columns)
}
