//! What an app's steps are worth and take, step by step, at one reach.

use smallvec::SmallVec;

use crate::app::{AppState, Job, Pool, Stopping};
use crate::cluster::{Chunks, Locality, Openings, Topology, Use, Within};

/// One more piece of GPUs for a job: its gang, or as much again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    job: u32,
    pub(crate) gpus: u32,
}

impl Step {
    pub(super) fn new(job: usize, gpus: u32) -> Self {
        Self { job: job as u32, gpus }
    }

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
    rates: SmallVec<[f64; 16]>,
    /// The sum of all rates (`All`), or the seconds to the first finish (`First`).
    pace: f64,
    uses: Use,
    /// Whether the offer can serve every job so far at this locality, one at a time.
    fits: bool,
    current: Option<Current>,
}

/// The job of the last step.
struct Current {
    job: usize,
    /// GPUs that it keeps, and how close together.
    held: u32,
    held_level: Locality,
    gpus: u32,
    pool: Pool,
}

impl Current {
    fn new(app: &AppState, topology: &Topology, job: usize, pool: u8) -> Self {
        let job_state = &app.jobs[job];
        let held = &job_state.held;
        let (gpus, level) = (held.gpus(), topology.locality(held));
        Self { job, held: gpus, held_level: level, gpus, pool: job_state.pool_at(topology, pool) }
    }
}

impl Ladder {
    /// Before the first step.
    pub(super) fn new(app: &AppState, held_rates: &[f64], reach: Reach) -> Self {
        let (rates, pace) = (SmallVec::from_slice(held_rates), app.pace(held_rates));
        Self { reach, rates, pace, uses: Use::default(), fits: true, current: None }
    }

    /// Takes one more step.
    pub(super) fn climb(
        &mut self,
        app: &AppState,
        openings: &Openings<'_>,
        chunks: &Chunks,
        step: Step,
    ) {
        let offer = openings.to(app.jobs[step.job()].needs);
        if self.current.as_ref().is_none_or(|current| current.job != step.job()) {
            self.current = Some(Current::new(app, offer.topology(), step.job(), self.reach.pool));
        }
        let Some(at) = &mut self.current else { return };
        let job = &app.jobs[step.job()];
        let (before, now) = (at.gpus, at.gpus + step.gpus);
        let level = if now == 1 { Locality::Slot } else { self.reach.level };
        let level = loosest(job, level).max(at.held_level);
        let within = Within { level, types: at.pool.types };
        self.fits = self.fits && now - at.held <= chunks.room(offer, &job.held, within);
        chunks.grow(&mut self.uses, within, before - at.held, now - at.held);
        at.gpus = now;
        let rate = job.rate_at(now, level) * at.pool.speed;
        let slower = std::mem::replace(&mut self.rates[step.job()], rate);
        self.pace = match app.stopping {
            Stopping::All => self.pace - slower + rate,
            Stopping::First => app.pace(&self.rates),
        };
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
