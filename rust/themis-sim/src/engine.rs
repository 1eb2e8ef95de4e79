//! The event loop.
//!
//! One instant after the other: what ends, what arrives, what expires, then one decision.

use std::borrow::Cow;

use crate::apply::{arrange, carry_out};
use crate::capacity::Cluster;
use crate::cause::EndedBy;
use crate::error::SimError;
use crate::eviction::{change_capacity, fail_hopeless, take_back};
use crate::expiry::expire;
use crate::log::EventLog;
use crate::plan_check::{check, check_wishes};
use crate::policy::Policy;
use crate::report::close;
use crate::reservation::{cut_leases, keep_promises};
use crate::search::{News, review, tell_moves};
use crate::settings::{LATEST_US, Settings};
use crate::sharing::seat_waiting;
use crate::state::{Agents, JobPhase, Lines, State};
use crate::view::View;
use crate::workload::Workload;
use themis_core::app::Stopping;

/// Told now and then (jobs ended, jobs in all, simulated microseconds); false stops the run.
pub type Progress<'a> = dyn FnMut(usize, usize, i64) -> bool + 'a;

/// Instants between two calls of [`Progress`].
const PROGRESS_EVERY: u64 = 1024;

/// How often in a row a policy is woken without granting anything while nothing else is to come:
/// one that only asks to be woken does not keep a run going.
const IDLE_WAKES: u32 = 1000;
/// Where machines fail by chance, so many instants without the end of a job are too many.
const MOST_IN_VAIN: u64 = 1 << 22;

/// Plays a workload on a cluster under a policy, to the last completion or the horizon.
///
/// # Errors
/// Invalid workload or settings, a plan that can't be carried out, an interrupt, or a run longer
/// than the clock.
pub fn simulate(
    cluster: &Cluster,
    workload: &Workload,
    settings: &Settings,
    policy: &mut dyn Policy,
    progress: &mut Progress<'_>,
) -> Result<EventLog, SimError> {
    simulate_with(Agents::new(), cluster, workload, settings, policy, progress)
}

/// The same, with schedulers from outside for some apps, instead of those that their `stopping`
/// names.
///
/// # Errors
/// As [`simulate`]; also when such a scheduler has no answer, or one that can't be carried out.
pub fn simulate_with(
    agents: Agents,
    cluster: &Cluster,
    workload: &Workload,
    settings: &Settings,
    policy: &mut dyn Policy,
    progress: &mut Progress<'_>,
) -> Result<EventLog, SimError> {
    settings.check()?;
    workload.check()?;
    let mut state = State::new(workload, cluster, *settings, agents);
    state.lines = policy.asks_by_lines().then(|| Lines::new(workload.apps.len()));
    let mut engine = Engine::new(state);
    let horizon_us = settings.horizon_us.unwrap_or(i64::MAX);
    let (mut instants, mut in_vain): (u64, u64) = (0, 0);
    while let Some(next_us) = engine.next_event(policy.leases()) {
        if next_us > horizon_us {
            break;
        }
        if next_us >= LATEST_US {
            return Err(SimError::Endless);
        }
        engine.state.now_us = next_us;
        let before = engine.state.ended_jobs;
        engine.instant(policy, next_us < horizon_us)?;
        instants += 1;
        let done = engine.state.ended_jobs;
        in_vain = if done > before { 0 } else { in_vain + 1 };
        if settings.mtbf_us.is_some() && in_vain > MOST_IN_VAIN {
            return Err(SimError::Stalled(MOST_IN_VAIN, next_us / 1_000_000));
        }
        if instants.is_multiple_of(PROGRESS_EVERY) && !progress(done, workload.jobs.len(), next_us)
        {
            return Err(SimError::Interrupted);
        }
    }
    Ok(engine.finish(settings.horizon_us))
}

