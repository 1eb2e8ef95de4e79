//! `Workload`: columns of apps and jobs, checked.

use std::collections::BTreeMap;

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use themis_core::app::{Profile, Scaling, Speeds};
use themis_core::cluster::Host;
use themis_core::schedulers::{LossCurve, SchedulerKind};
use themis_sim::{AppSpec, Claim, JobSpec, Tenant};

use crate::columns::host_rows;
use crate::errors::{TraceError, core_error, sim_error};

/// `stopping` columns are positions here, which are those of `themis.schema.workload.STOPPING`.
const STOPPING: [SchedulerKind; 5] = [
    SchedulerKind::All,
    SchedulerKind::First,
    SchedulerKind::SuccessiveHalving,
    SchedulerKind::PerformanceCurve,
    SchedulerKind::Fixed,
];

/// App columns: arrival in microseconds, stopping rule, number of jobs, most GPUs in all, and the
/// target loss (NaN: none), weight and tenant; the factors of its claims.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct AppInput<'py> {
    arrival_us: PyReadonlyArray1<'py, i64>,
    stopping: PyReadonlyArray1<'py, u8>,
    jobs: PyReadonlyArray1<'py, u32>,
    max_gpus: PyReadonlyArray1<'py, u32>,
    target_loss: PyReadonlyArray1<'py, f64>,
    weight: PyReadonlyArray1<'py, f64>,
    tenant: PyReadonlyArray1<'py, u32>,
    claimed_work: PyReadonlyArray1<'py, f64>,
    claimed_slowdown: PyReadonlyArray1<'py, f64>,
    claimed_excess: PyReadonlyArray1<'py, f64>,
}

/// Tenants, one an entry.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct TenantInput {
    name: Vec<String>,
    weight: Vec<f64>,
    guaranteed: Vec<f64>,
    quota: Vec<Vec<(i64, u32)>>,
}

impl TenantInput {
    fn read(self) -> PyResult<Vec<Tenant>> {
        let Self { name, weight, guaranteed, quota } = self;
        if [weight.len(), guaranteed.len(), quota.len()] != [name.len(); 3] {
            return Err(TraceError::new_err("tenant columns differ in length"));
        }
        let rows = name.into_iter().zip(weight).zip(guaranteed).zip(quota);
        let tenants = rows.map(|(((name, weight), guaranteed), quota)| Tenant {
            name,
            weight,
            guaranteed,
            quota,
        });
        Ok(tenants.collect())
    }
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
    gpu_milli: PyReadonlyArray1<'py, u32>,
    needs: PyReadonlyArray2<'py, i64>,
}

/// A workload's columns, checked.
#[pyclass(frozen, module = "themis._core")]
pub(crate) struct Workload {
    pub(crate) specs: themis_sim::Workload,
}

