//! Where every app and job stands.

mod app_run;
mod feasible;
mod job_run;
mod lines;
mod rooms;

pub(crate) use app_run::{AppRun, FairShare, Ideal};
pub(crate) use job_run::{JobPhase, JobRun};
pub(crate) use lines::Lines;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::capacity::{Capacity, Cluster};
use crate::cause::EndedBy;
use crate::contention::Contention;
use crate::lease_clock::LeaseClock;
use crate::level::Level;
use crate::living::Living;
use crate::log::Recorder;
use crate::promise::Reservation;
use crate::queue::{Ends, Expiries};
use crate::quotas::Quotas;
use crate::settings::Settings;
use crate::tenure::Tenures;
use crate::workload::Workload;
use themis_core::app::{Demand, OwnGpus};
use themis_core::cluster::Topology;
use themis_core::fairness::TIdReading;
use themis_core::schedulers::{AppScheduler, Move};

/// Schedulers from outside, by app number.
pub type Agents = BTreeMap<u32, Box<dyn AppScheduler>>;

/// How many apps want more GPUs than they keep, and how many hold some.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) wanting: u32,
    pub(crate) holding: u32,
}

/// Everything that changes during a run.
pub(crate) struct State<'w> {
    pub(crate) workload: &'w Workload,
    pub(crate) settings: Settings,
    pub(crate) topology: Arc<Topology>,
    pub(crate) now_us: i64,
    /// Those of the apps below.
    pub(crate) jobs: Living<JobRun>,
    /// From their arrivals to the end of the instant at which they are over.
    pub(crate) apps: Living<AppRun>,
    /// One an app.
    pub(crate) schedulers: Living<Box<dyn AppScheduler>>,
    /// Those from outside of apps that are still to come.
    agents: Agents,
    /// Apps that this instant was the last for.
    pub(crate) over: Vec<u32>,
    /// (app, what moved) that a listening scheduler has not heard of yet.
    pub(crate) moves: Vec<(u32, Move)>,
    /// Apps that arrived, want GPUs some day, and are not finished; by number.
    pub(crate) active: Vec<u32>,
    /// Jobs without GPUs by (submission, number).
    pub(crate) waiting: BTreeSet<(i64, u32)>,
    /// Running jobs slower than they could be anywhere.
    pub(crate) misplaced: u32,
    pub(crate) tally: Tally,
    /// The same apps, those alike together; only for policies that ask by lines.
    pub(crate) lines: Option<Lines>,
    /// Apps with leases that have just run out; only during a decision.
    pub(crate) expired: Vec<u32>,
    /// Jobs in a final state.
    pub(crate) ended_jobs: usize,
    /// What the cluster has, now and later.
    pub(crate) capacity: Capacity,
    /// What tenants may hold of it.
    pub(crate) quotas: Quotas,
    /// How much it has.
    pub(crate) supply: Level,
    /// How many apps share it.
    pub(crate) contention: Contention,
    pub(crate) tenures: Tenures,
    pub(crate) clock: LeaseClock,
    pub(crate) ends: Ends,
    pub(crate) expiries: Expiries,
    /// (when, GPU): withdrawn GPUs that leave when their leases end.
    pub(crate) departures: BTreeSet<(i64, u32)>,
    /// What the gang that has waited longest is promised.
    pub(crate) reservation: Option<Reservation>,
    pub(crate) log: Recorder,
}

impl<'w> State<'w> {
    pub(crate) fn new(
        workload: &'w Workload,
        cluster: &Cluster,
        settings: Settings,
        agents: Agents,
    ) -> Self {
        let topology = Arc::clone(cluster.topology());
        let (apps, jobs) = (workload.apps.len(), workload.jobs.len());
        Self {
            workload,
            settings,
            now_us: 0,
            jobs: Living::new(jobs),
            apps: Living::new(apps),
            schedulers: Living::new(apps),
            agents,
            over: Vec::new(),
            moves: Vec::new(),
            active: Vec::new(),
            waiting: BTreeSet::new(),
            misplaced: 0,
            tally: Tally::default(),
            lines: None,
            expired: Vec::new(),
            ended_jobs: 0,
            capacity: Capacity::new(cluster, workload, &settings),
            quotas: Quotas::new(&workload.tenants),
            supply: Level::default(),
            contention: Contention::new(&workload.tenants),
            tenures: Tenures::new(Arc::clone(&topology)),
            clock: LeaseClock::new(&settings),
            ends: Ends::default(),
            expiries: Expiries::default(),
            departures: BTreeSet::new(),
            reservation: None,
            log: Recorder::new(apps, jobs),
            topology,
        }
    }

