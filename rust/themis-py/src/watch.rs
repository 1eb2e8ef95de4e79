//! `watch_auctions`: a run of `themis` once more, to see what an app bid and who won.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use themis_core::auction::{Bidder, Entry, Outcome};
use themis_sim::{Watch, simulate as play};

use crate::auction::outcome_to_dict;
use crate::cluster::Cluster;
use crate::columns::bids_to_dict;
use crate::errors::sim_error;
use crate::simulate::SettingsInput;
use crate::workload::Workload;

/// Plays a workload under `themis` and returns `bids`, the part of one app in every auction, and
/// `auction`, that at an instant with everybody in it (None: there was none).
#[pyfunction]
pub(crate) fn watch_auctions<'py>(
    py: Python<'py>,
    cluster: &Cluster,
    workload: &Workload,
    settings: SettingsInput,
    app: u32,
    at_us: Option<i64>,
) -> PyResult<Bound<'py, PyDict>> {
    let settings = settings.read()?;
    let mut watch = Watch::new(&settings, app, at_us);
    py.detach(|| {
        let mut goes_on = |_, _, _| Python::attach(|py| py.check_signals().is_ok());
        play(&cluster.cluster, &workload.specs, &settings, &mut watch, &mut goes_on)
    })
    .map_err(|error| sim_error(&error))?;
    let seen = PyDict::new(py);
    seen.set_item("bids", bids_to_dict(py, watch.bids)?)?;
    let auction = watch.auction.map(|(apps, outcome)| auction_to_dict(py, apps, &outcome));
    seen.set_item("auction", auction.transpose()?)?;
    Ok(seen)
}

/// That of `clear_auction`, with the numbers of the `apps` and the GPUs that each `held` before.
fn auction_to_dict<'py>(
    py: Python<'py>,
    apps: Vec<u32>,
    outcome: &Outcome,
) -> PyResult<Bound<'py, PyDict>> {
    let auction = outcome_to_dict(py, outcome)?;
    auction.set_item("apps", apps)?;
    auction.set_item("held", outcome.entries.iter().map(held_before).collect::<Vec<_>>())?;
    Ok(auction)
}

fn held_before(entry: &Entry) -> u32 {
    let after: u32 = match &entry.bidder {
        Bidder::App(app) => app.jobs.iter().map(|job| job.held.gpus()).sum(),
        Bidder::Table(table) => table.held.gpus(),
    };
    after.saturating_sub(entry.granted_gpus())
}
