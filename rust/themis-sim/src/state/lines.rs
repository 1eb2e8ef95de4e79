//! Apps in want of GPUs, those that ask for the same together.

use std::collections::{BTreeMap, BTreeSet};

use crate::workload::{AppSpec, JobSpec, Workload};
use themis_core::cluster::{Host, Locality};
use themis_core::schedulers::AppScheduler;

/// What an app of one job asks for while it has nothing: all that says what it would take of any
/// offer, what its tenant and weight entitle it to, and whether its loss is known; but for the
/// curve of its scaling and the speeds of GPU types, which have no order. By work left and loss
/// such apps may still differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    gang: u32,
    max: u32,
    cap: u32,
    tenant: u32,
    has_curve: bool,
    needs: Host,
    /// Bits of floats: slowdowns, weight, what it makes of slowdowns.
    figures: [u64; 7],
}

impl Kind {
    fn of(app: &AppSpec, job: &JobSpec, needs: Host) -> Self {
        let [a, b, c, d] = Locality::ALL.map(|level| job.profile.slowdown(level));
        let (weight, claim) = (app.weight, app.claim);
        Self {
            gang: job.gang,
            max: job.max.min(app.max_gpus),
            cap: app.max_gpus,
            tenant: app.tenant,
            has_curve: job.curve.is_some(),
            needs,
            figures: [a, b, c, d, weight, claim.slowdown, claim.excess].map(f64::to_bits),
        }
    }
}

/// Of an app that is in no line.
const NONE: u32 = u32::MAX;

/// The apps in want. Cost: O(log apps) a change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    /// The first app of each line, by kind.
    kinds: BTreeMap<Kind, Vec<u32>>,
    /// The line in which each app waits.
    of_app: Vec<u32>,
    /// Who waits in each.
    waiting: Vec<BTreeSet<u32>>,
    /// Apps in want that have GPUs, or had until now; those of many jobs, or with a scheduler that
    /// may change what they can use.
    apart: BTreeSet<u32>,
}

impl Lines {
    /// None of so many apps has come yet.
    pub(crate) fn new(apps: usize) -> Self {
        Self { of_app: vec![NONE; apps], ..Self::default() }
    }

    /// Finds the line of an app that has come; apps come in their order.
    pub(crate) fn join(&mut self, workload: &Workload, app: u32, scheduler: &dyn AppScheduler) {
        let spec = &workload.apps[app as usize];
        if spec.jobs != 1 || !scheduler.is_plain() {
            return;
        }
        let job_of = |app: u32| &workload.jobs[workload.apps[app as usize].first_job as usize];
        let job = job_of(app);
        let is_like = |first: &u32| {
            let other = job_of(*first);
            (&other.profile, &other.speeds) == (&job.profile, &job.speeds)
        };
        let of_kind = self.kinds.entry(Kind::of(spec, job, workload.needs_of(job))).or_default();
        self.of_app[app as usize] = if let Some(first) = of_kind.iter().find(|first| is_like(first))
        {
            self.of_app[*first as usize]
        } else {
            of_kind.push(app);
            self.waiting.push(BTreeSet::new());
            self.waiting.len() as u32 - 1
        };
    }

    /// Moves an app that wanted GPUs and had some, or not, to where it belongs now.
    pub(crate) fn put(&mut self, app: u32, before: (bool, bool), now: (bool, bool)) {
        if let Some(place) = self.place(app, before) {
            place.remove(&app);
        }
        if let Some(place) = self.place(app, now) {
            place.insert(app);
        }
    }

    fn place(&mut self, app: u32, (wants, holds): (bool, bool)) -> Option<&mut BTreeSet<u32>> {
        let line = self.of_app[app as usize];
        match (wants, holds || line == NONE) {
            (false, _) => None,
            (true, true) => Some(&mut self.apart),
            (true, false) => Some(&mut self.waiting[line as usize]),
        }
    }

    /// Waiting apps that ask for the same, by number; no line is empty.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &BTreeSet<u32>> {
        self.waiting.iter().filter(|line| !line.is_empty())
    }

    /// The other apps in want, by number.
    pub(crate) fn apart(&self) -> impl Iterator<Item = u32> + '_ {
        self.apart.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Claim;
    use themis_core::app::{Profile, Scaling, Speeds};
    use themis_core::schedulers::{SchedulerKind, SchedulerRules};

    fn workload(gangs: &[u32]) -> Workload {
        let mut workload = Workload::default();
        for (number, gang) in (0..).zip(gangs) {
            workload.apps.push(AppSpec {
                arrival_us: 0,
                stopping: SchedulerKind::All,
                max_gpus: 8,
                target_loss: None,
                claim: Claim::TRUE,
                weight: 1.0,
                tenant: 0,
                first_job: number,
                jobs: 1,
            });
            workload.jobs.push(JobSpec {
                app: number,
                submit_us: 0,
                work_gpu_us: f64::from(number + 1),
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
        }
        workload
    }

    #[test]
    fn apps_wait_with_those_that_ask_for_the_same_and_stand_apart_with_gpus() {
        let mut workload = workload(&[1, 2, 1, 1, 1, 1, 1, 1]);
        workload.apps[3].weight = 2.0;
        workload.jobs[5].profile =
            Profile::PERFECT.with_scaling(Scaling::new(&[(2, 0.9)]).expect("valid"));
        workload.jobs[6].speeds = Speeds::new(&[1.0, 0.5], true);
        workload.needs = vec![Host::NONE, Host::new(1000, 0)];
        workload.jobs[7].needs = 1;
        workload.apps[4].stopping = SchedulerKind::First;
        workload.apps[4].jobs = 2;
        let rules = SchedulerRules::default();
        let scheduler = |app: &AppSpec| app.stopping.scheduler(&rules, app.max_gpus, None);
        let mut lines = Lines::new(workload.apps.len());
        for (number, app) in (0..).zip(&workload.apps) {
            lines.join(&workload, number, &*scheduler(app));
        }
        let (gone, waits, runs) = ((false, false), (true, false), (true, true));
        let shown = |lines: &Lines| {
            let each = lines.lines().map(|line| line.iter().copied().collect::<Vec<_>>());
            (each.collect::<Vec<_>>(), lines.apart().collect::<Vec<_>>())
        };
        for app in [7, 6, 5, 4, 3, 2, 1, 0] {
            lines.put(app, gone, waits);
        }
        let alone = [5, 6, 7].map(|app| vec![app]);
        let and_alone = |lines: &[Vec<u32>]| [lines, &alone].concat();
        assert_eq!(shown(&lines), (and_alone(&[vec![0, 2], vec![1], vec![3]]), vec![4]));
        lines.put(2, waits, runs);
        lines.put(1, waits, gone);
        assert_eq!(shown(&lines), (and_alone(&[vec![0], vec![3]]), vec![2, 4]));
        lines.put(2, runs, waits);
        assert_eq!(shown(&lines), (and_alone(&[vec![0, 2], vec![3]]), vec![4]));
    }
}
