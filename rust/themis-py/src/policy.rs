//! A policy in Python: what it sees, and what it answered.
//!
//! A `driver` (`themis.policies.driver.Driver`) stands between: it makes the view and checks the form
//! of the answer; whether it can be carried out is checked by the engine, as for every policy.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use themis_core::SlotId;
use themis_core::app::AppState;
use themis_core::cluster::{Bundle, FreeSet, Host, Locality, TypeSet};
use themis_sim::{Failed, Grant, Plan, Policy, View, Wishes};

use crate::agent::Raised;
use crate::columns::Table;

/// A policy whose decisions are made in Python.
#[derive(Debug)]
pub(crate) struct OwnPolicy {
    driver: Py<PyAny>,
    name: String,
    leases: bool,
    raised: Raised,
    /// What it asked for beside its last plan; none after a failure.
    wishes: Option<Wishes>,
}

impl OwnPolicy {
    pub(crate) fn new(driver: &Py<PyAny>, raised: Raised) -> PyResult<Self> {
        Python::attach(|py| {
            let bound = driver.bind(py);
            let (name, leases) = (bound.getattr("name")?, bound.getattr("leases")?);
            Ok(Self {
                driver: driver.clone_ref(py),
                name: name.extract()?,
                leases: leases.extract()?,
                raised,
                wishes: None,
            })
        })
    }
}

/// A grant: app, job, GPUs of each slot, the share of a lease.
type GrantInput = (u32, u32, Vec<(u32, u32)>, f64);

/// What a driver hands over after a decision.
#[derive(FromPyObject)]
struct Answer {
    grants: Vec<GrantInput>,
    rejects: Vec<(u32, u32, String)>,
    wake_us: Option<i64>,
}

impl Policy for OwnPolicy {
    fn name(&self) -> &str {
        &self.name
    }

    fn leases(&self) -> bool {
        self.leases
    }

    fn decide(&mut self, view: &View<'_>) -> Plan {
        let answer = Python::attach(|py| {
            let (apps, jobs, offer) = seen(py, view)?;
            let now_s = view.now_us() as f64 / 1e6;
            let answer = self.driver.bind(py).call_method1("decide", (now_s, apps, jobs, offer))?;
            answer.extract::<Answer>()
        });
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                self.raised.keep(error);
                self.wishes = None;
                return Plan::default();
            }
        };
        self.wishes = Some(Wishes { wake_us: answer.wake_us, rejects: answer.rejects });
        let grant = |(app, job, slots, lease_fraction): GrantInput| {
            let bundle = slots.into_iter().map(|(slot, gpus)| (SlotId(slot), gpus)).collect();
            Grant { lease_fraction, ..Grant::new(app, job, bundle) }
        };
        Plan { grants: answer.grants.into_iter().map(grant).collect(), auction: None }
    }

    fn wishes(&mut self) -> Result<Wishes, Failed> {
        self.wishes.take().ok_or(Failed)
    }
}

/// The columns of apps and jobs at a decision, and the offer.
fn seen<'py>(
    py: Python<'py>,
    view: &View<'_>,
) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>, PolicyOffer)> {
    let mut apps = Apps::default();
    let mut jobs = Jobs::default();
    let mut offer = PolicyOffer { free: view.offer().clone(), apps: Vec::new() };
    for app in view.active_apps() {
        let told = view.reported(app);
        let truth = (!view.tells_truth(app)).then(|| view.app(app).state);
        apps.push(view, app, &told.state);
        for (job, state) in told.jobs.iter().zip(&told.state.jobs) {
            jobs.push(view, app, *job, state);
        }
        offer.apps.push(Claimant { told: told.state, truth });
    }
    Ok((apps.into_columns(py)?, jobs.into_columns(py)?, offer))
}

#[derive(Default)]
struct Apps {
    app: Vec<u32>,
    arrival_s: Vec<f64>,
    gpus: Vec<u32>,
    offered_gpus: Vec<u32>,
    max_gpus: Vec<u32>,
    unmet_gpus: Vec<u32>,
    attained_gpu_s: Vec<f64>,
    work_left_gpu_s: Vec<f64>,
    t_id_s: Vec<f64>,
}