struct Engine<'w> {
    state: State<'w>,
    /// Jobs by (submission, number); those before `next_job` were submitted.
    submissions: Vec<u32>,
    next_job: usize,
    next_app: usize,
    contended: bool,
    /// When the policy asked to be woken.
    wake_us: Option<i64>,
    /// Times in a row that it was woken for nothing, with nothing else to come.
    idle_wakes: u32,
}

impl<'w> Engine<'w> {
    fn new(mut state: State<'w>) -> Self {
        change_capacity(&mut state, false);
        state.count_gpus();
        let jobs = &state.workload.jobs;
        let mut submissions: Vec<u32> = (0..jobs.len() as u32).collect();
        submissions.sort_by_key(|job| jobs[*job as usize].submit_us);
        Self {
            state,
            submissions,
            next_job: 0,
            next_app: 0,
            contended: false,
            wake_us: None,
            idle_wakes: 0,
        }
    }

    /// The next instant at which something happens. Lease ends count only while somebody wants
    /// what others hold.
    fn next_event(&mut self, leases: bool) -> Option<i64> {
        let state = &mut self.state;
        let jobs = &state.jobs;
        let is_valid =
            |job: u32, epoch| jobs.get(job as usize).is_some_and(|run| run.epoch == epoch);
        let end = state.ends.next(is_valid);
        let app = state.workload.apps.get(self.next_app).map(|app| app.arrival_us);
        let job = self.submissions.get(self.next_job);
        let job = job.map(|job| state.workload.jobs[*job as usize].submit_us);
        let expiry = if leases && self.contended { state.expiries.peek() } else { None };
        let expiry = expiry.map(|(at_us, _)| at_us);
        // When all is done, what the cluster has is nobody's business any more.
        let open = state.ended_jobs < state.workload.jobs.len();
        let departure = state.departures.first().map(|(at_us, _)| *at_us).filter(|_| open);
        let change = state.capacity.next_us().filter(|_| open);
        let quota = state.quotas.next_us(state.now_us).filter(|_| !state.active.is_empty());
        let promise = state.reservation.as_ref().map(|made| made.at_us);
        let promise = promise.filter(|at_us| *at_us > state.now_us);
        let next = [end, app, job, expiry, departure, change, quota, promise];
        let next = next.into_iter().flatten().min();
        match self.wake_us {
            Some(wake_us) if next.is_none() => {
                self.idle_wakes += 1;
                (self.idle_wakes <= IDLE_WAKES).then_some(wake_us)
            }
            wake_us => next.into_iter().chain(wake_us).min(),
        }
    }

    /// Everything that happens now. At the horizon nothing is decided any more: a grant would
    /// last for no time.
    fn instant(&mut self, policy: &mut dyn Policy, decides: bool) -> Result<(), SimError> {
        // 1. Machines that join or go; jobs that end or reach their goals, on GPUs that go too; then
        // those that lose theirs.
        let losses = change_capacity(&mut self.state, policy.leases());
        self.end_jobs(policy.leases())?;
        for loss in &losses {
            take_back(&mut self.state, loss);
        }
        fail_hopeless(&mut self.state, policy.leases())?;
        self.state.count_gpus();
        tell_moves(&mut self.state)?;
        // 2. Arrivals.
        self.arrive(policy.leases())?;
        if decides {
            // Room on shared GPUs is nobody else's.
            seat_waiting(&mut self.state);
        }
        // 3. Lease expiries; they matter only when somebody competes.
        if decides && policy.leases() && self.state.is_contended() {
            // Gangs that were promised GPUs come first.
            keep_promises(&mut self.state);
            expire(&mut self.state, true);
        }
        // 4. One decision over all that is free.
        while decides && self.decide(policy)? {}
        tell_moves(&mut self.state)?;
        debug_assert!(self.state.tenures.free().host_is_sound(), "more taken than there is");
        self.contended = self.state.is_contended();
        if policy.leases() && self.contended {
            // Leases that nobody wanted at this instant go on to their next end.
            expire(&mut self.state, false);
        }
        let state = &mut self.state;
        state.count_gpus();
        let total = state.tenures.gpus();
        let used = total - state.tenures.free().total();
        let waiting = state.active.len() as u32 - state.tally.holding;
        let active = state.active.len() as u32;
        state.log.usage(state.now_us, [total, used, active, waiting]);
        for app in std::mem::take(&mut state.over) {
            close(state, app);
        }
        Ok(())
    }

