//! App schedulers in Python: what they see, and what they answered.
//!
//! A `driver` (`themis.agents.driver.Driver`) stands between: it names the jobs, and checks every
//! answer before it comes here. All of an answer is kept, so that a bid never asks Python.

use std::cell::RefCell;
use std::rc::Rc;

use pyo3::prelude::*;
use themis_core::app::{Demand, Stopping};
use themis_core::schedulers::{
    AppScheduler, AppView, Chain, Failed, Goal, Least, Move, Piece, Standing, Stop, Verdict,
};
use themis_sim::Agents;

/// What was raised in Python; the run ends with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Raised(Rc<RefCell<Option<PyErr>>>);

impl Raised {
    /// Keeps the first error.
    pub(crate) fn keep(&self, error: PyErr) {
        self.0.borrow_mut().get_or_insert(error);
    }

    /// Hands it over.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.borrow_mut().take()
    }
}

/// The schedulers of some drivers, each given with the number of its app.
pub(crate) fn schedulers(drivers: &[(u32, Py<PyAny>)], raised: &Raised) -> PyResult<Agents> {
    let read = |(app, driver): &(u32, Py<PyAny>)| {
        let agent = Python::attach(|py| Agent::new(py, driver, raised.clone()))?;
        Ok((*app, Box::new(agent) as Box<dyn AppScheduler>))
    };
    drivers.iter().map(read).collect()
}

/// A scheduler whose decisions are made in Python.
#[derive(Debug)]
struct Agent {
    driver: Py<PyAny>,
    raised: Raised,
    waits_for: Stopping,
    listens: bool,
    budget: Option<Vec<Demand>>,
    later: Vec<Demand>,
    ranks: Vec<f64>,
    expected_gpu_s: Vec<Option<f64>>,
}

/// Work in GPU-seconds, GPUs, and the seconds of its longest job.
type DemandInput = (f64, f64, f64);

/// A job if it is known, work in GPU-seconds, most GPUs.
type PieceInput = (Option<usize>, f64, u32);

/// What a driver hands over after a review; jobs by their numbers within the app.
#[derive(FromPyObject)]
struct Answer {
    goals: Vec<(usize, f64, u32)>,
    stops: Vec<(usize, bool, String)>,
    over: Option<String>,
    budget: Option<Vec<DemandInput>>,
    later: Vec<DemandInput>,
    ranks: Vec<f64>,
    expected_gpu_s: Vec<Option<f64>>,
}

impl Agent {
    fn new(py: Python<'_>, driver: &Py<PyAny>, raised: Raised) -> PyResult<Self> {
        let bound = driver.bind(py);
        let first: bool = bound.getattr("ends_with_first")?.extract()?;
        Ok(Self {
            driver: driver.clone_ref(py),
            raised,
            waits_for: if first { Stopping::First } else { Stopping::All },
            listens: bound.getattr("listens")?.extract()?,
            budget: None,
            later: Vec::new(),
            ranks: Vec::new(),
            expected_gpu_s: Vec::new(),
        })
    }

    /// Asks Python; what it raises is kept.
    fn ask<T>(&self, with: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Result<T, Failed> {
        Python::attach(|py| with(self.driver.bind(py))).map_err(|error| {
            self.raised.keep(error);
            Failed
        })
    }
}

impl AppScheduler for Agent {
    fn review(&mut self, app: &AppView<'_>) -> Result<Verdict, Failed> {
        let answer: Answer = self.ask(|driver| {
            let seen = (app.elapsed_s, app.reported, rows(app));
            driver.call_method1("review", seen)?.extract()
        })?;
        if let Some(budget) = answer.budget {
            self.budget = Some(demands(budget));
        }
        self.later = demands(answer.later);
        (self.ranks, self.expected_gpu_s) = (answer.ranks, answer.expected_gpu_s);
        let goals = answer.goals.into_iter();
        let stops = answer.stops.into_iter();
        Ok(Verdict {
            goals: goals.map(|(job, until_gpu_s, max)| (job, Goal { until_gpu_s, max })).collect(),
            stops: stops.map(|(job, done, reason)| Stop { job, done, reason }).collect(),
            over: answer.over,
        })
    }

    fn listens(&self) -> bool {
        self.listens
    }

    fn moved(&mut self, app: &AppView<'_>, moves: &[Move]) -> Result<(), Failed> {
        let moves: Vec<_> = moves.iter().map(|m| (m.job, m.gained, m.lost)).collect();
        self.ask(|driver| {
            driver.call_method1("moved", (app.elapsed_s, moves, rows(app)))?;
            Ok(())
        })
    }

    fn waits_for(&self) -> Stopping {
        self.waits_for
    }

    fn later(&self) -> &[Demand] {
        &self.later
    }

    fn budget(&self) -> Option<&[Demand]> {
        self.budget.as_deref()
    }

    fn expected_gpu_s(&self, job: usize) -> Option<f64> {
        self.expected_gpu_s.get(job).copied().flatten()
    }

    fn rank(&self, job: usize) -> f64 {
        self.ranks.get(job).copied().unwrap_or(0.0)
    }

    fn least(&self, app: &AppView<'_>, whole: bool) -> Least {
        let answer = self.ask(|driver| {
            let seen = (app.elapsed_s, whole, rows(app));
            driver.call_method1("least", seen)?.extract()
        });
        // After a failure there is no result; any figure will do.
        let (any, chains): (bool, Vec<Vec<Vec<PieceInput>>>) = answer.unwrap_or_default();
        let phase = |phase: Vec<PieceInput>| {
            let pieces = phase.into_iter();
            pieces.map(|(job, work_gpu_s, max)| Piece { job, work_gpu_s, max }).collect()
        };
        let chain = |chain: Vec<Vec<PieceInput>>| chain.into_iter().map(phase).collect::<Chain>();
        let chains = chains.into_iter().map(chain).collect();
        if any { Least::Any(chains) } else { Least::Every(chains) }
    }
}

fn demands(given: Vec<DemandInput>) -> Vec<Demand> {
    let demand = |(work_gpu_s, gpus, longest_s)| Demand { work_gpu_s, gpus, longest_s };
    given.into_iter().map(demand).collect()
}

/// A job as `themis.agents.driver.Row` lists it: standing, whether it competes, work in all and
/// done, most GPUs, iterations, loss, bracket; GPUs that it holds and its rate on them.
type Row = (&'static str, bool, f64, f64, u32, Option<f64>, Option<f64>, u32, u32, f64);

fn rows(app: &AppView<'_>) -> Vec<Row> {
    (0..app.jobs)
        .map(|number| {
            let job = (app.job)(number);
            let standing = match job.standing {
                Standing::Future => "future",
                Standing::Open => "open",
                Standing::AtGoal => "at_goal",
                Standing::Done => "done",
                Standing::Dropped => "dropped",
            };
            let (work, done) = (job.work_gpu_s, job.done_gpu_s);
            let search = (job.max, job.iterations, job.loss, job.bracket);
            let (max, iterations, loss, bracket) = search;
            let (gpus, rate) = (job.gpus, job.rate);
            (standing, job.competes, work, done, max, iterations, loss, bracket, gpus, rate)
        })
        .collect()
}