#[pymethods]
impl Workload {
    #[new]
    #[pyo3(signature = (apps, jobs, slowdowns, scaling, speeds, mixes, tenants=None))]
    fn new(
        apps: AppInput<'_>,
        jobs: JobInput<'_>,
        slowdowns: PyReadonlyArray2<'_, f64>,
        scaling: Vec<Vec<(u32, f64)>>,
        speeds: PyReadonlyArray2<'_, f64>,
        mixes: PyReadonlyArray1<'_, bool>,
        tenants: Option<TenantInput>,
    ) -> PyResult<Self> {
        let known = Known {
            profiles: read_profiles(&slowdowns, &scaling)?,
            speeds: read_speeds(&speeds, &mixes)?,
        };
        let mut specs = themis_sim::Workload {
            apps: read_apps(&apps)?,
            jobs: Vec::new(),
            tenants: tenants.map_or(Ok(Vec::new()), TenantInput::read)?,
            needs: Vec::new(),
        };
        let owners = specs.apps.iter().zip(0..).flat_map(|(app, n)| app.job_ids().map(move |_| n));
        (specs.jobs, specs.needs) = read_jobs(&jobs, owners, &known)?;
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

/// Rows of slowdowns, and of each its efficiencies by GPUs.
fn read_profiles(
    slowdowns: &PyReadonlyArray2<'_, f64>,
    scaling: &[Vec<(u32, f64)>],
) -> PyResult<Vec<Profile>> {
    let rows = slowdowns.as_array();
    if rows.ncols() != 4 || rows.nrows() != scaling.len() {
        let expected = "slowdowns need 4 columns (slot, machine, rack, cluster), and as many rows";
        return Err(TraceError::new_err(format!("{expected} as scaling")));
    }
    let profile = |(row, points): (numpy::ndarray::ArrayView1<'_, f64>, &Vec<_>)| {
        let profile = Profile::new([row[0], row[1], row[2], row[3]])?;
        Ok(profile.with_scaling(Scaling::new(points)?))
    };
    let read = rows.rows().into_iter().zip(scaling).map(profile);
    read.collect::<Result<_, _>>().map_err(|error| core_error(&error))
}

fn read_apps(apps: &AppInput<'_>) -> PyResult<Vec<AppSpec>> {
    let (arrival_us, stopping) = (apps.arrival_us.as_array(), apps.stopping.as_array());
    let (jobs, max_gpus) = (apps.jobs.as_array(), apps.max_gpus.as_array());
    let (target_loss, weight) = (apps.target_loss.as_array(), apps.weight.as_array());
    let tenant = apps.tenant.as_array();
    let rows = arrival_us.len();
    let claims = [&apps.claimed_work, &apps.claimed_slowdown, &apps.claimed_excess];
    let claims = claims.map(|column| column.as_array());
    let same =
        [stopping.len(), jobs.len(), max_gpus.len(), target_loss.len(), weight.len(), tenant.len()];
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
                weight: weight[row],
                tenant: tenant[row],
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
) -> PyResult<(Vec<JobSpec>, Vec<Host>)> {
    let (submit_us, work) = (jobs.submit_us.as_array(), jobs.work_gpu_us.as_array());
    let (gang, max) = (jobs.gang.as_array(), jobs.max.as_array());
    let (profile, checkpoint_us) = (jobs.profile.as_array(), jobs.checkpoint_us.as_array());
    let speed = jobs.speeds.as_array();
    let (iterations, bracket) = (jobs.iterations.as_array(), jobs.bracket.as_array());
    let gpu_milli = jobs.gpu_milli.as_array();
    let (needs, different) = numbered(&host_rows(&jobs.needs)?);
    let curve = [&jobs.loss_a, &jobs.loss_b, &jobs.loss_c].map(|column| column.as_array());
    let rows = submit_us.len();
    let same = [work.len(), gang.len(), max.len(), profile.len(), speed.len(), checkpoint_us.len()];
    let of_search = [iterations.len(), bracket.len(), gpu_milli.len(), needs.len()]
        .into_iter()
        .chain(curve.map(|c| c.len()));
    if same.into_iter().chain(of_search).any(|len| len != rows) {
        return Err(TraceError::new_err("job columns differ in length"));
    }
    let specs = (0..rows).map(|row| {
        let unknown =
            |what, number| TraceError::new_err(format!("job {row}: {what} {number} is unknown"));
        let slowdowns = all.profiles.get(profile[row] as usize).cloned();
        let speeds = all.speeds.get(speed[row] as usize).cloned();
        Ok(JobSpec {
            app: owners.next().unwrap_or(u32::MAX),
            submit_us: submit_us[row],
            work_gpu_us: work[row],
            gang: gang[row],
            max: max[row],
            profile: slowdowns.ok_or_else(|| unknown("profile", profile[row]))?,
            speeds: speeds
                .ok_or_else(|| unknown("speeds", speed[row]))?
                .of_share(f64::from(gpu_milli[row].min(1000)) / 1000.0),
            checkpoint_us: Some(checkpoint_us[row]).filter(|us| *us >= 0),
            iterations: known(iterations[row]),
            curve: known(curve[0][row]).map(|a| LossCurve {
                a,
                b: curve[1][row],
                c: curve[2][row],
            }),
            bracket: bracket[row],
            gpu_milli: gpu_milli[row],
            needs: needs[row],
        })
    });
    Ok((specs.collect::<PyResult<_>>()?, different))
}

/// Numbers rows of needs: the number of each row, and what the numbers mean; none where nobody needs
/// anything.
fn numbered(rows: &[[i64; 2]]) -> (Vec<u32>, Vec<Host>) {
    let mut numbers: BTreeMap<[i64; 2], u32> = BTreeMap::new();
    let mut different = Vec::new();
    let number = |row: &[i64; 2]| {
        *numbers.entry(*row).or_insert_with(|| {
            different.push(Host::new(row[0], row[1]));
            different.len() as u32 - 1
        })
    };
    let each = rows.iter().map(number).collect();
    if different.iter().all(|need| need.is_none()) {
        different.clear();
    }
    (each, different)
}
