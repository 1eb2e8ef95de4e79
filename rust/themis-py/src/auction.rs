//! `clear_auction`: one round, from Python values.

use std::sync::Arc;

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use themis_core::SlotId;
use themis_core::app::{AppState, Job, Part, Pattern, Profile, Scaling, Speeds, Stopping, log_v};
use themis_core::auction::{
    Bidder, Entrant, Entry, Given, Leftover, Outcome, Payment, Rules, Solver, Table, TableRow,
    run_round, run_round_given, visible,
};
use themis_core::cluster::{Bundle, FreeSet, Topology};
use themis_core::fairness::{OutsideContext, OutsideOption};
use themis_sim::SeededDraws;

use crate::columns::{Table as Columns, rho};
use crate::errors::{ScenarioError, core_error};
use crate::names::Named;

/// (slot number, GPUs).
type Counts = Vec<(u32, u32)>;

/// Who bids: app states and tables, their speeds by GPU type (0: may not run there; of a table
/// none), and what they hold, bid by bid: so many slots, their numbers, and the GPUs there.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Bids<'py> {
    entrants: Vec<BidInput>,
    speeds: Vec<Vec<f64>>,
    held: PyReadonlyArray1<'py, u32>,
    held_slots: PyReadonlyArray1<'py, u32>,
    held_gpus: PyReadonlyArray1<'py, u32>,
}

#[derive(FromPyObject)]
pub(crate) enum BidInput {
    App(StateInput),
    /// rho of winning nothing, and the rows.
    Table(Option<f64>, Vec<(Counts, f64)>),
}

/// An `AppState` of Python: an app of equal jobs.
#[derive(FromPyObject)]
pub(crate) struct StateInput {
    elapsed_s: f64,
    work_left_s: f64,
    t_id_s: f64,
    gang_size: u32,
    max_gpus: u32,
    jobs: u32,
    mixes_types: bool,
    n_avg: f64,
    #[pyo3(attribute("_slowdowns"))]
    slowdowns: [f64; 4],
    /// Efficiencies by GPUs.
    #[pyo3(attribute("_efficiencies"))]
    scaling: Vec<(u32, f64)>,
}

/// Slots, a machine's together: numbers of rack and machine, free GPUs, and the number of the
/// machine's GPU type.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SlotColumns<'py> {
    rack: PyReadonlyArray1<'py, u32>,
    machine: PyReadonlyArray1<'py, u32>,
    gpus: PyReadonlyArray1<'py, u32>,
    gpu_type: PyReadonlyArray1<'py, u32>,
}

impl SlotColumns<'_> {
    fn topology(&self) -> PyResult<Topology> {
        let (rack, machine) = (self.rack.as_array(), self.machine.as_array());
        let (gpus, gpu_type) = (self.gpus.as_array(), self.gpu_type.as_array());
        let rows = rack.len();
        if [machine.len(), gpus.len(), gpu_type.len()].into_iter().any(|len| len != rows) {
            return Err(ScenarioError::new_err("slot columns differ in length"));
        }
        let slots: Vec<_> = (0..rows).map(|row| (rack[row], machine[row], gpus[row])).collect();
        let firsts = (0..rows).filter(|row| *row == 0 || machine[row - 1] != machine[*row]);
        let types: Vec<u32> = firsts.map(|row| gpu_type[row]).collect();
        let topology = Topology::from_slots(&slots).and_then(|all| all.with_gpu_types(&types));
        topology.map_err(|error| core_error(&error))
    }
}

/// The rules, as Python names them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct RulesInput {
    solver: String,
    payment: String,
    leftover: String,
    outside_option: String,
    fairness_knob: f64,
    lease_s: f64,
    cluster_gpus: u32,
    seed: u64,
}

/// (job number, GPUs a slot).
type JobCounts = Vec<(usize, Counts)>;

/// An allocation found in Python, entrant by entrant.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenInput {
    wins: Vec<JobCounts>,
    c: Vec<f64>,
    upper_bound: f64,
}

/// An auction, read: what is on offer, who bids, and the rules.
struct Auction {
    offer: FreeSet,
    entrants: Vec<Entrant>,
    rules: Rules,
}

