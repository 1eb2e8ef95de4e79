//! What an app's steps are worth and take, step by step, at one reach.

use crate::app::{AppState, Job, Pool, Stake, Stopping};
use crate::cluster::{Chunks, FreeSet, Locality, Openings, Topology, Use, Within};

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
    rates: Vec<f64>,
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
    /// GPUs that it keeps.
    held: u32,
    gpus: u32,
    rate: f64,
    pool: Pool,
    place: Place,
}

/// Where the GPUs of a job may lie, and how many of them there are.
#[derive(Clone, Copy)]
struct Place {
    within: Within,
    room: u32,
}

impl Current {
    fn new(job: &Job, at: usize, offer: &FreeSet, chunks: &Chunks, reach: Reach) -> Self {
        let (held, topology) = (job.held.gpus(), offer.topology());
        let (rate, pool) = (job.rate_on(topology, &job.held), job.pool_at(topology, reach.pool));
        let place = Place::of(job, offer, chunks, reach.level, &pool);
        Self { job: at, held, gpus: held, rate, pool, place }
    }
}

impl Place {
    fn of(job: &Job, offer: &FreeSet, chunks: &Chunks, level: Locality, pool: &Pool) -> Self {
        let level = loosest(job, level).max(offer.topology().locality(&job.held));
        let within = Within { level, types: pool.types };
        Self { within, room: chunks.room(offer, &job.held, within) }
    }
}

impl Ladder {
    /// Before the first step.
    pub(super) fn new(app: &AppState, stake: &Stake, topology: &Topology, reach: Reach) -> Self {
        let rates = match app.stopping {
            Stopping::All => Vec::new(),
            Stopping::First => app.held_rates(topology).into_vec(),
        };
        let (uses, last) = (Use::default(), Change::default());
        Self { reach, rates, pace: stake.pace, uses, fits: true, current: None, last }
    }

    /// Takes one more step; false when the offer can't serve all of them, which no step mends.
    pub(super) fn climb(
        &mut self,
        app: &AppState,
        openings: &Openings<'_>,
        chunks: &Chunks,
        step: Step,
    ) -> bool {
        if !self.fits {
            return false;
        }
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
        self.fits
    }

    /// What a step changes that is like no other.
    fn one_more(
        &mut self,
        app: &AppState,
        openings: &Openings<'_>,
        chunks: &Chunks,
        step: Step,
    ) -> Change {
        let job = &app.jobs[step.job()];
        let at = match &mut self.current {
            Some(at) if at.job == step.job() => at,
            current => {
                let offer = openings.to(job.needs);
                current.insert(Current::new(job, step.job(), offer, chunks, self.reach))
            }
        };
        let (before, now) = (at.gpus, at.gpus + step.gpus);
        let place = match now {
            1 => Place::of(job, openings.to(job.needs), chunks, Locality::Slot, &at.pool),
            _ => at.place,
        };
        self.fits = self.fits && now - at.held <= place.room;
        let mut uses = Use::default();
        chunks.grow(&mut uses, place.within, before - at.held, now - at.held);
        at.gpus = now;
        let rate = job.rate_at(now, place.within.level) * at.pool.speed;
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