    /// Takes in an app with its jobs.
    pub(crate) fn admit(&mut self, app: u32) {
        let spec = &self.workload.apps[app as usize];
        let native =
            || spec.stopping.scheduler(&self.settings.schedulers, spec.max_gpus, spec.target_loss);
        let scheduler = self.agents.remove(&app).unwrap_or_else(native);
        let jobs = spec.job_ids().map(|job| (job, &self.workload.jobs[job as usize]));
        let own_gpus = OwnGpus::of(&self.topology, jobs.clone().map(|(_, job)| &job.speeds));
        let mut run = AppRun::new(spec, scheduler.waits_for(), own_gpus);
        run.unfinished_gpu = self.gpu_jobs(app).count() as u32;
        if let Some(lines) = &mut self.lines {
            lines.join(self.workload, app, &*scheduler);
        }
        self.apps.enter(app, run);
        self.schedulers.enter(app, scheduler);
        for (number, job) in jobs {
            let needs = self.workload.needs_of(job);
            self.jobs.enter(number, JobRun::new(job, needs, spec.max_gpus, &self.topology));
        }
    }

    /// Lets go of an app that is over, and of its jobs.
    pub(crate) fn dismiss(&mut self, app: u32) {
        self.apps.leave(app);
        self.schedulers.leave(app);
        for job in self.workload.apps[app as usize].job_ids() {
            self.jobs.leave(job);
        }
    }

    /// GPUs that an app could use beyond those it keeps.
    pub(crate) fn unmet(&self, app: u32) -> u32 {
        self.apps[app as usize].unmet()
    }

    /// Counts an app anew after its demand or its GPUs changed.
    pub(crate) fn count(&mut self, app: u32) {
        let run = &mut self.apps[app as usize];
        let now = (run.unmet() > 0, run.gpus > 0);
        let before = std::mem::replace(&mut run.counted, now);
        if let Some(lines) = self.lines.as_mut().filter(|_| before != now) {
            lines.put(app, before, now);
        }
        self.tally.wanting = self.tally.wanting + u32::from(now.0) - u32::from(before.0);
        self.tally.holding = self.tally.holding + u32::from(now.1) - u32::from(before.1);
    }

    /// True when somebody wants more, or a better place, or has more than a quota allows: only then
    /// do lease ends matter.
    pub(crate) fn is_contended(&self) -> bool {
        self.misplaced > 0 || self.tally.wanting > 0 || self.exceeds_quotas()
    }

    /// Brings a job's progress and its app's GPU time up to now.
    pub(crate) fn account(&mut self, job: u32) {
        let app = &mut self.apps[self.workload.jobs[job as usize].app as usize];
        self.jobs[job as usize].account(self.now_us, app);
    }

    /// Sets a job back to its last checkpoint, since GPUs of it failed; taking them is the caller's
    /// business.
    pub(crate) fn set_back(&mut self, job: u32) {
        self.account(job);
        let spec = &self.workload.jobs[job as usize];
        let every_us = self.settings.checkpoint_every_us;
        let app = &mut self.apps[spec.app as usize];
        self.jobs[job as usize].set_back(spec, every_us, app);
    }

