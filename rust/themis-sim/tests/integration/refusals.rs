//! Workloads and settings that the engine could not run are refused, with the field that is wrong.

use super::{S, workload};
use themis_core::cluster::Host;
use themis_core::schedulers::LossCurve;
use themis_sim::{Claim, SchedulerKind, Settings, SimError, Tenant, Workload};

/// What a change makes of a sound workload of two apps and two tenants: the part and the field that
/// are refused.
fn refused(change: impl FnOnce(&mut Workload)) -> Option<(&'static str, &'static str)> {
    let mut changed = workload(&[(0, 2, 200.0), (10, 1, 20.0)]);
    let tenant = |name: &str| Tenant {
        name: name.into(),
        weight: 1.0,
        guaranteed: 0.25,
        quota: vec![(0, 4), (S, 2)],
    };
    changed.tenants = vec![tenant("x"), tenant("y")];
    assert_eq!(changed.check(), Ok(()));
    change(&mut changed);
    match changed.check() {
        Err(SimError::Workload { what, field, .. }) => Some((what, field)),
        _ => None,
    }
}

#[test]
fn apps_that_break_a_rule() {
    type Change = fn(&mut Workload);
    let changes: [(&str, Change); 8] = [
        ("arrival", |w| w.apps[0].arrival_us = -1),
        ("arrival", |w| w.apps[0].arrival_us = 20 * S),
        ("jobs", |w| w.apps[1].first_job = 0),
        ("max_gpus", |w| w.apps[1].max_gpus = 0),
        ("target_loss", |w| w.apps[0].target_loss = Some(f64::NAN)),
        ("weight", |w| w.apps[0].weight = 0.0),
        ("tenant", |w| w.apps[0].tenant = 2),
        ("claim", |w| w.apps[0].claim = Claim { work: 0.0, ..Claim::TRUE }),
    ];
    for (field, change) in changes {
        assert_eq!(refused(change), Some(("app", field)));
    }
}

#[test]
fn jobs_that_break_a_rule() {
    type Change = fn(&mut Workload);
    let changes: [(&str, Change); 13] = [
        ("app", |w| w.jobs[1].app = 0),
        ("submit", |w| w.jobs[1].submit_us = 0),
        ("work", |w| w.jobs[1].work_gpu_us = f64::INFINITY),
        ("work", |w| w.jobs[1].work_gpu_us = -1.0),
        ("max_gpus", |w| w.jobs[0].max = 1),
        ("gpu_milli", |w| w.jobs[1].gpu_milli = 0),
        ("gpu_milli", |w| w.jobs[0].gpu_milli = 500),
        ("gpu_milli", |w| {
            w.jobs[1].gpu_milli = 500;
            w.apps[1].stopping = SchedulerKind::SuccessiveHalving;
        }),
        ("needs", |w| w.jobs[1].needs = 1),
        ("gang", |w| w.apps[0].max_gpus = 1),
        ("iterations", |w| w.jobs[0].iterations = Some(0.0)),
        ("loss curve", |w| w.jobs[0].curve = Some(LossCurve { a: 1.0, b: 1.0, c: 0.0 })),
        ("checkpoint", |w| w.jobs[0].checkpoint_us = Some(-1)),
    ];
    for (field, change) in changes {
        assert_eq!(refused(change), Some(("job", field)));
    }
}

#[test]
fn tenants_and_needs_that_break_a_rule() {
    assert_eq!(refused(|w| w.tenants[1].weight = f64::NAN), Some(("tenant", "weight")));
    assert_eq!(refused(|w| w.tenants[0].guaranteed = -0.1), Some(("tenant", "guaranteed")));
    assert_eq!(refused(|w| w.tenants[0].guaranteed = 0.8), Some(("tenant", "guaranteed")));
    // Nothing would be left for the tenant that is guaranteed nothing.
    let nothing_left = |w: &mut Workload| {
        (w.tenants[0].guaranteed, w.tenants[1].guaranteed) = (1.0, 0.0);
    };
    assert_eq!(refused(nothing_left), Some(("tenant", "guaranteed")));
    assert_eq!(refused(|w| w.tenants[0].quota.reverse()), Some(("tenant", "quota")));
    let too_much = |w: &mut Workload| w.needs = vec![Host::new(i64::MAX / 2, 0)];
    assert_eq!(refused(too_much), Some(("need", "host")));
    let too_long = |w: &mut Workload| {
        w.jobs[0].work_gpu_us = 4e18;
        w.jobs[0].speeds = themis_core::app::Speeds::ALIKE;
        w.jobs[0].profile =
            themis_core::app::Profile::new([1.0, 1.0, 2.0, 4.0]).expect("slowdowns that grow");
    };
    assert_eq!(refused(too_long), Some(("app", "work")));
}

#[test]
fn settings_out_of_range() {
    type Change = fn(&mut Settings);
    let changes: [(&str, Change); 12] = [
        ("fairness_knob", |s| s.rules.fairness_knob = 1.5),
        ("lease_s", |s| s.lease_us = 0),
        ("curve_step", |s| s.schedulers.curve_step = 0.0),
        ("curve_error", |s| s.schedulers.curve_error = f64::NAN),
        ("request_factor", |s| s.request_factor = 0.5),
        ("checkpoint_every_s", |s| s.checkpoint_every_us = Some(0)),
        ("mtbf_s", |s| s.mtbf_us = Some(0)),
        ("mttr_s", |s| s.mttr_us = 0),
        ("quarantine_s", |s| s.quarantine_us = i64::MAX),
        ("quarantine_after", |s| s.quarantine_after = Some(0)),
        ("restart_s", |s| s.restart_us = -1),
        ("horizon_s", |s| s.horizon_us = Some(-1)),
    ];
    assert_eq!(Settings::default().check(), Ok(()));
    for (field, change) in changes {
        let mut settings = Settings::default();
        change(&mut settings);
        match settings.check() {
            Err(SimError::Settings { field: found, .. }) => assert_eq!(found, field),
            other => panic!("{field}: {other:?}"),
        }
    }
}
