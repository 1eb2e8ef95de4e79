//! What an app's steps are worth and take, step by step, at one locality.

use crate::app::claim::free_within;
use crate::app::{AppState, Job, Stopping};
use crate::cluster::{Chunks, FreeSet, Locality, Use};

/// One more piece of GPUs for a job: its gang, or as much again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) job: usize,
    pub(super) gpus: u32,
}

/// Running totals over steps when every job lies within one locality.
pub(super) struct Ladder {
    level: Locality,
    /// After k steps: the sum of all rates (`All`), or the seconds to the first finish (`First`).
    pace: Vec<f64>,
    uses: Vec<Use>,
    /// How many steps the offer can serve at this locality, one job at a time.
    fits: usize,
}

impl Ladder {
    pub(super) fn new(
        app: &AppState,
        offer: &FreeSet,
        chunks: &Chunks,
        steps: &[Step],
        level: Locality,
    ) -> Self {
        let topology = offer.topology();
        let mut rates = app.held_rates(topology);
        let mut gpus: Vec<u32> = app.jobs.iter().map(|job| job.held.gpus()).collect();
        let mut pace = vec![app.pace(&rates)];
        let mut uses = vec![Use::default()];
        let mut fits = 0;
        for step in steps {
            let job = &app.jobs[step.job];
            let held = job.held.gpus();
            let before = gpus[step.job];
            let now = before + step.gpus;
            let within = loosest(job, if now == 1 { Locality::Slot } else { level })
                .max(topology.locality(&job.held));
            if fits + 1 == uses.len() && now - held <= free_within(offer, &job.held, within) {
                fits += 1;
            }
            let mut used = uses[uses.len() - 1];
            chunks.grow(&mut used, within, before - held, now - held);
            uses.push(used);
            gpus[step.job] = now;
            let last = pace[pace.len() - 1];
            let before = std::mem::replace(&mut rates[step.job], job.rate_at(now, within));
            pace.push(match app.stopping {
                Stopping::All => last - before + rates[step.job],
                Stopping::First => app.pace(&rates),
            });
        }
        Self { level, pace, uses, fits }
    }

    pub(super) fn level(&self) -> Locality {
        self.level
    }

    pub(super) fn pace(&self, steps: usize) -> f64 {
        self.pace[steps]
    }

    pub(super) fn uses(&self, steps: usize) -> Use {
        self.uses[steps]
    }

    pub(super) fn fits(&self) -> usize {
        self.fits
    }
}

/// The coarsest locality at which a job runs no slower than at this one.
pub(super) fn loosest(job: &Job, level: Locality) -> Locality {
    job.profile.distinct_levels().find(|l| *l >= level).unwrap_or(level)
}