    fn end_jobs(&mut self, leases: bool) -> Result<(), SimError> {
        let state = &mut self.state;
        let mut ended = Vec::new();
        loop {
            let jobs = &state.jobs;
            let is_valid =
                |job: u32, epoch| jobs.get(job as usize).is_some_and(|run| run.epoch == epoch);
            let Some(job) = state.ends.pop(state.now_us, is_valid) else { break };
            ended.push(job);
        }
        ended.sort_unstable();
        for jobs in ended.chunk_by(|a, b| {
            state.workload.jobs[*a as usize].app == state.workload.jobs[*b as usize].app
        }) {
            let app = state.workload.jobs[jobs[0] as usize].app;
            let mut spare: Vec<u32> = Vec::new();
            for job in jobs {
                state.account(*job);
                let run = &mut state.jobs[*job as usize];
                run.work_left = run.beyond;
            }
            let (ended, at_goal): (Vec<u32>, Vec<u32>) =
                jobs.iter().partition(|job| state.jobs[**job as usize].beyond <= 0.0);
            for job in &ended {
                spare.extend(state.end_job(*job, JobPhase::Done));
            }
            review(state, app, News { ended: &ended, at_goal: &at_goal, spare }, leases)?;
        }
        Ok(())
    }

    fn arrive(&mut self, leases: bool) -> Result<(), SimError> {
        let state = &mut self.state;
        while let Some(app) = state.workload.apps.get(self.next_app) {
            if app.arrival_us > state.now_us {
                break;
            }
            let number = self.next_app as u32;
            state.admit(number);
            if state.apps[self.next_app].unfinished_gpu > 0 {
                state.active.push(number);
                state.contention.join(state.now_us, app);
            }
            // The app itself counts from its arrival on, so that nothing has passed yet.
            state.apps[self.next_app].areas_then =
                (state.contention.area_at(state.now_us, app), state.supply.area_at(state.now_us));
            self.next_app += 1;
            review(state, number, News::default(), leases)?;
        }
        while let Some(job) = self.submissions.get(self.next_job).copied() {
            if state.workload.jobs[job as usize].submit_us > state.now_us {
                break;
            }
            self.next_job += 1;
            submit(state, job, leases)?;
        }
        Ok(())
    }

    /// True when there is more to decide: apps gave GPUs up when jobs of theirs were rejected, or
    /// fractions share what was granted to each.
    fn decide(&mut self, policy: &mut dyn Policy) -> Result<bool, SimError> {
        let state = &mut self.state;
        self.wake_us = self.wake_us.filter(|wake_us| *wake_us > state.now_us);
        let free = state.tenures.free();
        if state.tally.wanting == 0 || free.total() == 0 && state.expired.is_empty() {
            return Ok(false);
        }
        let mut offer = Cow::Borrowed(free);
        let rooms = state.rooms();
        if !rooms.is_empty() {
            offer = Cow::Owned(free.clone().with_rooms(rooms));
        }
        for app in &state.expired {
            for job in &state.apps[*app as usize].open {
                let expired = &state.jobs[*job as usize].expired;
                if !expired.is_empty() {
                    state.tenures.offer_again(offer.to_mut(), expired);
                }
            }
        }
        let mut plan = policy.decide(&View::new(state, &offer));
        let Ok(wishes) = policy.wishes() else {
            return Err(SimError::Undecided(policy.name().to_string()));
        };
        check(state, &offer, &plan, policy.name())?;
        check_wishes(state, &plan, &wishes, policy.name())?;
        if !plan.grants.is_empty() {
            self.idle_wakes = 0;
        }
        arrange(state, &offer, &mut plan);
        let offered = offer.total();
        if let Some(auction) = &plan.auction {
            let active = state.active.len() as u32;
            state.log.auction(state.now_us, offered, active, auction);
        }
        let more = carry_out(state, plan, policy.leases());
        cut_leases(state);
        // An instant beyond the clock never comes.
        self.wake_us = wishes.wake_us.filter(|wake_us| *wake_us < LATEST_US);
        let free_before = state.tenures.free().total();
        reject(state, wishes.rejects, policy.leases())?;
        Ok(more || state.tenures.free().total() > free_before)
    }

