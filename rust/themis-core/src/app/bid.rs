//! An app's bid: a few dozen patterns instead of every subset of the offer.
//!
//! GPUs of a slot are interchangeable and a job's speed depends on count and locality only, so a
//! bundle is worth what its *pattern* is worth: the first k steps of the app's jobs (a gang, then
//! as much again up to the job's cap), the first few of them close together and the others within
//! a coarser locality. Cost: O(steps x localities), and O(steps^2) for apps of many jobs.

use crate::app::ladder::{Ladder, Step};
use crate::app::{AppState, Stopping};
use crate::cluster::{Bundle, Chunks, FreeSet, Locality, Near, Use, fit};

/// GPUs for one job of an app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Position among the app's jobs.
    pub job: usize,
    /// The GPUs.
    pub bundle: Bundle,
}

/// One row of a bid: so many GPUs, each job within one locality, and what that is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pattern {
    /// How many of the app's steps it serves (or the row of an explicit table).
    pub steps: u32,
    /// How many of those, from the first on, lie within `near`.
    pub near_steps: u32,
    /// The locality that no job of the near steps exceeds.
    pub near: Locality,
    /// The locality that no job exceeds.
    pub level: Locality,
    /// log V with these GPUs.
    pub log_v: f64,
    /// GPUs and chunks that it takes.
    pub uses: Use,
}

impl Pattern {
    /// GPUs that it takes.
    pub fn gpus(&self) -> u32 {
        self.uses.gpus()
    }
}

/// A pattern that found its GPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// The GPUs, job by job.
    pub parts: Vec<Part>,
    /// log V with them: at least that of the pattern, since they may lie closer together.
    pub log_v: f64,
}

impl Placed {
    /// GPUs in all.
    pub fn gpus(&self) -> u32 {
        self.parts.iter().map(|part| part.bundle.gpus()).sum()
    }
}

/// Most steps for which an app of many jobs bids mixtures of two localities.
const MIXED_STEPS: usize = 0;

impl AppState {
    /// The bid on an offer: patterns that are worth more than nothing, by steps, coarser locality
    /// first.
    pub fn patterns(&self, offer: &FreeSet, chunks: &Chunks) -> Vec<Pattern> {
        let steps = self.steps(offer.total());
        let ladders: Vec<Ladder> = self
            .levels()
            .into_iter()
            .map(|level| Ladder::new(self, offer, chunks, &steps, level))
            .collect();
        let floor = self.log_v_empty();
        let value = self.value();
        let mixes = self.stopping == Stopping::All && self.jobs.len() > 1;
        let mut patterns = Vec::new();
        for count in 1..=steps.len() {
            let mut coarser = floor;
            for (at, ladder) in ladders.iter().enumerate() {
                let log_v = value.log_v(ladder.pace(count));
                if count <= ladder.fits() && log_v > coarser {
                    patterns.push(Pattern {
                        steps: count as u32,
                        near_steps: 0,
                        near: ladder.level(),
                        level: ladder.level(),
                        log_v,
                        uses: ladder.uses(count),
                    });
                    coarser = log_v;
                }
                if mixes && count <= MIXED_STEPS {
                    let finer = &ladders[at + 1..];
                    mix(
                        &steps[..count],
                        ladder,
                        finer,
                        floor,
                        |pace| value.log_v(pace),
                        &mut patterns,
                    );
                }
            }
        }
        patterns
    }

    /// Finds the GPUs of a pattern and takes them from `free`; `None` (and `free` unchanged) when
    /// they can't be had.
    pub fn place(&self, pattern: &Pattern, free: &mut FreeSet) -> Option<Placed> {
        let mut wanted: Vec<(usize, u32, Locality)> = Vec::new();
        for (at, step) in (0..pattern.steps).zip(self.steps(u32::MAX)) {
            let level = if at < pattern.near_steps { pattern.near } else { pattern.level };
            match wanted.last_mut() {
                Some((job, gpus, _)) if *job == step.job => *gpus += step.gpus,
                _ => wanted.push((step.job, step.gpus, level)),
            }
        }
        let topology = free.shared_topology();
        let mut rates = self.held_rates(&topology);
        let mut parts: Vec<Part> = Vec::with_capacity(wanted.len());
        for (job, gpus, level) in wanted {
            let state = &self.jobs[job];
            let near = Near { held: &state.held, previous: &state.previous };
            let level = level.max(topology.locality(&state.held));
            let Some(bundle) = fit(free, gpus, level, near) else {
                for part in &parts {
                    free.give(&part.bundle);
                }
                return None;
            };
            free.take(&bundle);
            rates[job] = state.rate_on(&topology, &state.held.union(&bundle));
            parts.push(Part { job, bundle });
        }
        Some(Placed { parts, log_v: self.log_v_at(&rates) })
    }