    /// Replaces a job's GPUs (sorted); ownership is the caller's business. A job that worked
    /// before pays for the switch.
    pub(crate) fn assign(&mut self, job: u32, gpus: Vec<u32>) {
        self.account(job);
        let spec = &self.workload.jobs[job as usize];
        let run = &mut self.jobs[job as usize];
        let app = &mut self.apps[spec.app as usize];
        let now_us = self.now_us;
        if self.schedulers[spec.app as usize].listens() {
            let new = |a: &[u32], b: &[u32]| a.iter().filter(|g| !b.contains(g)).count() as u32;
            let (gained, lost) = (new(&gpus, &run.gpus), new(&run.gpus, &gpus));
            let first_job = self.workload.apps[spec.app as usize].first_job;
            let job = (job - first_job) as usize;
            self.moves.push((spec.app, Move { job, gained, lost }));
        }
        self.misplaced -= u32::from(run.is_misplaced());
        self.log.stop_work(run.working(now_us));
        app.set_gpus(app.gpus - run.gpus.len() as u32 + gpus.len() as u32, now_us);
        app.expired -= run.expired.len() as u32;
        if run.gpus.is_empty() != gpus.is_empty() {
            if gpus.is_empty() {
                self.waiting.insert((spec.submit_us, job));
                run.preemptions += u32::from(!run.crashed);
            } else {
                self.waiting.remove(&(spec.submit_us, job));
            }
        } else if !gpus.is_empty() && !run.switches_at(now_us) {
            run.migrations += u32::from(!run.crashed);
        }
        let bundle = self.tenures.bundle(&gpus);
        run.restart(spec, gpus, bundle, &self.topology, &self.settings, now_us);
        self.misplaced += u32::from(run.is_misplaced());
        self.log.start_work(run.working(now_us));
        if !run.gpus.is_empty() {
            app.first_gpu_us.get_or_insert(now_us);
            self.ends.plan(run.end_at(), job, run.epoch);
        }
        self.count(spec.app);
    }

    /// Takes in a job that wants GPUs.
    pub(crate) fn open_job(&mut self, job: u32) {
        let spec = &self.workload.jobs[job as usize];
        let run = &mut self.jobs[job as usize];
        run.phase = JobPhase::Open;
        run.switched_us = self.now_us; // it waits from now on
        self.waiting.insert((spec.submit_us, job));
        self.apps[spec.app as usize].open_job(job, run.max);
        self.count(spec.app);
    }

    /// Takes a job's GPUs, which its app still owns, and its demand; not those that others share.
    fn idle_job(&mut self, job: u32, why: EndedBy) -> Vec<u32> {
        self.account(job);
        let spec = &self.workload.jobs[job as usize];
        let run = &mut self.jobs[job as usize];
        let app = &mut self.apps[spec.app as usize];
        self.misplaced -= u32::from(run.is_misplaced());
        self.log.stop_work(run.working(self.now_us));
        app.close_job(job, run.max);
        self.waiting.remove(&(spec.submit_us, job));
        let mut gpus = std::mem::take(&mut run.gpus);
        app.set_gpus(app.gpus - gpus.len() as u32, self.now_us);
        app.expired -= run.expired.len() as u32;
        run.stand_idle();
        if spec.is_fraction() {
            self.stand_up(job, &mut gpus, why);
        }
        gpus
    }

    /// Pauses a job at its goal; returns the GPUs it had, which its app still owns.
    pub(crate) fn pause_job(&mut self, job: u32) -> Vec<u32> {
        let gpus = self.idle_job(job, EndedBy::JobEnd);
        self.jobs[job as usize].phase = JobPhase::Paused;
        self.count(self.workload.jobs[job as usize].app);
        gpus
    }

    /// Sets how far a job runs, on how many GPUs at most; one that runs goes on without a break.
    pub(crate) fn aim_job(&mut self, job: u32, beyond: f64, max: u32) {
        self.account(job);
        let spec = &self.workload.jobs[job as usize];
        let needs = self.needs_of(job);
        let run = &mut self.jobs[job as usize];
        self.misplaced -= u32::from(run.is_misplaced());
        if run.phase == JobPhase::Open {
            let app = &mut self.apps[spec.app as usize];
            app.demand = app.demand - u64::from(run.max) + u64::from(max);
        }
        run.aim(beyond, max, (spec, needs), &self.topology);
        self.misplaced += u32::from(run.is_misplaced());
        if !run.gpus.is_empty() {
            self.ends.plan(run.end_at(), job, run.epoch);
        }
        self.count(spec.app);
    }

