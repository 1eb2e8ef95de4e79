//! What an app's steps are worth and take, step by step, at one reach.

use smallvec::SmallVec;

use crate::app::{AppState, Job, Pool, Stake, Stopping};
use crate::cluster::{Chunks, Locality, Openings, Topology, Use, Within};

/// One more piece of GPUs for a job: its gang, or as much again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(super) job: u32,
    pub(crate) gpus: u32,
    /// Whether it is for a job that has one step and bids like the one before.
    pub(super) again: bool,
}

impl Step {
    #[inline]
    pub(crate) fn job(self) -> usize {
        self.job as usize
    }
}

/// How far a job's GPUs may be apart, in distance and in speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The locality that they do not exceed.
    pub level: Locality,
    /// The place of their pool among the job's, fastest first; the last one for a job with fewer.
    pub pool: u8,
}

/// Running totals over steps when every job lies within one reach. Steps of a job follow one
/// another.
pub(super) struct Ladder {
    reach: Reach,
    /// The rates of all jobs, where the first to finish ends the app.
    rates: SmallVec<[f64; 16]>,
    /// The sum of all rates (`All`), or the seconds to the first finish (`First`).
    pace: f64,
    uses: Use,
    /// Whether the offer can serve every job so far at this locality, one at a time.
    fits: bool,
    current: Option<Current>,
    /// What the last step changed; one that is like it changes as much.
    last: Change,
}

/// What a step changes.
#[derive(Clone, Copy, Default)]
struct Change {
    /// The rate of its job before and after it.
    slower: f64,
    rate: f64,
    uses: Use,
}

/// The job of the last step.
struct Current {
    job: usize,
    /// GPUs that it keeps, and how close together.
    held: u32,
    held_level: Locality,
    gpus: u32,
    rate: f64,
    pool: Pool,
}

impl Current {
    fn new(app: &AppState, topology: &Topology, job: usize, pool: u8) -> Self {
        let job_state = &app.jobs[job];
        let held = &job_state.held;
        let (gpus, held_level) = (held.gpus(), topology.locality(held));
        let (rate, pool) = (job_state.rate_on(topology, held), job_state.pool_at(topology, pool));
        Self { job, held: gpus, held_level, gpus, rate, pool }
    }
}

impl Ladder {
    /// Before the first step.
    pub(super) fn new(app: &AppState, stake: &Stake, topology: &Topology, reach: Reach) -> Self {
        let rates = match app.stopping {
            Stopping::All => SmallVec::new(),
            Stopping::First => app.held_rates(topology),
        };
        let (uses, last) = (Use::default(), Change::default());
        Self { reach, rates, pace: stake.pace, uses, fits: true, current: None, last }
    }

    /// Takes one more step.
    pub(super) fn climb(
        &mut self,
        app: &AppState,
        openings: &Openings<'_>,
        chunks: &Chunks,
        step: Step,
    ) {
        if !step.again {
            self.last = self.one_more(app, openings, chunks, step);
        }
        let Change { slower, rate, uses } = self.last;
        self.uses = self.uses.plus(&uses);
        self.pace = match app.stopping {
            Stopping::All => self.pace - slower + rate,
            Stopping::First => {
                self.rates[step.job()] = rate;
                app.pace(&self.rates)
            }
        };
    }

    /// What a step changes that is like no other.
    fn one_more(
        &mut self,
        app: &AppState,
        openings: &Openings<'_>,
        chunks: &Chunks,
        step: Step,
    ) -> Change {
        let offer = openings.to(app.jobs[step.job()].needs);
        if self.current.as_ref().is_none_or(|current| current.job != step.job()) {
            self.current = Some(Current::new(app, offer.topology(), step.job(), self.reach.pool));
        }
        let Some(at) = &mut self.current else { return self.last };
        let job = &app.jobs[step.job()];
        let (before, now) = (at.gpus, at.gpus + step.gpus);
        let level = if now == 1 { Locality::Slot } else { self.reach.level };
        let level = loosest(job, level).max(at.held_level);
        let within = Within { level, types: at.pool.types };
        self.fits = self.fits && now - at.held <= chunks.room(offer, &job.held, within);
        let mut uses = Use::default();
        chunks.grow(&mut uses, within, before - at.held, now - at.held);
        at.gpus = now;
        let rate = job.rate_at(now, level) * at.pool.speed;
        Change { slower: std::mem::replace(&mut at.rate, rate), rate, uses }
    }

    pub(super) fn reach(&self) -> Reach {
        self.reach
    }

    pub(super) fn pace(&self) -> f64 {
        self.pace
    }

    pub(super) fn uses(&self) -> Use {
        self.uses
    }

    pub(super) fn fits(&self) -> bool {
        self.fits
    }
}

/// The coarsest locality at which a job runs no slower than at this one.
pub(super) fn loosest(job: &Job, level: Locality) -> Locality {
    job.profile.distinct_levels().find(|l| *l >= level).unwrap_or(level)
}

impl Job {
    /// Whether this job, without GPUs, runs on one gang only, and bids as another one does.
    pub(super) fn bids_like(&self, other: &Self) -> bool {
        self.gang >= self.max
            && (self.gang, self.max, self.needs) == (other.gang, other.max, other.needs)
            && self.held.is_empty()
            && other.held.is_empty()
            && self.profile == other.profile
            && self.speeds == other.speeds
    }

    /// The pool at a place of its list, or the next that has the types of what it keeps.
    pub(super) fn pool_at(&self, topology: &Topology, at: u8) -> Pool {
        if self.held.is_empty() || self.speeds.are_alike() {
            return self.speeds.pool(usize::from(at));
        }
        let place = self.speeds.place_for(topology.types_of(&self.held), usize::from(at));
        self.speeds.pool(place.unwrap_or(usize::MAX))
    }

    /// Where its GPUs may lie at a reach, those that it keeps among them.
    pub(crate) fn within(&self, topology: &Topology, reach: Reach) -> Within {
        let level = reach.level.max(topology.locality(&self.held));
        Within { level, types: self.pool_at(topology, reach.pool).types }
    }
}
