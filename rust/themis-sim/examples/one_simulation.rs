//! One simulation of a policy and size, always the same: the load whose instructions
//! `bench/instructions.py` counts. Prints when it ended, so that nothing is left out as unused.
//!
//!     cargo run --release --example one_simulation -- themis 2000 256

#![expect(clippy::print_stdout, reason = "its output")]

use std::error::Error;

use themis_core::app::{Profile, Speeds};
use themis_core::cluster::{MachineSpec, Topology};
use themis_sim::{
    AppSpec, Claim, Cluster, JobSpec, SchedulerKind, Settings, Workload, policy_by_name, simulate,
};

/// Work arrives this much faster than the cluster could do it.
const LOAD: f64 = 1.1;
/// Gangs in turn: 16 of 20 jobs ask for one GPU.
const GANGS: [u32; 20] = [1, 1, 2, 1, 1, 1, 8, 1, 1, 1, 1, 1, 4, 1, 1, 1, 1, 16, 1, 1];
const SLOWDOWNS: [[f64; 4]; 3] = [[1.0; 4], [1.0, 1.1, 1.4, 1.9], [1.0, 1.1, 2.0, 3.5]];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [policy, jobs, gpus] = arguments.as_slice() else {
        return Err("expected a policy, a number of jobs and a number of GPUs".into());
    };
    let (jobs, gpus): (u32, u32) = (jobs.parse()?, gpus.parse()?);
    let machines =
        (0..gpus / 8).map(|machine| MachineSpec { rack: machine / 8, gpus: 8, slot_gpus: 8 });
    let cluster = Cluster::from(Topology::new(&machines.collect::<Vec<_>>())?);
    let settings = Settings::default();
    let mut policy = policy_by_name(policy, &settings).ok_or("there is no such policy")?;
    let workload = workload(jobs, gpus)?;
    let log = simulate(&cluster, &workload, &settings, policy.as_mut(), &mut |_, _, _| true)?;
    println!("{} us, {} leases", log.end_us, log.leases.app.len());
    Ok(())
}

/// Apps of one job each, from ten seconds to a day long, at even distances in time.
fn workload(jobs: u32, gpus: u32) -> Result<Workload, themis_core::CoreError> {
    // Multiples of the golden ratio fall evenly on all parts of a turn.
    let duration_s = |job: u32| 10.0 * 8640_f64.powf((f64::from(job) * 0.618_034).fract());
    let gang = |job: u32| GANGS[job as usize % GANGS.len()];
    let work_gpu_s: f64 = (0..jobs).map(|job| duration_s(job) * f64::from(gang(job))).sum();
    let every_us = work_gpu_s * 1e6 / f64::from(gpus) / LOAD / f64::from(jobs);
    let mut workload = Workload::default();
    for job in 0..jobs {
        let arrival_us = (f64::from(job) * every_us) as i64;
        workload.apps.push(AppSpec {
            arrival_us,
            stopping: SchedulerKind::All,
            max_gpus: gang(job),
            target_loss: None,
            claim: Claim::TRUE,
            weight: 1.0,
            tenant: 0,
            first_job: job,
            jobs: 1,
        });
        workload.jobs.push(JobSpec {
            app: job,
            submit_us: arrival_us,
            work_gpu_us: duration_s(job) * f64::from(gang(job)) * 1e6,
            gang: gang(job),
            max: gang(job),
            profile: Profile::new(SLOWDOWNS[job as usize % SLOWDOWNS.len()])?,
            speeds: Speeds::ALIKE,
            checkpoint_us: None,
            iterations: None,
            curve: None,
            bracket: 0,
            gpu_milli: 1000,
            needs: 0,
        });
    }
    Ok(workload)
}
