//! `Cluster`, `Workload` and `simulate`.

use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use themis_core::SlotId;
use themis_core::app::{Profile, Speeds};
use themis_core::auction::{Leftover, Payment, Rules, Solver};
use themis_core::cluster::{MachineSpec, Topology};
use themis_core::fairness::{FilterKey, OutsideOption, TIdReading};
use themis_core::schedulers::{LossCurve, PhaseCap, SchedulerKind, SchedulerRules};
use themis_sim::{
    AppSpec, Change, ChangeCause, Claim, JobSpec, LeaseMode, Policy, Settings, SimError,
    policy_by_name, simulate_with,
};

use crate::agent::{self, Raised, schedulers};
use crate::columns::{Table, log_to_dict};
use crate::errors::{ClusterError, TraceError, core_error, sim_error};
use crate::names::Named;
use crate::policy::{self, OwnPolicy};

/// Changes of capacity, by machine number; `cause` is a position in [`CAUSES`].
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct CapacityInput<'py> {
    at_us: PyReadonlyArray1<'py, i64>,
    machine: PyReadonlyArray1<'py, u32>,
    gpus: PyReadonlyArray1<'py, u32>,
    cause: PyReadonlyArray1<'py, u8>,
}

/// Positions are those of `themis.capacity.CAUSES`.
const CAUSES: [ChangeCause; 4] =
    [ChangeCause::Planned, ChangeCause::Evicted, ChangeCause::Failure, ChangeCause::Repair];

impl CapacityInput<'_> {
    fn read(&self) -> PyResult<Vec<Change>> {
        let (at_us, machine) = (self.at_us.as_array(), self.machine.as_array());
        let (gpus, cause) = (self.gpus.as_array(), self.cause.as_array());
        let rows = at_us.len();
        if [machine.len(), gpus.len(), cause.len()].into_iter().any(|len| len != rows) {
            return Err(ClusterError::new_err("capacity columns differ in length"));
        }
        (0..rows)
            .map(|row| {
                let cause = CAUSES.get(usize::from(cause[row])).copied().ok_or_else(|| {
                    ClusterError::new_err(format!("capacity: cause {} is unknown", cause[row]))
                })?;
                Ok(Change { at_us: at_us[row], machine: machine[row], gpus: gpus[row], cause })
            })
            .collect()
    }
}

/// A cluster: its shape, one entry a machine, and changes of its capacity.
#[pyclass(frozen, module = "themis._core")]
pub(crate) struct Cluster {
    pub(crate) cluster: themis_sim::Cluster,
}

#[pymethods]
impl Cluster {
    #[new]
    #[pyo3(signature = (rack, gpus, slot_gpus, gpu_type, capacity=None))]
    fn new(
        rack: PyReadonlyArray1<'_, u32>,
        gpus: PyReadonlyArray1<'_, u32>,
        slot_gpus: PyReadonlyArray1<'_, u32>,
        gpu_type: PyReadonlyArray1<'_, u32>,
        capacity: Option<CapacityInput<'_>>,
    ) -> PyResult<Self> {
        let machines: Vec<MachineSpec> = rack
            .as_array()
            .iter()
            .zip(gpus.as_array())
            .zip(slot_gpus.as_array())
            .map(|((rack, gpus), slot)| MachineSpec { rack: *rack, gpus: *gpus, slot_gpus: *slot })
            .collect();
        let types: Vec<u32> = gpu_type.as_array().to_vec();
        let topology =
            Topology::new(&machines).and_then(|topology| topology.with_gpu_types(&types));
        let topology = topology.map_err(|error| core_error(&error))?;
        let changes = capacity.as_ref().map(CapacityInput::read).transpose()?.unwrap_or_default();
        let cluster = themis_sim::Cluster::from(topology).with_changes(&changes);
        Ok(Self { cluster: cluster.map_err(|error| sim_error(&error))? })
    }

    /// GPUs of the cluster.
    #[getter]
    fn gpus(&self) -> u32 {
        self.cluster.topology().gpus()
    }

    /// Slots of the cluster.
    #[getter]
    fn slots(&self) -> usize {
        self.cluster.topology().slots()
    }

    /// Machine, rack, GPU type and GPUs of each slot.
    fn slot_columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let topology = self.cluster.topology();
        let slots = || (0..topology.slots() as u32).map(SlotId);
        let machine = |slot| topology.machine_of(slot);
        let table = Table::new(py)
            .with("machine", slots().map(|slot| machine(slot).0).collect())?
            .with("rack", slots().map(|slot| topology.rack_of(machine(slot)).0).collect())?
            .with("gpu_type", slots().map(|slot| topology.type_of(machine(slot)) as u32).collect())?
            .with("gpus", slots().map(|slot| topology.slot_gpus(slot)).collect())?;
        Ok(table.columns)
    }
}