impl Auction {
    fn read(slots: &SlotColumns<'_>, bids: &Bids<'_>, rules: &RulesInput) -> PyResult<Self> {
        let topology = Arc::new(slots.topology()?);
        let outside = Outside {
            option: OutsideOption::parse(&rules.outside_option)?,
            lease_s: rules.lease_s,
            gpus: rules.cluster_gpus,
        };
        Ok(Self {
            entrants: bids.read(&topology, outside)?,
            offer: FreeSet::full(topology),
            rules: Rules {
                fairness_knob: rules.fairness_knob,
                solver: Solver::parse(&rules.solver)?,
                payment: Payment::parse(&rules.payment)?,
                leftover: Leftover::parse(&rules.leftover)?,
            },
        })
    }
}

/// Clears one auction.
/// With `given`, the allocation and the payments are those, and the solver has no say.
#[pyfunction]
#[pyo3(signature = (slots, bids, rules, given=None))]
pub(crate) fn clear_auction<'py>(
    py: Python<'py>,
    slots: SlotColumns<'py>,
    bids: Bids<'py>,
    rules: RulesInput,
    given: Option<GivenInput>,
) -> PyResult<Bound<'py, PyDict>> {
    let Auction { offer, entrants, rules: round } = Auction::read(&slots, &bids, &rules)?;
    let given = given.map(|given| read_given(given, &offer, &entrants)).transpose()?;
    let mut draws = SeededDraws::new(rules.seed);
    let outcome = py.detach(|| match given {
        Some(given) => run_round_given(&offer, entrants, &round, &given, &mut draws),
        None => run_round(&offer, entrants, &round, &mut draws),
    });

    outcome_to_dict(py, &outcome)
}

/// Figures, and tables: `entries`, one row an entrant; `bids`, a pattern; `granted` and `unused`, a slot.
pub(crate) fn outcome_to_dict<'py>(
    py: Python<'py>,
    outcome: &Outcome,
) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("objective", outcome.objective)?;
    result.set_item("upper_bound", outcome.upper_bound)?;
    result.set_item("gap", outcome.gap())?;
    result.set_item("entries", entries(py, &outcome.entries)?)?;
    result.set_item("bids", bids(py, &outcome.entries)?)?;
    result.set_item("granted", granted(py, &outcome.entries)?)?;
    let unused = |of: fn((SlotId, u32)) -> u32| outcome.unused.iter().map(of).collect();
    let table = Columns::new(py);
    let table = table.with("slot", unused(|(slot, _)| slot.0))?.with("gpus", unused(|(_, n)| n))?;
    result.set_item("unused", table.columns)?;
    Ok(result)
}

/// What an outside solver must know of the bidders: which see the offer, and for each log V of
/// winning nothing and the GPUs that its jobs hold (none for a table).
#[pyfunction]
pub(crate) fn open_auction<'py>(
    py: Python<'py>,
    slots: SlotColumns<'py>,
    bids: Bids<'py>,
    rules: RulesInput,
) -> PyResult<Bound<'py, PyList>> {
    let Auction { entrants, rules, .. } = Auction::read(&slots, &bids, &rules)?;
    let seen = visible(&entrants, &rules);
    let bidders = PyList::empty(py);
    for (at, entrant) in entrants.iter().enumerate() {
        let held = match &entrant.bidder {
            Bidder::App(app) => app.jobs.iter().map(|job| counts(&job.held)).collect(),
            Bidder::Table(_) => Vec::new(),
        };
        let bidder = PyDict::new(py);
        bidder.set_item("visible", seen.binary_search(&at).is_ok())?;
        bidder.set_item("log_v_empty", entrant.bidder.log_v_empty())?;
        bidder.set_item("held", held)?;
        bidders.append(bidder)?;
    }
    Ok(bidders)
}

fn read_given(input: GivenInput, offer: &FreeSet, entrants: &[Entrant]) -> PyResult<Given> {
    let part =
        |(job, won): (usize, Counts)| Ok(Part { job, bundle: bundle(&won, offer.topology())? });
    let wins = input.wins.into_iter().map(|parts| parts.into_iter().map(part).collect());
    let given = Given {
        wins: wins.collect::<PyResult<_>>()?,
        payments: input.c,
        upper_bound: input.upper_bound,
    };
    let jobs = |entrant: &Entrant| match &entrant.bidder {
        Bidder::App(app) => app.jobs.len(),
        Bidder::Table(_) => 1,
    };
    let known = |(parts, entrant): (&Vec<Part>, &Entrant)| {
        parts.iter().all(|part| part.job < jobs(entrant))
    };
    if given.fits(offer, entrants.len()) && given.wins.iter().zip(entrants).all(known) {
        Ok(given)
    } else {
        Err(ScenarioError::new_err("the allocation given does not fit the auction"))
    }
}

