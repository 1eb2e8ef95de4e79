//! The simulator from outside: a policy that answers nonsense, idle time, interrupts, horizons.

mod hosts;
mod plans;
mod refusals;
mod runs;

use themis_core::app::{Profile, Speeds};
use themis_core::cluster::{MachineSpec, Topology};
use themis_sim::{AppSpec, Claim, Cluster, JobSpec, SchedulerKind, Settings, Workload};

/// One second in microseconds.
const S: i64 = 1_000_000;

/// Machines of four GPUs, two a slot, in one rack.
fn cluster(machines: usize) -> Cluster {
    let machine = MachineSpec { rack: 0, gpus: 4, slot_gpus: 2 };
    Cluster::from(Topology::new(&vec![machine; machines]).expect("valid"))
}

/// Apps of one rigid job each: (submitted in s, GPUs, GPU-seconds of work), sorted by time.
fn workload(jobs: &[(i64, u32, f64)]) -> Workload {
    let apps = (0..).zip(jobs).map(|(number, (submit_s, ..))| AppSpec {
        arrival_us: submit_s * S,
        stopping: SchedulerKind::All,
        first_job: number,
        jobs: 1,
        max_gpus: u32::MAX,
        target_loss: None,
        claim: Claim::TRUE,
        weight: 1.0,
        tenant: 0,
    });
    let specs = (0..).zip(jobs).map(|(app, (submit_s, gang, work_s))| JobSpec {
        app,
        submit_us: submit_s * S,
        work_gpu_us: work_s * 1e6,
        gang: *gang,
        max: *gang,
        profile: Profile::PERFECT,
        speeds: Speeds::ALIKE,
        checkpoint_us: None,
        iterations: None,
        curve: None,
        bracket: 0,
        gpu_milli: 1000,
        needs: 0,
    });
    Workload { apps: apps.collect(), jobs: specs.collect(), tenants: Vec::new(), needs: Vec::new() }
}

/// Settings under which a switch costs nothing.
fn free_switches() -> Settings {
    Settings { restart_us: 0, checkpoint_us: 0, ..Settings::default() }
}