    /// The steps in the order of service, up to so many GPUs in all.
    pub(super) fn steps(&self, limit: u32) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut left = limit;
        let order = if self.jobs.len() == 1 { vec![0] } else { self.job_order() };
        for job in order {
            let state = &self.jobs[job];
            let mut has = state.held.gpus();
            while has < state.max {
                // What completes the gang comes first, then as much again.
                let missing = state.gang.saturating_sub(has);
                let piece = if missing > 0 { missing } else { state.gang };
                let gpus = piece.clamp(1, state.max - has);
                if gpus > left {
                    return steps;
                }
                steps.push(Step { job, gpus });
                has += gpus;
                left -= gpus;
            }
        }
        steps
    }

    /// Localities between which some job can tell a difference, coarsest first.
    pub(super) fn levels(&self) -> Vec<Locality> {
        let tells = |level: &Locality| {
            self.jobs.iter().any(|job| job.profile.distinct_levels().any(|l| l == *level))
        };
        Locality::ALL.into_iter().rev().filter(tells).collect()
    }
}

/// Adds the patterns of all `steps` that lie partly within a finer locality, cut between jobs.
fn mix(
    steps: &[Step],
    coarse: &Ladder,
    finer: &[Ladder],
    floor: f64,
    log_v: impl Fn(f64) -> f64,
    patterns: &mut Vec<Pattern>,
) {
    let count = steps.len();
    if count > coarse.fits() {
        return;
    }
    for fine in finer {
        for near in (1..count.min(fine.fits() + 1)).filter(|at| steps[*at].job != steps[at - 1].job)
        {
            let pace = fine.pace(near) + coarse.pace(count) - coarse.pace(near);
            let log_v = log_v(pace);
            if log_v > floor && pace > coarse.pace(count) {
                patterns.push(Pattern {
                    steps: count as u32,
                    near_steps: near as u32,
                    near: fine.level(),
                    level: coarse.level(),
                    log_v,
                    uses: fine.uses(near).plus(&coarse.uses(count).minus(&coarse.uses(near))),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::SlotId;
    use crate::app::{Job, Profile};
    use crate::cluster::{MachineSpec, Topology};

    fn offer() -> FreeSet {
        let specs = [0, 0, 1].map(|rack| MachineSpec { rack, gpus: 4, slot_gpus: 2 });
        FreeSet::full(Arc::new(Topology::new(&specs).expect("valid")))
    }

    fn rows() -> Chunks {
        Chunks::of(&offer(), &[])
    }

    fn solo(gang: u32, max: u32, slowdown: [f64; 4]) -> AppState {
        let job = Job::waiting(gang, max, 1000.0, Profile::new(slowdown).expect("valid"));
        AppState::new(0.0, 100.0, Stopping::All, vec![job]).with_rho_empty(Some(1e6))
    }

    #[test]
    fn a_gang_that_feels_no_distance_has_one_pattern_a_size() {
        let sizes: Vec<_> = solo(2, 8, [1.0; 4])
            .patterns(&offer(), &rows())
            .iter()
            .map(|p| (p.gpus(), p.level))
            .collect();
        let level = Locality::Cluster;
        assert_eq!(sizes, vec![(2, level), (4, level), (6, level), (8, level)]);
    }

    #[test]
    fn closer_patterns_are_worth_more_and_only_those_that_fit_are_bid() {
        let patterns = solo(4, 8, [1.0, 1.0, 1.5, 2.0]).patterns(&offer(), &rows());
        let rows: Vec<_> = patterns.iter().map(|p| (p.gpus(), p.level)).collect();
        let (m, r, c) = (Locality::Machine, Locality::Rack, Locality::Cluster);
        assert_eq!(rows, vec![(4, c), (4, r), (4, m), (8, c), (8, r)]);
        let rho = |p: &Pattern| (-p.log_v).exp();
        assert!((rho(&patterns[2]) - 1000.0 / 4.0 / 100.0).abs() < 1e-12);
        assert!((rho(&patterns[4]) - 1000.0 * 1.5 / 8.0 / 100.0).abs() < 1e-12);
    }

    #[test]
    fn placing_takes_what_the_pattern_says_or_nothing() {
        let app = solo(4, 8, [1.0, 1.0, 1.5, 2.0]);
        let mut free = offer();
        let patterns = app.patterns(&free, &rows());
        let placed = app.place(&patterns[4], &mut free).expect("fits");
        assert_eq!((placed.gpus(), free.total()), (8, 4));
        assert_eq!(app.place(&patterns[4], &mut free), None);
        assert_eq!(free.total(), 4);
        assert!(app.place(&patterns[2], &mut free).is_some());
    }

    #[test]
    fn a_search_bids_job_by_job() {
        let job = |work| Job::waiting(2, 2, work, Profile::PERFECT);
        let jobs = vec![job(100.0), job(300.0), job(200.0)];
        let app = AppState::new(50.0, 100.0, Stopping::All, jobs).with_rho_empty(Some(1e6));
        let rho: Vec<_> =
            app.patterns(&offer(), &rows()).iter().map(|p| (-p.log_v).exp()).collect();
        // 600 GPU-s at 2, 4, 6 GPUs after 50 s; never below the longest job's 150 s.
        for (got, want) in rho.iter().zip([3.5, 2.0, 2.0]) {
            assert!((got - want).abs() < 1e-12, "{rho:?}");
        }
    }

    #[test]
    fn the_gpus_that_complete_a_held_gang_come_first() {
        let mut app = solo(4, 8, [1.0; 4]);
        app.hold(0, &[(SlotId(0), 1)].into_iter().collect());
        let sizes: Vec<_> = app.patterns(&offer(), &rows()).iter().map(Pattern::gpus).collect();
        assert_eq!(sizes, vec![3, 7]);
    }

    #[test]
    fn only_gpus_near_those_held_are_bid_for_as_near() {
        let mut app = solo(1, 4, [1.0, 1.0, 8.0, 8.0]);
        app.hold(0, &[(SlotId(0), 1)].into_iter().collect());
        app.rho_empty = Some(10.0);
        let mut free = offer();
        let machine: Bundle = [(SlotId(0), 2), (SlotId(1), 2)].into_iter().collect();
        assert!(!app.patterns(&free, &rows()).is_empty());
        free.take(&machine);
        assert_eq!(app.patterns(&free, &rows()), vec![]);
    }

    #[test]
    fn a_search_bids_mixtures_of_localities() {
        let profile = Profile::new([1.0, 1.0, 2.0, 2.0]).expect("valid");
        let jobs = vec![Job::waiting(2, 2, 100.0, profile); 3];
        let app = AppState::new(50.0, 100.0, Stopping::All, jobs).with_rho_empty(Some(1e6));
        let patterns = app.patterns(&offer(), &rows());
        let three: Vec<_> = patterns.iter().filter(|p| p.steps == 3).collect();
        // Rates 3 to 6: each job within a machine doubles its own.
        let rates: Vec<u32> = three
            .iter()
            .map(|p| (300.0 / ((-p.log_v).exp() * 100.0 - 50.0)).round() as u32)
            .collect();
        assert_eq!(rates, vec![3, 4, 5, 6]);
        let chunks: Vec<u32> = three.iter().map(|p| p.uses.0.iter().sum::<u32>() - 6).collect();
        assert_eq!(chunks, vec![0, 1, 2, 3]);
        for pattern in &patterns {
            let placed = app.place(pattern, &mut offer()).expect("an empty cluster");
            assert!(placed.log_v >= pattern.log_v - 1e-12);
        }
    }
}