    /// Closes the books at the last completion or at the horizon.
    fn finish(mut self, horizon_us: Option<i64>) -> EventLog {
        let state = &mut self.state;
        let open = state.ended_jobs < state.workload.jobs.len();
        if let Some(horizon_us) = horizon_us.filter(|_| open) {
            state.now_us = horizon_us.max(state.now_us);
        }
        for app in 0..state.workload.apps.len() {
            if app >= self.next_app {
                state.admit(app as u32);
            }
            if state.apps.get(app).is_some() {
                cut_off(state, app as u32);
            }
        }
        self.state.log.into_log(self.state.now_us)
    }
}

/// Ends an app that the run ends before.
fn cut_off(state: &mut State<'_>, app: u32) {
    let run = &state.apps[app as usize];
    let all = run.ideal.waits_for == Stopping::All;
    if run.gpu_end_us.is_none() && run.arrival_us <= state.now_us {
        state.apps[app as usize].share = state.share(app);
    }
    for job in state.workload.apps[app as usize].job_ids() {
        let phase = state.jobs[job as usize].phase;
        if all && phase == JobPhase::Future && state.needs_gpus(job) {
            // What is left counts it, so the ideal time must.
            state.apps[app as usize].expect(&state.workload.jobs[job as usize]);
        }
        if !phase.is_final() {
            let gpus = state.end_job(job, JobPhase::Unfinished);
            state.release(&gpus, EndedBy::Horizon);
        }
    }
    close(state, app);
}

/// Takes in a submitted job.
fn submit(state: &mut State<'_>, job: u32, leases: bool) -> Result<(), SimError> {
    let spec = &state.workload.jobs[job as usize];
    if state.jobs.get(job as usize).is_none_or(|run| run.phase != JobPhase::Future) {
        return Ok(()); // killed with its app before it was submitted
    }
    let hopeless = !state.can_run_from(state.now_us, job);
    let why = hopeless.then(|| state.hopeless_because(state.now_us, job));
    let run = &mut state.jobs[job as usize];
    run.phase = JobPhase::Open;
    if let Some(why) = why {
        run.reason = why.map(Into::into);
        state.end_job(job, JobPhase::Infeasible);
    } else if spec.work_gpu_us <= 0.0 {
        run.start_us = Some(state.now_us);
        state.end_job(job, JobPhase::Done);
    } else if spec.gang == 0 {
        run.start_us = Some(state.now_us);
        let end_us = state.now_us.saturating_add(spec.work_gpu_us.round() as i64);
        state.ends.plan(end_us, job, run.epoch);
    } else {
        state.open_job(job);
        state.apps[spec.app as usize].expect(spec);
    }
    if state.jobs[job as usize].phase.is_final() {
        review(state, spec.app, News { ended: &[job], ..News::default() }, leases)?;
    }
    Ok(())
}

/// Ends jobs that the policy will never serve.
fn reject(
    state: &mut State<'_>,
    rejects: Vec<(u32, u32, String)>,
    leases: bool,
) -> Result<(), SimError> {
    for (app, job, why) in rejects {
        if !state.jobs[job as usize].phase.is_final() {
            state.end_job(job, JobPhase::Rejected);
            state.jobs[job as usize].reason = Some(why.into());
            review(state, app, News { ended: &[job], ..News::default() }, leases)?;
        }
    }
    Ok(())
}
