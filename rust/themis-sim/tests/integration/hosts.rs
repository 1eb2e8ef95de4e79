//! Machines of few CPU cores and little memory: what GPUs need beside is never taken twice.
//!
//! The engine asserts that after every instant in these builds.

use themis_core::cluster::{Host, MachineSpec, Topology};
use themis_sim::{
    Change, ChangeCause, Cluster, Grant, LeaseMode, POLICIES, Plan, Policy, SchedulerKind,
    Settings, SimError, View, Workload, policy_by_name, simulate,
};

use crate::{S, free_switches, workload};

/// Machines of 4 GPUs, two a slot, with so many cores and GiB each: in thousandths of the units of
/// needs.
fn cluster(machines: &[(i64, i64)]) -> Cluster {
    let machine = MachineSpec { rack: 0, gpus: 4, slot_gpus: 2 };
    let topology = Topology::new(&vec![machine; machines.len()]).expect("valid");
    let host = machines.iter().map(|(cores, gib)| Host::new(1_000_000 * cores, 1_024_000 * gib));
    Cluster::from(topology.with_host(&host.collect::<Vec<_>>()).expect("valid"))
}

/// The same workload with cores and GiB that each GPU needs, job by job.
fn needing(mut load: Workload, needs: &[(i64, i64)]) -> Workload {
    load.needs = needs.iter().map(|(cores, gib)| Host::new(1000 * cores, 1024 * gib)).collect();
    (0..).zip(&mut load.jobs).for_each(|(row, job)| job.needs = row);
    load
}

/// Gives everybody in line all GPUs of slot 0 on.
struct Careless;

impl Policy for Careless {
    fn name(&self) -> &'static str {
        "careless"
    }

    fn decide(&mut self, view: &View<'_>) -> Plan {
        let mut free = view.offer().clone();
        let grants = view.waiting_jobs().map(|job| {
            let found = themis_core::app::Job::waiting(
                view.gang(job),
                view.gang(job),
                1.0,
                themis_core::app::Profile::PERFECT,
            );
            let bundle = found.claim(&free, view.gang(job)).expect("there are GPUs");
            free.take(&bundle);
            Grant::new(view.app_of(job), job, bundle)
        });
        Plan { grants: grants.collect(), auction: None }
    }
}

#[test]
fn a_plan_that_needs_more_than_a_machine_has_is_refused() {
    let load = needing(workload(&[(0, 2, 20.0), (0, 2, 20.0)]), &[(3, 0), (3, 0)]);
    let play = |cores| {
        let cluster = cluster(&[(cores, 0)]);
        simulate(&cluster, &load, &free_switches(), &mut Careless, &mut |_, _, _| true)
    };
    assert!(play(12).is_ok());
    let Err(SimError::Policy { policy, app, job, problem }) = play(11) else {
        panic!("eleven cores are too few")
    };
    assert_eq!((policy.as_str(), app, job), ("careless", 1, 1));
    assert_eq!(problem, "2 GPUs of machine 0: it lacks the CPU cores or memory that they need");
}

#[test]
fn what_can_never_be_had_is_infeasible_and_blocks_nobody() {
    // Each machine serves two GPUs of job 0, which asks for 5; the memory of one serves job 1.
    let load = needing(workload(&[(0, 5, 50.0), (0, 4, 40.0)]), &[(4, 0), (1, 8)]);
    for (name, _) in POLICIES {
        let mut policy = policy_by_name(name, &free_switches()).expect("built in");
        let cluster = cluster(&[(8, 16), (8, 32)]);
        let log = simulate(&cluster, &load, &free_switches(), &mut *policy, &mut |_, _, _| true);
        let log = log.expect("valid");
        assert_eq!(log.jobs.phase, vec![4, 2], "{name}");
        assert_eq!(log.jobs.end_us[1], 10 * S, "{name}");
        let reason = &log.jobs.reasons[log.jobs.reason[0] as usize];
        let told = "needs 5 GPUs with 4 CPU cores and 0 GiB of memory each, the cluster has 4 \
                    at most";
        assert_eq!(reason, told);
    }
}