impl Apps {
    fn push(&mut self, view: &View<'_>, app: u32, state: &AppState) {
        self.app.push(app);
        self.arrival_s.push(view.arrival_us(app) as f64 / 1e6);
        self.gpus.push(state.held_gpus());
        self.offered_gpus.push(state.jobs.iter().map(|job| job.previous.gpus()).sum());
        self.max_gpus.push(state.cap);
        self.unmet_gpus.push(state.unmet());
        self.attained_gpu_s.push(view.attained_gpu_us(app) as f64 / 1e6);
        self.work_left_gpu_s.push(state.service_left_gpu_s());
        self.t_id_s.push(state.t_id_s);
    }

    fn into_columns(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let table = Table::new(py)
            .with("app", self.app)?
            .with("arrival_s", self.arrival_s)?
            .with("gpus", self.gpus)?
            .with("offered_gpus", self.offered_gpus)?
            .with("max_gpus", self.max_gpus)?
            .with("unmet_gpus", self.unmet_gpus)?
            .with("attained_gpu_s", self.attained_gpu_s)?
            .with("work_left_gpu_s", self.work_left_gpu_s)?
            .with("t_id_s", self.t_id_s)?;
        Ok(table.columns)
    }
}

#[derive(Default)]
struct Jobs {
    job: Vec<u32>,
    app: Vec<u32>,
    submit_s: Vec<f64>,
    gang_size: Vec<u32>,
    max_gpus: Vec<u32>,
    gpus: Vec<u32>,
    offered_gpus: Vec<u32>,
    attained_gpu_s: Vec<f64>,
    work_left_gpu_s: Vec<f64>,
    requested_s: Vec<f64>,
    slowdowns: Vec<f64>,
    speeds: Vec<f64>,
    cpu_cores_per_gpu: Vec<f64>,
    memory_gib_per_gpu: Vec<f64>,
}

impl Jobs {
    fn push(&mut self, view: &View<'_>, app: u32, number: u32, job: &themis_core::app::Job) {
        self.job.push(number);
        self.app.push(app);
        self.submit_s.push(view.submit_us(number) as f64 / 1e6);
        self.gang_size.push(job.gang);
        self.max_gpus.push(job.max);
        self.gpus.push(job.held.gpus());
        self.offered_gpus.push(job.previous.gpus());
        self.attained_gpu_s.push(view.job_attained_gpu_us(number) as f64 / 1e6);
        self.work_left_gpu_s.push(job.work_left_gpu_s);
        self.requested_s.push(view.requested_us(number) as f64 / 1e6);
        self.slowdowns.extend(Locality::ALL.map(|level| job.profile.slowdown(level)));
        let [cpu_cores, memory_gib] = in_words(job.needs);
        self.cpu_cores_per_gpu.push(cpu_cores);
        self.memory_gib_per_gpu.push(memory_gib);
        let types = 0..view.topology().types();
        self.speeds.extend(types.map(|gpu_type| job.speeds.on(TypeSet::one(gpu_type))));
    }

    fn into_columns(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let rows = self.job.len();
        let table = Table::new(py)
            .with("job", self.job)?
            .with("app", self.app)?
            .with("submit_s", self.submit_s)?
            .with("gang_size", self.gang_size)?
            .with("max_gpus", self.max_gpus)?
            .with("gpus", self.gpus)?
            .with("offered_gpus", self.offered_gpus)?
            .with("attained_gpu_s", self.attained_gpu_s)?
            .with("work_left_gpu_s", self.work_left_gpu_s)?
            .with("requested_s", self.requested_s)?
            .with("cpu_cores_per_gpu", self.cpu_cores_per_gpu)?
            .with("memory_gib_per_gpu", self.memory_gib_per_gpu)?;
        let slowdowns = self.slowdowns.into_pyarray(py).reshape([rows, Locality::ALL.len()])?;
        table.columns.set_item("slowdowns", slowdowns)?;
        let types = self.speeds.len().checked_div(rows).unwrap_or(0);
        let speeds = self.speeds.into_pyarray(py).reshape([rows, types])?;
        table.columns.set_item("speeds", speeds)?;
        Ok(table.columns)
    }
}

