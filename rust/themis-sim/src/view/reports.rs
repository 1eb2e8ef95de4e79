//! What the agents of apps report to a policy, and how badly off the filter finds them.

use super::View;
use crate::state::FairShare;
use crate::workload::Claim;
use themis_core::app::{Alone, AppState, Job, OwnGpus};
use themis_core::auction::Standing;
use themis_core::cluster::Bundle;
use themis_core::fairness::{FilterKey, OutsideContext};

/// An app with the numbers of its jobs.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The app's number.
    pub app: u32,
    /// The job numbers, beside `state.jobs`.
    pub jobs: Vec<u32>,
    /// The app as its agent reports it.
    pub state: AppState,
}

impl View<'_> {
    /// An unfinished job.
    pub fn job(&self, job: u32) -> Job {
        let spec = self.spec(job);
        let run = &self.state.jobs[job as usize];
        let (held, previous) = if run.expired.is_empty() {
            (run.bundle.clone(), Bundle::new())
        } else if run.expired.len() == run.gpus.len() {
            (Bundle::new(), self.state.tenures.staying(&run.gpus))
        } else {
            let kept = |gpu: &&u32| run.expired.binary_search(gpu).is_err();
            let kept: Vec<u32> = run.gpus.iter().filter(kept).copied().collect();
            (self.state.tenures.bundle(&kept), self.state.tenures.staying(&run.expired))
        };
        Job {
            gang: spec.gang,
            max: run.max,
            work_left_gpu_s: self.work_left_gpu_s(job),
            profile: spec.profile.clone(),
            speeds: spec.speeds.clone(),
            needs: self.needs(job),
            held,
            previous,
            rank: self.scheduler(spec.app).rank(self.number_within(job)),
        }
    }

    /// GPU-seconds to a job's goal, or to where its app expects to be content with it.
    fn work_left_gpu_s(&self, job: u32) -> f64 {
        let (spec, run) = (self.spec(job), &self.state.jobs[job as usize]);
        let left_us = run.work_left_at(self.state.now_us);
        let expected_gpu_s = self.scheduler(spec.app).expected_gpu_s(self.number_within(job));
        let beyond_us = expected_gpu_s.map_or(run.beyond, |all| spec.work_gpu_us - all * 1e6);
        // Never less than a job still does before anybody looks at it again.
        (left_us - beyond_us.min(run.beyond)).max(0.0) / 1e6
    }

    /// What an auction knows of an app before it asks for its report.
    pub fn standing(&self, app: u32) -> Standing {
        let resumes = self.state.apps[app as usize].expired > 0;
        Standing { rank: self.rank(app), resumes }
    }

    /// An app as it is.
    pub fn app(&self, app: u32) -> Candidate {
        self.candidate(app, Claim::TRUE)
    }

    /// An app as its agent reports it: with its errors and lies.
    pub fn reported(&self, app: u32) -> Candidate {
        self.candidate(app, self.state.workload.apps[app as usize].claim)
    }

    fn candidate(&self, app: u32, claim: Claim) -> Candidate {
        let run = &self.state.apps[app as usize];
        let settings = &self.state.settings;
        let (now_us, topology) = (self.state.now_us, self.topology());
        let share = self.state.share(app);
        let jobs = run.open.to_vec();
        let mut state = AppState {
            elapsed_s: self.elapsed_s(app),
            t_id_s: self.t_id_s(app, share),
            stopping: run.ideal.waits_for,
            jobs: jobs.iter().map(|job| self.job(*job)).collect(),
            later: self.scheduler(app).later().to_vec(),
            cap: run.cap,
            tenant: self.tenant(app),
            rho_empty: None,
        };
        if claim != Claim::TRUE {
            for job in &mut state.jobs {
                job.work_left_gpu_s *= claim.work;
                job.profile = job.profile.claimed(claim.slowdown, claim.excess);
            }
            for phase in &mut state.later {
                phase.work_gpu_s *= claim.work;
                phase.longest_s *= claim.work;
            }
        }
        let waited_s = run.waited_us(now_us) as f64 / 1e6;
        let context = OutsideContext {
            lease_s: settings.lease_us as f64 / 1e6,
            gpus: run.ideal.own_gpus.all()
                * (f64::from(self.gpus().max(1)) / f64::from(topology.gpus())),
            n_avg: share.n_avg,
            last: run.last_rho.map(|rho| (rho, waited_s)),
        };
        state.rho_empty = settings.outside_option.rho_empty(&state, topology, context);
        Candidate { app, jobs, state }
    }

    fn elapsed_s(&self, app: u32) -> f64 {
        (self.state.now_us - self.arrival_us(app)) as f64 / 1e6
    }

    fn t_id_s(&self, app: u32, share: FairShare) -> f64 {
        self.state.t_id_s(app, share).max(f64::MIN_POSITIVE)
    }

    /// rho of an app, as its agent reports it, if the whole cluster were its own from now on.
    pub fn best_case(&self, app: u32) -> f64 {
        if !self.tells_truth(app) {
            return self.reported(app).state.best_rho(self.topology());
        }
        // The same of the truth, which is at hand: most apps are never asked for more.
        let run = &self.state.apps[app as usize];
        let jobs = || run.open.iter().copied();
        let own_gpus = OwnGpus::of(self.topology(), jobs().map(|job| self.speeds(job)));
        let alone = Alone {
            stopping: run.ideal.waits_for,
            all: own_gpus.rate(f64::from(run.cap), 1.0),
            later: self.scheduler(app).later(),
        };
        let best = |job: u32| self.state.jobs[job as usize].best_rate();
        let alone_s = alone.time_s(jobs().map(|job| (self.work_left_gpu_s(job), best(job))));
        (self.elapsed_s(app) + alone_s) / self.t_id_s(app, self.state.share(app))
    }

    /// What the filter ranks an app by: (key, second key), larger is worse off.
    pub fn rank(&self, app: u32) -> (f64, f64) {
        let run = &self.state.apps[app as usize];
        match (self.state.settings.filter_key, run.last_rho) {
            (FilterKey::BestCase, _) | (FilterKey::Cached, None) => (self.best_case(app), 0.0),
            (FilterKey::Holdings, _) => {
                let state = self.reported(app).state;
                let rates = state.held_rates(self.topology());
                (state.rho_at(&rates), state.best_rho(self.topology()))
            }
            (FilterKey::Cached, Some(rho)) => {
                (rho * (1.0 + run.waited_us(self.state.now_us) as f64 / 60e6), 0.0)
            }
        }
    }
}