/// How winning nothing is valued.
#[derive(Clone, Copy)]
struct Outside {
    option: OutsideOption,
    lease_s: f64,
    gpus: u32,
}

impl Bids<'_> {
    fn read(&self, topology: &Topology, outside: Outside) -> PyResult<Vec<Entrant>> {
        let count = self.entrants.len();
        let (of_bid, slots) = (self.held.as_slice()?, self.held_slots.as_slice()?);
        let gpus = self.held_gpus.as_slice()?;
        let all = of_bid.iter().map(|slots| *slots as usize).sum::<usize>();
        if [of_bid.len(), self.speeds.len()] != [count; 2] || [slots.len(), gpus.len()] != [all; 2]
        {
            return Err(ScenarioError::new_err("columns of bids differ in length"));
        }
        let mut held = slots.iter().copied().zip(gpus.iter().copied());
        let mut entrants = Vec::with_capacity(count);
        for ((bid, speeds), slots) in self.entrants.iter().zip(&self.speeds).zip(of_bid) {
            let counts: Counts = held.by_ref().take(*slots as usize).collect();
            let bidder = match bid {
                BidInput::App(state) => {
                    Bidder::App(app_state(state, speeds, &counts, topology, outside)?)
                }
                BidInput::Table(rho_empty, rows) => {
                    Bidder::Table(table(*rho_empty, rows, topology)?)
                }
            };
            let rank = (-bidder.log_v_empty(), 0.0);
            entrants.push(Entrant { bidder, rank });
        }
        Ok(entrants)
    }
}

fn table(rho_empty: Option<f64>, rows: &[(Counts, f64)], topology: &Topology) -> PyResult<Table> {
    let rows = rows.iter().map(|(counts, rho)| {
        Ok(TableRow { bundle: bundle(counts, topology)?, log_v: log_v(*rho) })
    });
    Ok(Table {
        log_v_empty: log_v(rho_empty.unwrap_or(f64::INFINITY)),
        rows: rows.collect::<PyResult<_>>()?,
        held: Bundle::new(),
    })
}

fn app_state(
    input: &StateInput,
    speeds: &[f64],
    held: &Counts,
    topology: &Topology,
    outside: Outside,
) -> PyResult<AppState> {
    let scaling = Scaling::new(&input.scaling).map_err(|error| core_error(&error))?;
    let profile = Profile::new(input.slowdowns).map_err(|error| core_error(&error))?;
    let profile = profile.with_scaling(scaling);
    let number = input.jobs.max(1);
    let fastest = speeds.iter().copied().fold(0.0, f64::max);
    let work_left_s = input.work_left_s / if fastest > 0.0 { fastest } else { 1.0 };
    let (gang, max) = (input.gang_size, input.max_gpus / number);
    let job = Job::waiting(gang, max, work_left_s / f64::from(number), profile)
        .with_speeds(Speeds::new(speeds, input.mixes_types));
    let mut app =
        AppState::new(input.elapsed_s, input.t_id_s, Stopping::All, vec![job; number as usize]);
    let held = divide(&bundle(held, topology)?, gang, max, number);
    for (job, held) in held.iter().enumerate() {
        app.hold(job, held);
    }
    let context = OutsideContext {
        lease_s: outside.lease_s,
        gpus: f64::from(outside.gpus),
        n_avg: input.n_avg,
        last: None,
    };
    app.rho_empty = outside.option.rho_empty(&app, topology, context);
    Ok(app)
}