/// CPU cores and GiB of memory of an amount in the units of the engine; infinite where a machine is
/// not limited.
fn in_words(host: Host) -> [f64; 2] {
    let [cpu, memory] = host.amounts();
    let of = |amount: i64, units: f64| {
        if amount >= Host::UNLIMITED / 2 { f64::INFINITY } else { amount as f64 / units }
    };
    [of(cpu, 1e6), of(memory, 1024e3)]
}

/// An app that may claim GPUs: as its agent reports it, and as it is where that differs.
struct Claimant {
    told: AppState,
    truth: Option<AppState>,
}

impl Claimant {
    fn state(&self) -> &AppState {
        self.truth.as_ref().unwrap_or(&self.told)
    }

    fn hold(&mut self, job: usize, bundle: &Bundle) {
        self.told.hold(job, bundle);
        if let Some(truth) = &mut self.truth {
            truth.hold(job, bundle);
        }
    }
}

/// GPUs of each slot.
type Slots = Vec<(u32, u32)>;

fn slots(bundle: &Bundle) -> Slots {
    bundle.iter().map(|(slot, gpus)| (slot.0, gpus)).collect()
}

/// What is on offer at a decision and not claimed yet. Apps are given by their rows, jobs by their
/// positions among those of the app.
#[pyclass(module = "themis._core")]
pub(crate) struct PolicyOffer {
    free: FreeSet,
    apps: Vec<Claimant>,
}

#[pymethods]
impl PolicyOffer {
    /// GPUs of each slot.
    fn free<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        let slots = (0..self.free.topology().slots() as u32).map(SlotId);
        slots.map(|slot| self.free.slot(slot)).collect::<Vec<_>>().into_pyarray(py)
    }

    /// CPU cores and GiB of memory that nobody has of each machine; none where no machine is limited.
    fn host<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let host = self.free.host();
        let amounts: Vec<f64> = host.iter().flat_map(|host| in_words(*host)).collect();
        amounts.into_pyarray(py).reshape([host.len(), 2])
    }

    /// GPUs in all.
    fn total(&self) -> u32 {
        self.free.total()
    }

    /// GPUs that the cap of an app and the quota of its tenant still allow.
    fn spare(&self, app: usize) -> u32 {
        self.apps[app].told.spare_of(&self.free)
    }

    /// What a job keeps and has claimed, and what it had until now.
    fn holdings(&self, app: usize, job: usize) -> (Slots, Slots) {
        let job = &self.apps[app].told.jobs[job];
        (slots(&job.held), slots(&job.previous))
    }

    /// rho of each app with what it keeps and has claimed; infinite without GPUs.
    fn rho<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        let topology = self.free.topology();
        let rho = |app: &Claimant| app.told.rho_at(&app.told.held_rates(topology));
        self.apps.iter().map(rho).collect::<Vec<_>>().into_pyarray(py)
    }

    /// rho of each app if the whole cluster were its own from now on.
    fn best_rho<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        let topology = self.free.topology();
        let best = |app: &Claimant| app.told.best_rho(topology);
        self.apps.iter().map(best).collect::<Vec<_>>().into_pyarray(py)
    }

    /// Takes at most `most` GPUs that speed a job up most; none if none help.
    fn claim(&mut self, app: usize, job: usize, most: u32) -> Option<Slots> {
        let state = self.apps[app].state();
        let bundle = state.jobs[job].claim(&self.free, state.spare_of(&self.free).min(most))?;
        state.take(&mut self.free, job, &bundle);
        self.apps[app].hold(job, &bundle);
        Some(slots(&bundle))
    }

    /// Takes all that helps an app, as its scheduler divides it: positions of jobs, and GPUs.
    fn claim_app(&mut self, app: usize) -> Vec<(usize, Slots)> {
        let mut parts = Vec::new();
        while let Some((job, bundle)) = self.apps[app].state().claim_one(&self.free) {
            self.apps[app].told.take(&mut self.free, job, &bundle);
            self.apps[app].hold(job, &bundle);
            parts.push((job, slots(&bundle)));
        }
        parts
    }
}
