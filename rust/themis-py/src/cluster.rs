//! `Cluster`: its shape and its capacity over time.

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use themis_core::SlotId;
use themis_core::cluster::{Host, MachineSpec, Topology};
use themis_sim::{Change, ChangeCause};

use crate::columns::{Table, host_rows};
use crate::errors::{ClusterError, core_error, sim_error};

/// Changes of capacity, by machine number; `cause` is a position in [`CAUSES`].
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct CapacityInput<'py> {
    at_us: PyReadonlyArray1<'py, i64>,
    machine: PyReadonlyArray1<'py, u32>,
    gpus: PyReadonlyArray1<'py, u32>,
    cause: PyReadonlyArray1<'py, u8>,
}

/// Positions are those of `themis.cluster.capacity.CAUSES`.
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

/// An amount of a machine's host resource in the units of the engine: thousandths of those of a
/// need ([`themis_sim::Workload::needs_of`]); below 0: not limited.
fn units(amount: i64) -> i64 {
    if amount < 0 { Host::UNLIMITED } else { amount.saturating_mul(1000).min(Host::UNLIMITED) }
}

/// A cluster: its shape, one entry a machine, and changes of its capacity.
#[pyclass(frozen, module = "themis._core")]
pub(crate) struct Cluster {
    pub(crate) cluster: themis_sim::Cluster,
}

#[pymethods]
impl Cluster {
    #[new]
    #[pyo3(signature = (rack, gpus, slot_gpus, gpu_type, capacity=None, host=None))]
    fn new(
        rack: PyReadonlyArray1<'_, u32>,
        gpus: PyReadonlyArray1<'_, u32>,
        slot_gpus: PyReadonlyArray1<'_, u32>,
        gpu_type: PyReadonlyArray1<'_, u32>,
        capacity: Option<CapacityInput<'_>>,
        host: Option<PyReadonlyArray2<'_, i64>>,
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
        let mut topology = topology.map_err(|error| core_error(&error))?;
        if let Some(host) = host {
            let rows = host_rows(&host)?.into_iter();
            let rows = rows.map(|[cpu, memory]| Host::new(units(cpu), units(memory)));
            let limited = topology.with_host(&rows.collect::<Vec<_>>());
            topology = limited.map_err(|error| core_error(&error))?;
        }
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