/// `stopping` columns are positions here, which are those of `themis.traces.schema.STOPPING`.
const STOPPING: [SchedulerKind; 5] = [
    SchedulerKind::All,
    SchedulerKind::First,
    SchedulerKind::SuccessiveHalving,
    SchedulerKind::PerformanceCurve,
    SchedulerKind::Fixed,
];

/// App columns: arrival in microseconds, stopping rule, number of jobs, most GPUs in all, and the
/// target loss (NaN: none); the factors of its claims.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct AppInput<'py> {
    arrival_us: PyReadonlyArray1<'py, i64>,
    stopping: PyReadonlyArray1<'py, u8>,
    jobs: PyReadonlyArray1<'py, u32>,
    max_gpus: PyReadonlyArray1<'py, u32>,
    target_loss: PyReadonlyArray1<'py, f64>,
    claimed_work: PyReadonlyArray1<'py, f64>,
    claimed_slowdown: PyReadonlyArray1<'py, f64>,
    claimed_excess: PyReadonlyArray1<'py, f64>,
}

/// Job columns, app by app; `checkpoint_us` is -1 where the setting counts; iterations and the
/// parameters of the loss curve are NaN where unknown.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct JobInput<'py> {
    submit_us: PyReadonlyArray1<'py, i64>,
    work_gpu_us: PyReadonlyArray1<'py, f64>,
    gang: PyReadonlyArray1<'py, u32>,
    max: PyReadonlyArray1<'py, u32>,
    profile: PyReadonlyArray1<'py, u32>,
    speeds: PyReadonlyArray1<'py, u32>,
    checkpoint_us: PyReadonlyArray1<'py, i64>,
    iterations: PyReadonlyArray1<'py, f64>,
    loss_a: PyReadonlyArray1<'py, f64>,
    loss_b: PyReadonlyArray1<'py, f64>,
    loss_c: PyReadonlyArray1<'py, f64>,
    bracket: PyReadonlyArray1<'py, u32>,
}

/// A workload's columns, checked.
#[pyclass(frozen, module = "themis._core")]
pub(crate) struct Workload {
    pub(crate) specs: themis_sim::Workload,
}

#[pymethods]
impl Workload {
    #[new]
    fn new(
        apps: AppInput<'_>,
        jobs: JobInput<'_>,
        slowdowns: PyReadonlyArray2<'_, f64>,
        speeds: PyReadonlyArray2<'_, f64>,
        mixes: PyReadonlyArray1<'_, bool>,
    ) -> PyResult<Self> {
        let known =
            Known { profiles: read_profiles(&slowdowns)?, speeds: read_speeds(&speeds, &mixes)? };
        let mut specs = themis_sim::Workload { apps: read_apps(&apps)?, jobs: Vec::new() };
        let owners = specs.apps.iter().zip(0..).flat_map(|(app, n)| app.job_ids().map(move |_| n));
        specs.jobs = read_jobs(&jobs, owners, &known)?;
        specs.check().map_err(|error| sim_error(&error))?;
        Ok(Self { specs })
    }

    /// Number of apps.
    #[getter]
    fn apps(&self) -> usize {
        self.specs.apps.len()
    }

    /// Number of jobs.
    #[getter]
    fn jobs(&self) -> usize {
        self.specs.jobs.len()
    }
}

/// What jobs refer to by number.
struct Known {
    profiles: Vec<Profile>,
    speeds: Vec<Speeds>,
}

/// Rows of speeds by GPU type (0: may not run), and whether each mixes types.
fn read_speeds(
    speeds: &PyReadonlyArray2<'_, f64>,
    mixes: &PyReadonlyArray1<'_, bool>,
) -> PyResult<Vec<Speeds>> {
    let (rows, mixes) = (speeds.as_array(), mixes.as_array());
    if rows.nrows() != mixes.len() || !rows.iter().all(|speed| speed.is_finite() && *speed >= 0.0) {
        return Err(TraceError::new_err("speeds: a row of numbers from 0 for each of mixes"));
    }
    let read = |(row, mixes): (numpy::ndarray::ArrayView1<'_, f64>, &bool)| {
        Speeds::new(&row.to_vec(), *mixes)
    };
    Ok(rows.rows().into_iter().zip(mixes).map(read).collect())
}