    /// Ends a job for good; returns the GPUs it had, which its app still owns.
    pub(crate) fn end_job(&mut self, job: u32, phase: JobPhase) -> Vec<u32> {
        let unfinished = phase == JobPhase::Unfinished;
        let gpus = self.idle_job(job, if unfinished { EndedBy::Horizon } else { EndedBy::JobEnd });
        let spec = &self.workload.jobs[job as usize];
        self.jobs[job as usize].finish(phase, self.now_us);
        self.apps[spec.app as usize].unfinished -= 1;
        self.ended_jobs += 1;
        self.count(spec.app);
        if self.needs_gpus(job) {
            self.end_gpu_job(spec.app, phase);
        }
        gpus
    }

    /// Counts out a job that needed GPUs; after the last one its app is active no more.
    fn end_gpu_job(&mut self, app: u32, phase: JobPhase) {
        let run = &mut self.apps[app as usize];
        run.unfinished_gpu -= 1;
        if run.unfinished_gpu > 0 || phase == JobPhase::Unfinished {
            return;
        }
        run.gpu_end_us = Some(self.now_us);
        self.apps[app as usize].share = self.share(app);
        if let Ok(at) = self.active.binary_search(&app) {
            self.active.remove(at);
            self.contention.leave(self.now_us, &self.workload.apps[app as usize]);
        }
    }

    /// Gives GPUs back and logs their leases. Returns those that guests hold from now on.
    pub(crate) fn release(&mut self, gpus: &[u32], why: EndedBy) -> Vec<u32> {
        let passed = self.tenures.release(gpus, self.now_us, why, &mut self.log.leases);
        for gpu in &passed {
            if let Some(seat) = self.tenures.seats.on(*gpu).first() {
                self.expiries.plan(self.lease_end(*gpu), seat.app);
            }
        }
        passed
    }

    /// Ends an app: what it still has is killed.
    pub(crate) fn end_app(&mut self, app: u32, reason: &str) {
        for job in self.workload.apps[app as usize].job_ids() {
            if !self.jobs[job as usize].phase.is_final() {
                let gpus = self.end_job(job, JobPhase::Killed);
                self.jobs[job as usize].reason = Some(reason.into());
                self.release(&gpus, EndedBy::AppEnd);
            }
        }
        self.apps[app as usize].end_us = Some(self.now_us);
        self.over.push(app);
    }

    /// Brings the count of GPUs up to what the cluster has now.
    pub(crate) fn count_gpus(&mut self) {
        self.supply.set(self.now_us, f64::from(self.tenures.gpus()));
    }

    /// What an app that has arrived has shared so far.
    pub(crate) fn share(&self, app: u32) -> FairShare {
        let run = &self.apps[app as usize];
        let (contention_then, gpus_then) = run.areas_then;
        let gpus = self.supply.mean(run.arrival_us, gpus_then, self.now_us).max(1.0);
        let spec = &self.workload.apps[app as usize];
        FairShare {
            n_avg: self.contention.mean(spec, contention_then, self.now_us),
            gpus,
            part: gpus / f64::from(self.topology.gpus()),
        }
    }

    /// `T_ID` of an app in seconds: of its scheduler's budget, or of what was submitted so far.
    pub(crate) fn t_id_s(&self, app: u32, share: FairShare) -> f64 {
        self.t_id_read_s(app, self.settings.t_id, share)
    }

    /// The same in any reading.
    pub(crate) fn t_id_read_s(&self, app: u32, reading: TIdReading, share: FairShare) -> f64 {
        let budget: Option<&[Demand]> = self.schedulers[app as usize].budget();
        self.apps[app as usize].ideal.time_s(budget, reading, share)
    }
}
