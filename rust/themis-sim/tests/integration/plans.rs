//! Plans that can't be carried out are refused with a typed error that says whose and why.

use themis_core::SlotId;
use themis_core::app::Speeds;
use themis_core::cluster::{Bundle, Topology};
use themis_sim::{Cause, Grant, Plan, Policy, SimError, View, simulate};

use crate::{S, cluster, free_switches, workload};

/// A grant: (app, job, [(slot, GPUs)], share of a lease).
type Answer = (u32, u32, Vec<(u32, u32)>, f64);

/// Answers with the next list of grants at each decision.
struct Scripted {
    answers: Vec<Vec<Answer>>,
    decisions: usize,
    /// What was free when it was asked.
    offers: Vec<u32>,
}

impl Scripted {
    fn new(answers: Vec<Vec<Answer>>) -> Self {
        Self { answers, decisions: 0, offers: Vec::new() }
    }
}

impl Policy for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn leases(&self) -> bool {
        false
    }

    fn decide(&mut self, view: &View<'_>) -> Plan {
        self.offers.push(view.offer().total());
        let answer = self.answers.get(self.decisions).cloned().unwrap_or_default();
        self.decisions += 1;
        let grant = |(app, job, parts, lease_fraction): Answer| Grant {
            app,
            job,
            bundle: parts.into_iter().map(|(slot, n)| (SlotId(slot), n)).collect::<Bundle>(),
            cause: Cause::Policy,
            lease_fraction,
        };
        Plan { grants: answer.into_iter().map(grant).collect(), auction: None }
    }
}

/// The refusal of a second answer, given when job 0 (2 GPUs of slot 0) runs since 0 s and job 1
/// (2 GPUs) has arrived at 10 s; four GPUs: slots 0 and 1.
fn refusal(second: Vec<Answer>) -> (u32, u32, String) {
    let load = workload(&[(0, 2, 200.0), (10, 2, 20.0)]);
    let mut policy = Scripted::new(vec![vec![(0, 0, vec![(0, 2)], 1.0)], second]);
    let error = simulate(&cluster(1), &load, &free_switches(), &mut policy, &mut |_, _, _| true)
        .expect_err("the second plan can't be carried out");
    assert_eq!(policy.offers, vec![4, 2], "what job 0 holds is not on offer");
    match error {
        SimError::Policy { policy, app, job, problem } => {
            assert_eq!(policy, "scripted");
            (app, job, problem)
        }
        other => panic!("{other}"),
    }
}

#[test]
fn busy_gpus_are_refused() {
    let (app, job, problem) = refusal(vec![(1, 1, vec![(0, 2)], 1.0)]);
    assert_eq!((app, job), (1, 1));
    assert_eq!(problem, "2 GPUs of slot 0: 0 are on offer");
}

#[test]
fn the_same_gpus_twice_are_refused() {
    let (app, job, problem) = refusal(vec![(1, 1, vec![(1, 1)], 1.0), (1, 1, vec![(1, 2)], 1.0)]);
    assert_eq!((app, job), (1, 1));
    assert_eq!(problem, "2 GPUs of slot 1: 1 are on offer");
}

#[test]
fn less_than_the_gang_and_more_than_the_most_are_refused() {
    let (.., few) = refusal(vec![(1, 1, vec![(1, 1)], 1.0)]);
    assert_eq!(few, "1 GPUs in all; 2 to 2");
    let (app, job, many) = refusal(vec![(0, 0, vec![(1, 1)], 1.0)]);
    assert_eq!((app, job, many.as_str()), (0, 0, "3 GPUs in all; 2 to 2"));
}

#[test]
fn more_than_a_slot_has_is_refused() {
    let (.., problem) = refusal(vec![(1, 1, vec![(1, 3)], 1.0)]);
    assert_eq!(problem, "3 GPUs of slot 1: 2 are on offer");
}

#[test]
fn unknown_slots_and_empty_grants_are_refused() {
    for (parts, wanted) in [
        (vec![(2, 2)], "there is no slot 2"),
        (vec![(u32::MAX, 1)], "there is no slot 4294967295"),
        (vec![], "the grant names no GPU"),
    ] {
        let refused = refusal(vec![(1, 1, parts, 1.0)]);
        assert_eq!(refused, (1, 1, wanted.into()));
    }
}

#[test]
fn unknown_apps_and_jobs_are_refused() {
    for (app, job) in [(7, 1), (1, 7), (0, 1), (u32::MAX, u32::MAX)] {
        let (named_app, named_job, problem) = refusal(vec![(app, job, vec![(1, 2)], 1.0)]);
        assert_eq!((named_app, named_job), (app, job));
        assert!(problem.contains("no such job of this app"), "{problem}");
    }
}

#[test]
fn shares_of_a_lease_outside_their_range_are_refused() {
    for share in [0.0, -1.0, 1.5, f64::NAN, f64::INFINITY] {
        let (.., problem) = refusal(vec![(1, 1, vec![(1, 2)], share)]);
        assert!(problem.contains("of a lease"), "{problem}");
    }
}

#[test]
fn one_bad_grant_refuses_the_whole_plan() {
    // The first grant is good; nothing of the plan is carried out, the run ends.
    let (app, job, _) = refusal(vec![(1, 1, vec![(1, 2)], 1.0), (0, 0, vec![(1, 1)], 1.0)]);
    assert_eq!((app, job), (0, 0));
}

#[test]
fn jobs_that_have_ended_or_have_not_come_get_nothing() {
    // Job 0 ends at 10 s, when job 1 arrives; job 2 comes at 50 s.
    let load = workload(&[(0, 2, 20.0), (10, 2, 20.0), (50, 1, 5.0)]);
    for job in [0, 2] {
        let answers = vec![vec![(0, 0, vec![(0, 2)], 1.0)], vec![(job, job, vec![(1, 2)], 1.0)]];
        let mut policy = Scripted::new(answers);
        let error =
            simulate(&cluster(1), &load, &free_switches(), &mut policy, &mut |_, _, _| true)
                .expect_err("not an open job");
        let SimError::Policy { problem, .. } = error else { panic!("{error}") };
        assert!(problem.contains("not waiting for or running"), "{problem}");
    }
}

#[test]
fn a_policy_that_gives_nothing_ends_the_run_with_every_job_unfinished() {
    let load = workload(&[(0, 2, 20.0), (10, 2, 20.0)]);
    let mut policy = Scripted::new(Vec::new());
    let log = simulate(&cluster(1), &load, &free_switches(), &mut policy, &mut |_, _, _| true)
        .expect("an idle policy is no error");
    assert_eq!(log.jobs.phase, vec![5, 5]);
    assert_eq!((log.end_us, policy.decisions), (10 * S, 2));
    assert!(log.leases.app.is_empty());
}

#[test]
fn gpus_of_a_type_that_the_job_may_not_use_are_refused() {
    let topology = Topology::clone(cluster(2).topology()).with_gpu_types(&[0, 1]).expect("valid");
    let mut load = workload(&[(0, 2, 200.0)]);
    load.jobs[0].speeds = Speeds::new(&[1.0, 0.0], true);
    let mut policy = Scripted::new(vec![vec![(0, 0, vec![(0, 1), (2, 1)], 1.0)]]);
    let play =
        simulate(&topology.into(), &load, &free_switches(), &mut policy, &mut |_, _, _| true);
    let error = play.expect_err("slot 2 is of the other type").to_string();
    assert!(error.contains("the job may not run on GPUs of these types"), "{error}");
}
