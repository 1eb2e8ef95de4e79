//! Whole runs: idle time costs nothing, a run can be stopped, and it ends when it should.

use themis_core::fairness::{FilterKey, OutsideOption};
use themis_sim::{
    Cause, Grant, POLICIES, Plan, Policy, Settings, SimError, View, Workload, policy_by_name,
    simulate,
};

use crate::{S, cluster, free_switches, workload};

#[test]
fn an_idle_half_year_costs_nothing() {
    let gap = 180 * 86_400;
    let load = workload(&[(0, 2, 20.0), (gap, 2, 20.0)]);
    for (name, _) in POLICIES {
        let settings = free_switches();
        let mut policy = policy_by_name(name, &settings).expect("built in");
        let log = simulate(&cluster(1), &load, &settings, &mut *policy, &mut |_, _, _| true)
            .expect("valid");
        assert_eq!(log.jobs.end_us, vec![10 * S, (gap + 10) * S]);
        assert!(log.usage.at_us.len() < 10, "{name}: {:?}", log.usage.at_us);
        assert_eq!(log.leases.app.len(), 2, "{name}");
    }
}

#[test]
fn a_long_job_alone_is_one_lease_and_one_auction() {
    let days = 180.0 * 86_400.0;
    let load = workload(&[(0, 2, 2.0 * days)]);
    for (name, _) in POLICIES {
        let settings = free_switches();
        let mut policy = policy_by_name(name, &settings).expect("built in");
        let log = simulate(&cluster(1), &load, &settings, &mut *policy, &mut |_, _, _| true)
            .expect("valid");
        assert_eq!((log.end_us, log.leases.app.len()), (180 * 86_400 * S, 1), "{name}");
        assert_eq!(log.auctions.at_us.len(), usize::from(name == "themis"));
        assert_eq!(log.usage.at_us, vec![0, 180 * 86_400 * S]);
    }
}

#[test]
fn progress_is_told_and_may_stop_the_run() {
    let jobs: Vec<(i64, u32, f64)> = (0..3000).map(|at| (at, 1, 0.5)).collect();
    let load = workload(&jobs);
    let settings = free_switches();
    let mut policy = policy_by_name("fifo", &settings).expect("built in");
    let mut told = Vec::new();
    simulate(&cluster(1), &load, &settings, &mut *policy, &mut |done, jobs, at_us| {
        told.push((done, jobs, at_us));
        true
    })
    .expect("valid");
    assert!(told.len() >= 2, "{told:?}");
    assert!(told.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].2 < pair[1].2));
    assert!(told.iter().all(|(done, jobs, _)| done <= jobs && *jobs == 3000));

    let stopped = simulate(&cluster(1), &load, &settings, &mut *policy, &mut |_, _, _| false);
    assert_eq!(stopped, Err(SimError::Interrupted));
}

#[test]
fn nothing_is_begun_at_the_horizon() {
    // Job 0 is done just then; job 1 waited for its GPUs; job 2 arrives.
    let load = workload(&[(0, 4, 40.0), (5, 4, 40.0), (10, 1, 1.0)]);
    for (name, _) in POLICIES {
        let settings = Settings { horizon_us: Some(10 * S), ..free_switches() };
        let mut policy = policy_by_name(name, &settings).expect("built in");
        let log = simulate(&cluster(1), &load, &settings, &mut *policy, &mut |_, _, _| true)
            .expect("valid");
        assert_eq!(log.jobs.phase, vec![2, 5, 5], "{name}");
        assert_eq!(log.jobs.start_us, vec![0, -1, -1], "{name}");
        assert_eq!(log.apps.first_gpu_us, vec![0, -1, -1], "{name}");
        assert!(log.auctions.at_us.iter().all(|at| *at < 10 * S));
    }
}

