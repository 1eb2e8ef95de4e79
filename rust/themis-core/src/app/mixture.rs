//! Mixtures: bids of an app of many jobs with its first jobs close together, or on fast GPUs, and the
//! others further apart, or on slower ones.
//!
//! A plain pattern keeps every job within one reach. With few bidders it matters that three jobs
//! fit a machine each and the fourth does not. Cost: O(steps^2 x pairs of reaches), so that
//! mixtures are for few bidders only.

use smallvec::SmallVec;

use crate::app::bid::first_of;
use crate::app::ladder::{Ladder, Reach, Step};
use crate::app::{AppState, Pattern, Stake, Stopping, Value};
use crate::cluster::{Chunks, FreeSet, Openings, Use};

/// Most steps of a mixture.
const MOST_STEPS: usize = 24;

/// A ladder after so many steps.
#[derive(Clone, Copy)]
struct Rung {
    pace: f64,
    uses: Use,
}

impl AppState {
    /// Patterns of two reaches that are worth more than nothing, and more than the coarser one
    /// alone; none for apps of one job, and of those that are done with their first.
    pub(crate) fn mixtures(&self, stake: &Stake, offer: &FreeSet, chunks: &Chunks) -> Vec<Pattern> {
        let mut mixtures = Vec::new();
        if self.jobs.len() < 2 || self.stopping != Stopping::All {
            return mixtures;
        }
        let steps = first_of(&stake.steps, offer.total().min(self.spare_of(offer)));
        let steps = &steps[..steps.len().min(MOST_STEPS)];
        let openings = self.openings(offer);
        let climb = |reach| {
            let ladder = Ladder::new(self, stake, offer.topology(), reach);
            (reach, self.rungs(ladder, &openings, chunks, steps))
        };
        let reaches: SmallVec<[(Reach, Vec<Rung>); 4]> = self.reaches().map(climb).collect();
        for (at, coarse) in reaches.iter().enumerate() {
            for fine in &reaches[at + 1..] {
                Self::mix(steps, coarse, fine, &stake.value, &mut mixtures);
            }
        }
        mixtures
    }

    /// Before the first step, and after each that the offer can serve.
    fn rungs(
        &self,
        mut ladder: Ladder,
        openings: &Openings<'_>,
        chunks: &Chunks,
        steps: &[Step],
    ) -> Vec<Rung> {
        let rung = |ladder: &Ladder| Rung { pace: ladder.pace(), uses: ladder.uses() };
        let mut rungs = vec![rung(&ladder)];
        for step in steps {
            if !ladder.climb(self, openings, chunks, *step) {
                break;
            }
            rungs.push(rung(&ladder));
        }
        rungs
    }

    /// All mixtures of two reaches, cut between jobs.
    fn mix(
        steps: &[Step],
        (reach, coarse): &(Reach, Vec<Rung>),
        (near, fine): &(Reach, Vec<Rung>),
        value: &Value,
        mixtures: &mut Vec<Pattern>,
    ) {
        let floor = value.floor();
        for count in 2..coarse.len() {
            let cuts = 1..count.min(fine.len());
            for cut in cuts.filter(|cut| steps[*cut].job() != steps[cut - 1].job()) {
                let pace = fine[cut].pace + coarse[count].pace - coarse[cut].pace;
                let log_v = value.log_v(pace);
                if log_v > floor && pace > coarse[count].pace {
                    mixtures.push(Pattern {
                        steps: count as u32,
                        near_steps: cut as u16,
                        near: *near,
                        reach: *reach,
                        log_v,
                        uses: fine[cut].uses.plus(&coarse[count].uses.minus(&coarse[cut].uses)),
                    });
                }
            }
        }
    }
}
