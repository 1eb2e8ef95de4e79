//! `simulate` and its settings.

use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use themis_core::auction::{Leftover, Payment, Rules, Solver};
use themis_core::fairness::{FilterKey, OutsideOption, TIdReading};
use themis_core::schedulers::{PhaseCap, SchedulerRules};
use themis_sim::{LeaseMode, Policy, Settings, SimError, policy_by_name, simulate_with};

use crate::agent::{Raised, schedulers};
use crate::cluster::Cluster;
use crate::columns::log_to_dict;
use crate::errors::sim_error;
use crate::names::Named;
use crate::policy::OwnPolicy;
use crate::workload::Workload;

/// The settings that the engine takes, as Python names them; times in microseconds.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SettingsInput {
    fairness_knob: f64,
    solver: String,
    payment: String,
    leftover: String,
    outside_option: String,
    filter_key: String,
    t_id: String,
    phase_cap: String,
    curve_step: f64,
    curve_error: f64,
    request_factor: f64,
    lease_mode: String,
    lease_us: i64,
    min_lease_us: i64,
    restart_us: i64,
    checkpoint_us: i64,
    checkpoint_every_us: Option<i64>,
    reserve_after_us: Option<i64>,
    mtbf_us: Option<i64>,
    mttr_us: i64,
    quarantine_after: Option<u32>,
    quarantine_us: i64,
    horizon_us: Option<i64>,
    seed: u64,
}

impl SettingsInput {
    pub(crate) fn read(&self) -> PyResult<Settings> {
        Ok(Settings {
            rules: Rules {
                fairness_knob: self.fairness_knob,
                solver: Solver::parse(&self.solver)?,
                payment: Payment::parse(&self.payment)?,
                leftover: Leftover::parse(&self.leftover)?,
            },
            lease_us: self.lease_us,
            lease_mode: LeaseMode::parse(&self.lease_mode)?,
            min_lease_us: self.min_lease_us,
            outside_option: OutsideOption::parse(&self.outside_option)?,
            filter_key: FilterKey::parse(&self.filter_key)?,
            t_id: TIdReading::parse(&self.t_id)?,
            schedulers: SchedulerRules {
                phase_cap: PhaseCap::parse(&self.phase_cap)?,
                curve_step: self.curve_step,
                curve_error: self.curve_error,
            },
            request_factor: self.request_factor,
            restart_us: self.restart_us,
            checkpoint_us: self.checkpoint_us,
            checkpoint_every_us: self.checkpoint_every_us,
            reserve_after_us: self.reserve_after_us,
            mtbf_us: self.mtbf_us,
            mttr_us: self.mttr_us,
            quarantine_after: self.quarantine_after,
            quarantine_us: self.quarantine_us,
            horizon_us: self.horizon_us,
            seed: self.seed,
        })
    }
}

/// A policy by its name, or the driver of one in Python.
#[derive(FromPyObject)]
pub(crate) enum PolicyInput {
    Name(String),
    Driver(Py<PyAny>),
}

impl PolicyInput {
    fn make(&self, settings: &Settings, raised: &Raised) -> PyResult<Box<dyn Policy>> {
        match self {
            Self::Name(name) => policy_by_name(name, settings)
                .ok_or_else(|| sim_error(&SimError::UnknownPolicy(name.clone()))),
            Self::Driver(driver) => Ok(Box::new(OwnPolicy::new(driver, raised.clone())?)),
        }
    }
}

/// What goes wrong in a run, in the words of the driver of who did it.
fn run_error(error: &SimError, policy: &PolicyInput, agents: &[(u32, Py<PyAny>)]) -> PyErr {
    match (error, policy) {
        (SimError::Scheduler { app, job, problem }, _) => {
            let driver = agents.iter().find(|(number, _)| number == app);
            driver.map_or_else(|| sim_error(error), |(_, driver)| refusal(driver, (*job, problem)))
        }
        (SimError::Policy { app, job, problem, .. }, PolicyInput::Driver(driver)) => {
            refusal(driver, (*app, *job, problem))
        }
        _ => sim_error(error),
    }
}

/// The error of a driver for an answer that can't be carried out.
fn refusal(driver: &Py<PyAny>, about: impl for<'py> PyCallArgs<'py>) -> PyErr {
    Python::attach(|py| match driver.bind(py).call_method1("refusal", about) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    })
}

/// Plays a workload on a cluster and returns the event log as columns.
///
/// `progress(jobs_ended, jobs, at_us)` is called now and then; what it raises ends the run.
/// `policy` is a name or the driver of one in Python, `agents` are (app number, driver) of apps
/// whose schedulers are in Python.
#[pyfunction]
#[pyo3(signature = (cluster, workload, policy, settings, progress=None, agents=Vec::new()))]
pub(crate) fn simulate<'py>(
    py: Python<'py>,
    cluster: &Cluster,
    workload: &Workload,
    policy: PolicyInput,
    settings: SettingsInput,
    progress: Option<Py<PyAny>>,
    agents: Vec<(u32, Py<PyAny>)>,
) -> PyResult<Bound<'py, PyDict>> {
    let settings = settings.read()?;
    let (cluster, specs) = (&cluster.cluster, &workload.specs);
    let played = py.detach(|| {
        // Made in here, since policies and schedulers need not be able to move between threads.
        let raised = Raised::default();
        let schedulers = schedulers(&agents, &raised)?;
        let mut player = policy.make(&settings, &raised)?;
        let mut tell = |done: usize, all: usize, at_us: i64| {
            let told = Python::attach(|py| {
                py.check_signals()?;
                progress.as_ref().map_or(Ok(()), |f| f.call1(py, (done, all, at_us)).map(|_| ()))
            });
            told.map_err(|error| raised.keep(error)).is_ok()
        };
        let player = player.as_mut();
        let outcome = simulate_with(schedulers, cluster, specs, &settings, player, &mut tell);
        match raised.take() {
            Some(error) => Err(error),
            None => outcome.map_err(|error| run_error(&error, &policy, &agents)),
        }
    });
    log_to_dict(py, played?)
}

/// Version and build profile of the extension.
#[pyfunction]
pub(crate) fn build_info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let info = PyDict::new(py);
    info.set_item("version", env!("CARGO_PKG_VERSION"))?;
    info.set_item("debug", cfg!(debug_assertions))?;
    let names: Vec<&str> = themis_sim::POLICIES.iter().map(|(name, _)| *name).collect();
    info.set_item("policies", names)?;
    Ok(info)
}