#[test]
fn invalid_input_is_refused_before_anything_runs() {
    let good = workload(&[(0, 1, 1.0), (5, 1, 1.0)]);
    let change = |edit: &dyn Fn(&mut Workload)| {
        let mut load = good.clone();
        edit(&mut load);
        load
    };
    let bad = [
        ("arrival", change(&|w| w.apps[0].arrival_us = -1)),
        ("arrival", change(&|w| w.apps[0].arrival_us = 6 * S)),
        ("jobs", change(&|w| w.apps[1].first_job = 0)),
        ("jobs", change(&|w| w.apps[1].jobs = 0)),
        ("app", change(&|w| w.apps.truncate(1))),
        ("app", change(&|w| w.jobs[1].app = 0)),
        ("submit", change(&|w| w.jobs[1].submit_us = 4 * S)),
        ("work", change(&|w| w.jobs[1].work_gpu_us = f64::NAN)),
        ("work", change(&|w| w.jobs[1].work_gpu_us = -1.0)),
        ("max_gpus", change(&|w| w.jobs[1].max = 0)),
        ("checkpoint", change(&|w| w.jobs[1].checkpoint_us = Some(-1))),
        // Twice 3e18 GPU-microseconds: more than an app's 64-bit account holds.
        (
            "work",
            change(&|w| {
                w.apps.truncate(1);
                w.apps[0].jobs = 2;
                w.jobs[1].app = 0;
                w.jobs.iter_mut().for_each(|job| job.work_gpu_us = 3e18);
            }),
        ),
    ];
    for (wanted, load) in bad {
        let settings = free_switches();
        let mut policy = policy_by_name("fifo", &settings).expect("built in");
        let got = simulate(&cluster(1), &load, &settings, &mut *policy, &mut |_, _, _| true);
        let Err(SimError::Workload { field, .. }) = got else { panic!("{wanted}: {got:?}") };
        assert_eq!(field, wanted);
    }
}

#[test]
fn settings_out_of_range_are_refused() {
    let mut knob = free_switches();
    knob.rules.fairness_knob = f64::NAN;
    let bad = [
        ("fairness_knob", knob),
        ("lease_s", Settings { lease_us: 0, ..free_switches() }),
        ("restart_s", Settings { restart_us: -1, ..free_switches() }),
        ("checkpoint_s", Settings { checkpoint_us: i64::MAX, ..free_switches() }),
        ("min_lease_s", Settings { min_lease_us: -1, ..free_switches() }),
        ("horizon_s", Settings { horizon_us: Some(-1), ..free_switches() }),
    ];
    for (wanted, settings) in bad {
        let mut policy = policy_by_name("fifo", &settings).expect("built in");
        let load = workload(&[(0, 1, 1.0)]);
        let got = simulate(&cluster(1), &load, &settings, &mut *policy, &mut |_, _, _| true);
        let Err(SimError::Settings { field, .. }) = got else { panic!("{wanted}: {got:?}") };
        assert_eq!(field, wanted);
    }
    assert!(policy_by_name("gandivva", &free_switches()).is_none());
}

/// Gives app 0 all GPUs until app 1 has come, then app 1; notes what app 0 is worth without GPUs
/// and its rank.
#[derive(Default)]
struct Watcher(Vec<(f64, f64)>);

impl Policy for Watcher {
    fn name(&self) -> &'static str {
        "watcher"
    }

    fn decide(&mut self, view: &View<'_>) -> Plan {
        let candidate = view.app(0);
        let rank = view.rank(0).0;
        self.0.push((candidate.state.rho_empty.expect("bounded"), rank));
        let last = view.wanting().last().expect("somebody wants GPUs");
        let grants = view.app(last).state.claim_all(&mut view.offer().clone()).into_iter();
        let grant = |(_, bundle)| Grant {
            app: last,
            job: last,
            bundle,
            cause: Cause::Policy,
            lease_fraction: 1.0,
        };
        Plan { grants: grants.map(grant).collect(), auction: None }
    }
}

/// The cached rules grow with every minute without GPUs, and only with those.
#[test]
fn an_app_waits_from_when_it_lost_its_gpus() {
    // App 0 holds all four GPUs from 0 to 600 s, when app 1 takes them for 120 s.
    let load = workload(&[(0, 4, 8000.0), (100, 4, 480.0), (660, 4, 0.004)]);
    let settings = Settings {
        filter_key: FilterKey::Cached,
        outside_option: OutsideOption::Cached,
        ..free_switches()
    };
    let mut policy = Watcher::default();
    simulate(&cluster(1), &load, &settings, &mut policy, &mut |_, _, _| true).expect("valid");
    // T_ID = 2000 s x 1 active app; alone from 0 on: rho 1 when it was last asked with GPUs.
    let (without, rank) = policy.0[1];
    assert!((rank - 1.0).abs() < 1e-9, "{rank} at 600 s, after 0 s of waiting");
    assert!((without - 1.0).abs() < 1e-9, "{without} at 600 s, after 0 s of waiting");
    let (without, rank) = policy.0[2];
    assert!((rank - 3.0).abs() < 1e-9, "{rank} at 720 s, after 120 s of waiting");
    assert!((without - 3.0).abs() < 1e-9, "{without} at 720 s, after 120 s of waiting");
}