fn read_profiles(slowdowns: &PyReadonlyArray2<'_, f64>) -> PyResult<Vec<Profile>> {
    if slowdowns.shape()[1] != 4 {
        return Err(TraceError::new_err("slowdowns need 4 columns: slot, machine, rack, cluster"));
    }
    let rows = slowdowns.as_array();
    let profile = |row: numpy::ndarray::ArrayView1<'_, f64>| {
        Profile::new([row[0], row[1], row[2], row[3]]).map_err(|error| core_error(&error))
    };
    rows.rows().into_iter().map(profile).collect()
}

fn read_apps(apps: &AppInput<'_>) -> PyResult<Vec<AppSpec>> {
    let (arrival_us, stopping) = (apps.arrival_us.as_array(), apps.stopping.as_array());
    let (jobs, max_gpus) = (apps.jobs.as_array(), apps.max_gpus.as_array());
    let target_loss = apps.target_loss.as_array();
    let rows = arrival_us.len();
    let claims = [&apps.claimed_work, &apps.claimed_slowdown, &apps.claimed_excess];
    let claims = claims.map(|column| column.as_array());
    let same = [stopping.len(), jobs.len(), max_gpus.len(), target_loss.len()];
    if same.into_iter().chain(claims.map(|c| c.len())).any(|len| len != rows) {
        return Err(TraceError::new_err("app columns differ in length"));
    }
    let mut first_job: u32 = 0;
    (0..rows)
        .map(|row| {
            let stopping = STOPPING.get(usize::from(stopping[row])).copied().ok_or_else(|| {
                TraceError::new_err(format!(
                    "app {row}: stopping rule {} is unknown",
                    stopping[row]
                ))
            })?;
            let app = AppSpec {
                arrival_us: arrival_us[row],
                stopping,
                first_job,
                jobs: jobs[row],
                max_gpus: max_gpus[row],
                target_loss: known(target_loss[row]),
                claim: Claim {
                    work: claims[0][row],
                    slowdown: claims[1][row],
                    excess: claims[2][row],
                },
            };
            first_job = first_job
                .checked_add(jobs[row])
                .ok_or_else(|| TraceError::new_err("more than 2^32 jobs"))?;
            Ok(app)
        })
        .collect()
}

/// A number, or NaN for none.
fn known(value: f64) -> Option<f64> {
    (!value.is_nan()).then_some(value)
}

fn read_jobs(
    jobs: &JobInput<'_>,
    mut owners: impl Iterator<Item = u32>,
    all: &Known,
) -> PyResult<Vec<JobSpec>> {
    let (submit_us, work) = (jobs.submit_us.as_array(), jobs.work_gpu_us.as_array());
    let (gang, max) = (jobs.gang.as_array(), jobs.max.as_array());
    let (profile, checkpoint_us) = (jobs.profile.as_array(), jobs.checkpoint_us.as_array());
    let speed = jobs.speeds.as_array();
    let (iterations, bracket) = (jobs.iterations.as_array(), jobs.bracket.as_array());
    let curve = [&jobs.loss_a, &jobs.loss_b, &jobs.loss_c].map(|column| column.as_array());
    let rows = submit_us.len();
    let same = [work.len(), gang.len(), max.len(), profile.len(), speed.len(), checkpoint_us.len()];
    let of_search = [iterations.len(), bracket.len()].into_iter().chain(curve.map(|c| c.len()));
    if same.into_iter().chain(of_search).any(|len| len != rows) {
        return Err(TraceError::new_err("job columns differ in length"));
    }
    (0..rows)
        .map(|row| {
            let unknown = |what, number| {
                TraceError::new_err(format!("job {row}: {what} {number} is unknown"))
            };
            let slowdowns = all.profiles.get(profile[row] as usize).copied();
            let speeds = all.speeds.get(speed[row] as usize).cloned();
            Ok(JobSpec {
                app: owners.next().unwrap_or(u32::MAX),
                submit_us: submit_us[row],
                work_gpu_us: work[row],
                gang: gang[row],
                max: max[row],
                profile: slowdowns.ok_or_else(|| unknown("profile", profile[row]))?,
                speeds: speeds.ok_or_else(|| unknown("speeds", speed[row]))?,
                checkpoint_us: Some(checkpoint_us[row]).filter(|us| *us >= 0),
                iterations: known(iterations[row]),
                curve: known(curve[0][row]).map(|a| LossCurve {
                    a,
                    b: curve[1][row],
                    c: curve[2][row],
                }),
                bracket: bracket[row],
            })
        })
        .collect()
}

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
            driver.map_or_else(
                || sim_error(error),
                |(_, driver)| agent::refusal(driver, *job, problem),
            )
        }
        (SimError::Policy { app, job, problem, .. }, PolicyInput::Driver(driver)) => {
            policy::refusal(driver, *app, *job, problem)
        }
        _ => sim_error(error),
    }
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
