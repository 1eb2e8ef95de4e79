//! What an app's steps are worth and take, step by step, at one locality.

use smallvec::SmallVec;

use crate::app::{AppState, Job, Stopping};
use crate::cluster::{Chunks, FreeSet, Locality, Topology, Use};

/// One more piece of GPUs for a job: its gang, or as much again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) job: usize,
    pub(super) gpus: u32,
}

/// Running totals over steps when every job lies within one locality. Steps of a job follow one
/// another.
pub(super) struct Ladder {
    level: Locality,
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
}

impl Current {
    fn new(app: &AppState, topology: &Topology, job: usize) -> Self {
        let held = &app.jobs[job].held;
        let (gpus, level) = (held.gpus(), topology.locality(held));
        Self { job, held: gpus, held_level: level, gpus }
    }
}

impl Ladder {
    /// Before the first step.
    pub(super) fn new(app: &AppState, held_rates: &[f64], level: Locality) -> Self {
        let (rates, pace) = (SmallVec::from_slice(held_rates), app.pace(held_rates));
        Self { level, rates, pace, uses: Use::default(), fits: true, current: None }
    }

    /// Takes one more step.
    pub(super) fn climb(&mut self, app: &AppState, offer: &FreeSet, chunks: &Chunks, step: Step) {
        if self.current.as_ref().is_none_or(|current| current.job != step.job) {
            self.current = Some(Current::new(app, offer.topology(), step.job));
        }
        let Some(at) = &mut self.current else { return };
        let job = &app.jobs[step.job];
        let (before, now) = (at.gpus, at.gpus + step.gpus);
        let level = if now == 1 { Locality::Slot } else { self.level };
        let within = loosest(job, level).max(at.held_level);
        self.fits = self.fits && now - at.held <= chunks.room(offer, &job.held, within);
        chunks.grow(&mut self.uses, within, before - at.held, now - at.held);
        at.gpus = now;
        let rate = job.rate_at(now, within);
        let slower = std::mem::replace(&mut self.rates[step.job], rate);
        self.pace = match app.stopping {
            Stopping::All => self.pace - slower + rate,
            Stopping::First => app.pace(&self.rates),
        };
    }

    pub(super) fn level(&self) -> Locality {
        self.level
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