/// Held GPUs job by job, in slot order: first a gang to each, then more up to each job's cap.
fn divide(held: &Bundle, gang: u32, max: u32, jobs: u32) -> Vec<Bundle> {
    let mut gpus = held.iter().flat_map(|(slot, n)| std::iter::repeat_n(slot, n as usize));
    let mut parts = vec![Bundle::new(); jobs as usize];
    for target in [gang, max] {
        for part in &mut parts {
            let missing = (target - part.gpus()) as usize;
            part.merge(&gpus.by_ref().take(missing).map(|slot| (slot, 1)).collect());
        }
    }
    parts
}

fn bundle(counts: &Counts, topology: &Topology) -> PyResult<Bundle> {
    match counts.iter().find(|(slot, _)| *slot as usize >= topology.slots()) {
        Some((slot, _)) => Err(ScenarioError::new_err(format!("slot {slot} is not on offer"))),
        None => Ok(counts.iter().map(|(slot, gpus)| (SlotId(*slot), *gpus)).collect()),
    }
}

fn counts(bundle: &Bundle) -> Counts {
    bundle.iter().map(|(slot, gpus)| (slot.0, gpus)).collect()
}

fn gpus(parts: &[Part]) -> u32 {
    parts.iter().map(|part| part.bundle.gpus()).sum()
}

/// One row an entrant: its figures, and the most that one of its bundles gains in log V a GPU.
fn entries<'py>(py: Python<'py>, entries: &[Entry]) -> PyResult<Bound<'py, PyDict>> {
    let reals = |of: fn(&Entry) -> f64| entries.iter().map(of).collect::<Vec<_>>();
    let counts = |of: fn(&Entry) -> u32| entries.iter().map(of).collect::<Vec<_>>();
    let best_gain = |entry: &Entry| {
        let gain = |p: &Pattern| (p.log_v - entry.log_v_empty) / f64::from(p.gpus());
        entry.patterns.iter().map(gain).fold(f64::NEG_INFINITY, f64::max)
    };
    let table = Columns::new(py)
        .with("rho_empty", reals(|entry| rho(entry.log_v_empty)))?
        .with("rho", reals(|entry| rho(entry.log_v)))?
        .with("gain", reals(|entry| entry.log_v - entry.log_v_empty))?
        .with("best_gain", reals(best_gain))?
        .with("c", reals(|entry| entry.c))?
        .with("lease_fraction", reals(|entry| entry.lease_fraction))?
        .with("won", counts(|entry| gpus(&entry.won)))?
        .with("kept", counts(|entry| gpus(&entry.kept)))?
        .with("leftover", counts(|entry| gpus(&entry.leftover)))?;
    let reasons: Vec<&str> = entries.iter().map(|entry| entry.reason.as_str()).collect();
    table.columns.set_item("reason", reasons)?;
    Ok(table.columns)
}

/// One row a bundle bid for; `row` is that of a table, `level` how far apart its GPUs may be.
fn bids<'py>(py: Python<'py>, entries: &[Entry]) -> PyResult<Bound<'py, PyDict>> {
    let all = || entries.iter().flat_map(|entry| &entry.patterns);
    let patterns = entries.iter().map(|entry| entry.patterns.len() as u32).collect();
    let table = Columns::new(py)
        .with("gpus", all().map(Pattern::gpus).collect())?
        .with("row", all().map(|pattern| pattern.steps).collect())?
        .with("level", all().map(|pattern| pattern.reach.level as u8).collect())?
        .with("rho", all().map(|pattern| rho(pattern.log_v)).collect())?
        .with("of_entry", patterns)?;
    Ok(table.columns)
}

/// One row an entrant and slot: GPUs kept of the auction, then those left over.
fn granted<'py>(py: Python<'py>, entries: &[Entry]) -> PyResult<Bound<'py, PyDict>> {
    let (mut entry, mut slot, mut gpus, mut is_leftover) = (vec![], vec![], vec![], vec![]);
    for (at, one) in (0_u32..).zip(entries) {
        for (parts, leftover) in [(&one.kept, false), (&one.leftover, true)] {
            let all: Bundle = parts.iter().flat_map(|part| part.bundle.iter()).collect();
            for (where_, count) in all.iter() {
                entry.push(at);
                slot.push(where_.0);
                gpus.push(count);
                is_leftover.push(leftover);
            }
        }
    }
    let table = Columns::new(py).with("entry", entry)?.with("slot", slot)?.with("gpus", gpus)?;
    Ok(table.with("leftover", is_leftover)?.columns)
}