#[test]
fn a_gang_is_promised_gpus_with_what_they_need() {
    // Jobs of one GPU and three cores each come all the time and take turns at the 8 cores of the
    // machine; the gang needs them all.
    let mut jobs: Vec<(i64, u32, f64)> = (0..40).map(|at| (5 * at, 1, 20.0)).collect();
    jobs.insert(2, (5, 2, 200.0));
    let needs: Vec<(i64, i64)> =
        jobs.iter().map(|(_, gang, _)| (2 + i64::from(*gang), 0)).collect();
    let load = needing(workload(&jobs), &needs);
    let start = |reserve_after_us, lease_mode| {
        let settings =
            Settings { reserve_after_us, lease_mode, lease_us: 10 * S, ..free_switches() };
        let mut policy = policy_by_name("srtf", &settings).expect("built in");
        let log =
            simulate(&cluster(&[(8, 0)]), &load, &settings, &mut *policy, &mut |_, _, _| true);
        let log = log.expect("valid");
        assert!(log.jobs.phase.iter().all(|phase| *phase == 2));
        (log.jobs.start_us[2], log.jobs.promised_us[2])
    };
    for mode in [LeaseMode::Aligned, LeaseMode::Rolling] {
        let (start_us, promised_us) = start(Some(20 * S), mode);
        // It waits from 5 s on; the promise falls due within a lease.
        assert!((25 * S..=45 * S).contains(&start_us), "{start_us}");
        assert_eq!(start_us, promised_us);
        assert!(start(None, mode).0 > start_us);
    }
}

/// Numbers from a seed, each below a limit.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// Apps of up to three jobs of different gangs, shares and needs.
fn random_load(dice: &mut Dice) -> Workload {
    let jobs: Vec<(i64, u32, f64)> = (0..24)
        .map(|_| (dice.roll(60) as i64, 1 + dice.roll(3) as u32, 1.0 + dice.roll(60) as f64))
        .collect();
    let mut jobs = jobs;
    jobs.sort_by_key(|job| job.0);
    let needs: Vec<(i64, i64)> =
        jobs.iter().map(|_| (dice.roll(4) as i64, 2 * dice.roll(3) as i64)).collect();
    let mut load = needing(workload(&jobs), &needs);
    for job in &mut load.jobs {
        if job.gang == 1 && dice.roll(2) == 0 {
            job.gpu_milli = [250, 500, 700][dice.roll(3) as usize];
            job.speeds = job.speeds.of_share(f64::from(job.gpu_milli) / 1000.0);
        } else {
            job.max = job.gang + dice.roll(3) as u32;
        }
    }
    // Three jobs an app.
    let apps = load.apps.chunks(3).enumerate().map(|(number, apps)| {
        let stopping = [SchedulerKind::All, SchedulerKind::First][dice.roll(2) as usize];
        themis_sim::AppSpec { stopping, first_job: 3 * number as u32, jobs: 3, ..apps[0].clone() }
    });
    load.apps = apps.collect();
    (0..).zip(&mut load.jobs).for_each(|(row, job)| job.app = row / 3);
    load
}

#[test]
fn nothing_is_taken_twice_whatever_happens() {
    for seed in (0..60).chain([225]) {
        let mut dice = Dice(seed);
        let load = random_load(&mut dice);
        let change = |at: i64, gpus, cause| Change { at_us: at * S, machine: 0, gpus, cause };
        let changes = [
            change(20, 1, ChangeCause::Planned),
            change(40, 4, ChangeCause::Planned),
            change(50, 0, ChangeCause::Failure),
            change(70, 4, ChangeCause::Repair),
        ];
        let cluster = cluster(&[(8, 16), (9, 12), (12, 6)]);
        let cluster =
            if seed % 2 == 0 { cluster } else { cluster.with_changes(&changes).expect("valid") };
        for (name, _) in POLICIES {
            let lease_mode = [LeaseMode::Aligned, LeaseMode::Rolling][dice.roll(2) as usize];
            let reserve_after_us = [None, Some(15 * S)][dice.roll(2) as usize];
            let lease_us = 7 * S;
            let settings =
                Settings { lease_us, lease_mode, reserve_after_us, seed, ..free_switches() };
            let mut policy = policy_by_name(name, &settings).expect("built in");
            let log = simulate(&cluster, &load, &settings, &mut *policy, &mut |_, _, _| true);
            let log = log.unwrap_or_else(|error| panic!("{name}, seed {seed}: {error}"));
            // Whatever can run ends: done, or dropped by its app.
            let ended = log.jobs.phase.iter().all(|phase| matches!(phase, 2..=4));
            assert!(ended, "{name}, seed {seed}: {:?}", log.jobs.phase);
        }
    }
}
