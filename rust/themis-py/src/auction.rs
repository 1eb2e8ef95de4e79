//! `clear_auction`: one round, from Python values.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use themis_core::app::{AppState, Job, Part, Pattern, Profile, Scaling, Speeds, Stopping, log_v};
use themis_core::auction::{
    Bidder, Entrant, Entry, Given, Leftover, Outcome, Payment, Rules, Solver, Table, TableRow,
    run_round, run_round_given, visible,
};
use themis_core::cluster::{Bundle, FreeSet, Topology};
use themis_core::fairness::{OutsideContext, OutsideOption};
use themis_core::{CoreError, SlotId};
use themis_sim::SeededDraws;

use crate::columns::{Table as Columns, rho};
use crate::errors::{ScenarioError, core_error};
use crate::names::Named;

/// (slot number, GPUs).
type Counts = Vec<(u32, u32)>;

/// A bidder: `rows` of an explicit table, or else an app state.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct BidInput {
    rho_empty: Option<f64>,
    rows: Option<Vec<(Counts, f64)>>,
    state: Option<StateInput>,
}

/// An app of equal jobs.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct StateInput {
    elapsed_s: f64,
    work_left_s: f64,
    t_id_s: f64,
    gang_size: u32,
    max_gpus: u32,
    jobs: u32,
    held: Counts,
    slowdowns: [f64; 4],
    /// Efficiencies by GPUs.
    scaling: Vec<(u32, f64)>,
    /// By GPU type; 0: may not run there.
    speeds: Vec<f64>,
    mixes: bool,
    n_avg: f64,
}

/// Rack number, machine number, free GPUs, and the number of the machine's GPU type.
type Slot = (u32, u32, u32, u32);

/// The cluster of these slots, a machine's together.
fn topology(slots: &[Slot]) -> Result<Topology, CoreError> {
    let gpus: Vec<_> =
        slots.iter().map(|(rack, machine, gpus, _)| (*rack, *machine, *gpus)).collect();
    let machines = slots.chunk_by(|a, b| a.1 == b.1);
    let types: Vec<u32> = machines.map(|slots| slots[0].3).collect();
    Topology::from_slots(&gpus)?.with_gpu_types(&types)
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
    fn read(slots: &[Slot], bids: Vec<BidInput>, rules: &RulesInput) -> PyResult<Self> {
        let topology = topology(slots).map_err(|error| core_error(&error))?;
        let topology = Arc::new(topology);
        let outside = Outside {
            option: OutsideOption::parse(&rules.outside_option)?,
            lease_s: rules.lease_s,
            gpus: rules.cluster_gpus,
        };
        let entrants = bids.into_iter().map(|bid| entrant(bid, &topology, outside));
        Ok(Self {
            entrants: entrants.collect::<PyResult<_>>()?,
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

/// Clears one auction. `slots`: those of a machine together.
/// With `given`, the allocation and the payments are those, and the solver has no say.
#[pyfunction]
#[pyo3(signature = (slots, bids, rules, given=None))]
pub(crate) fn clear_auction(
    py: Python<'_>,
    slots: Vec<Slot>,
    bids: Vec<BidInput>,
    rules: RulesInput,
    given: Option<GivenInput>,
) -> PyResult<Bound<'_, PyDict>> {
    let Auction { offer, entrants, rules: round } = Auction::read(&slots, bids, &rules)?;
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
pub(crate) fn open_auction(
    py: Python<'_>,
    slots: Vec<Slot>,
    bids: Vec<BidInput>,
    rules: RulesInput,
) -> PyResult<Bound<'_, PyList>> {
    let Auction { entrants, rules, .. } = Auction::read(&slots, bids, &rules)?;
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

fn entrant(bid: BidInput, topology: &Topology, outside: Outside) -> PyResult<Entrant> {
    let bidder = match (bid.rows, bid.state) {
        (Some(rows), None) => {
            let rows = rows.into_iter().map(|(counts, rho)| {
                Ok(TableRow { bundle: bundle(&counts, topology)?, log_v: log_v(rho) })
            });
            let log_v_empty = log_v(bid.rho_empty.unwrap_or(f64::INFINITY));
            let rows = rows.collect::<PyResult<_>>()?;
            Bidder::Table(Table { log_v_empty, rows, held: Bundle::new() })
        }
        (None, Some(state)) => Bidder::App(app_state(&state, bid.rho_empty, topology, outside)?),
        _ => return Err(ScenarioError::new_err("a bid has either rows or a state")),
    };
    let rank = (-bidder.log_v_empty(), 0.0);
    Ok(Entrant { bidder, rank })
}

fn app_state(
    input: &StateInput,
    rho_empty: Option<f64>,
    topology: &Topology,
    outside: Outside,
) -> PyResult<AppState> {
    let scaling = Scaling::new(&input.scaling).map_err(|error| core_error(&error))?;
    let profile = Profile::new(input.slowdowns).map_err(|error| core_error(&error))?;
    let profile = profile.with_scaling(scaling);
    let number = input.jobs.max(1);
    let each = input.work_left_s / f64::from(number);
    let job = Job::waiting(input.gang_size, input.max_gpus / number, each, profile)
        .with_speeds(Speeds::new(&input.speeds, input.mixes));
    let mut app =
        AppState::new(input.elapsed_s, input.t_id_s, Stopping::All, vec![job; number as usize]);
    let (gang, max) = (input.gang_size, input.max_gpus / number);
    let held = divide(&bundle(&input.held, topology)?, gang, max, number);
    for (job, held) in held.iter().enumerate() {
        app.hold(job, held);
    }
    app.rho_empty = rho_empty.filter(|rho| rho.is_finite());
    if rho_empty.is_none() {
        let context = OutsideContext {
            lease_s: outside.lease_s,
            gpus: f64::from(outside.gpus),
            n_avg: input.n_avg,
            last: None,
        };
        app.rho_empty = outside.option.rho_empty(&app, topology, context);
    }
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
