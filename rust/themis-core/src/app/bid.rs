//! An app's bid: a few dozen patterns instead of every subset of the offer.
//!
//! GPUs of a slot are interchangeable and a job's speed depends on count and locality only, so a
//! bundle is worth what its *pattern* is worth: the first k steps of the app's jobs (a gang, then
//! more gangs up to the job's cap), every job within one locality. Cost: O(steps x localities).

use crate::app::claim::free_within;
use crate::app::{AppState, Job, Stopping};
use crate::cluster::{Bundle, FreeSet, Locality, Near, Topology, fit};

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
    /// GPUs that it takes.
    pub gpus: u32,
    /// How many of the app's steps it serves (or the row of an explicit table).
    pub steps: u32,
    /// The locality that no job exceeds.
    pub level: Locality,
    /// log V with these GPUs.
    pub log_v: f64,
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

/// One more piece of GPUs for a job: its gang, or as much again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    job: usize,
    gpus: u32,
}

impl AppState {
    /// The bid on an offer: patterns that are worth more than nothing, by steps, coarser locality
    /// first. Beyond 32 steps the counts are spaced by a sixteenth.
    pub fn patterns(&self, offer: &FreeSet) -> Vec<Pattern> {
        let topology = offer.topology();
        let steps = self.steps(offer.total());
        let floor = self.log_v_empty();
        let levels = self.levels();
        let mut patterns = Vec::new();
        let mut spread: Vec<Spread> =
            levels.iter().map(|level| Spread::new(self, topology, *level)).collect();
        let (mut gpus, mut next) = (0, 1);
        for (count, step) in steps.iter().enumerate().map(|(at, step)| (at + 1, step)) {
            gpus += step.gpus;
            let wanted = count == next || count == steps.len();
            if wanted {
                next = count + 1 + if count > 32 { count / 16 } else { 0 };
            }
            let mut coarser = f64::NEG_INFINITY;
            for (spread, level) in spread.iter_mut().zip(&levels) {
                spread.add(self, *step, offer);
                let log_v = self.log_v_at(&spread.rates);
                if wanted && spread.fits && log_v > floor && log_v > coarser {
                    coarser = log_v;
                    patterns.push(Pattern { gpus, steps: count as u32, level: *level, log_v });
                }
            }
        }
        patterns
    }

    /// Finds the GPUs of a pattern and takes them from `free`; `None` (and `free` unchanged) when
    /// they can't be had.
    pub fn place(&self, pattern: &Pattern, free: &mut FreeSet) -> Option<Placed> {
        let mut wanted: Vec<(usize, u32)> = Vec::new();
        for step in self.steps(u32::MAX).into_iter().take(pattern.steps as usize) {
            match wanted.last_mut() {
                Some((job, gpus)) if *job == step.job => *gpus += step.gpus,
                _ => wanted.push((step.job, step.gpus)),
            }
        }
        let topology = free.shared_topology();
        let mut rates = self.held_rates(&topology);
        let mut parts: Vec<Part> = Vec::with_capacity(wanted.len());
        for (job, gpus) in wanted {
            let state = &self.jobs[job];
            let near = Near { held: &state.held, previous: &state.previous };
            let level = pattern.level.max(topology.locality(&state.held));
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

    /// (GPUs, log V) such that no bundle of at least so many GPUs, and fewer than the next row has,
    /// is worth more: the closest placement that the offer allows. The auction's certified upper
    /// bound stands on it. Beyond 64 GPUs the rows are spaced by a sixteenth.
    pub fn bound(&self, offer: &FreeSet) -> Vec<(u32, f64)> {
        let open = || self.jobs.iter().filter(|job| job.unmet() > 0);
        let smallest = open().map(|job| job.gang.saturating_sub(job.held.gpus()).max(1)).min();
        let most = self.unmet().min(offer.total());
        let mut rows = Vec::new();
        let mut from = smallest.unwrap_or(u32::MAX);
        while from <= most {
            let until = if from > 64 { from + from / 16 } else { from }.min(most);
            rows.push((from, self.log_v_at_most(offer, from, until)));
            from = until + 1;
        }
        rows
    }

    /// log V that no bundle of `from` to `until` GPUs exceeds.
    fn log_v_at_most(&self, offer: &FreeSet, from: u32, until: u32) -> f64 {
        let topology = offer.topology();
        let held: u32 = self.jobs.iter().map(|job| job.held.gpus()).sum();
        let rates = if let [job] = self.jobs.as_slice() {
            let alone = if held == 0 { closest(offer, from) } else { Locality::Slot };
            vec![job.rate_at(held + until, alone.max(topology.locality(&job.held)))]
        } else if self.stopping == Stopping::All {
            // A GPU does at most one GPU-second of work a second, whatever its job.
            let mut rates = vec![0.0; self.jobs.len()];
            rates[0] = f64::from(held + until);
            rates
        } else {
            let most = |job: &Job| f64::from((job.held.gpus() + until).min(job.max));
            self.jobs.iter().map(most).collect()
        };
        self.log_v_at(&rates)
    }

    /// The steps in the order of service, up to so many GPUs in all.
    fn steps(&self, limit: u32) -> Vec<Step> {
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
    fn levels(&self) -> Vec<Locality> {
        let tells = |level: &Locality| {
            self.jobs.iter().any(|job| job.profile.distinct_levels().any(|l| l == *level))
        };
        Locality::ALL.into_iter().rev().filter(tells).collect()
    }
}

/// Rates of an app's jobs as steps are added, every job within one locality.
struct Spread {
    level: Locality,
    now: Vec<Locality>,
    gpus: Vec<u32>,
    rates: Vec<f64>,
    fits: bool,
}

impl Spread {
    fn new(app: &AppState, topology: &Topology, level: Locality) -> Self {
        Self {
            level,
            now: app.jobs.iter().map(|job| topology.locality(&job.held)).collect(),
            gpus: app.jobs.iter().map(|job| job.held.gpus()).collect(),
            rates: app.held_rates(topology),
            fits: true,
        }
    }

    fn add(&mut self, app: &AppState, step: Step, offer: &FreeSet) {
        let job = &app.jobs[step.job];
        self.gpus[step.job] += step.gpus;
        let one = self.gpus[step.job] == 1;
        let level = self.now[step.job].max(if one { Locality::Slot } else { self.level });
        let within = free_within(offer, &job.held, level);
        self.fits &= self.gpus[step.job] - job.held.gpus() <= within;
        self.rates[step.job] = job.rate_at(self.gpus[step.job], level);
    }
}

/// The finest locality at which the offer has so many GPUs.
fn closest(offer: &FreeSet, gpus: u32) -> Locality {
    let fits = |level: &Locality| offer.largest(*level) >= gpus;
    Locality::ALL.into_iter().find(fits).unwrap_or(Locality::Cluster)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::SlotId;
    use crate::app::Profile;
    use crate::cluster::MachineSpec;

    fn offer() -> FreeSet {
        let specs = [0, 0, 1].map(|rack| MachineSpec { rack, gpus: 4, slot_gpus: 2 });
        FreeSet::full(Arc::new(Topology::new(&specs).expect("valid")))
    }

    fn solo(gang: u32, max: u32, slowdown: [f64; 4]) -> AppState {
        let job = Job::waiting(gang, max, 1000.0, Profile::new(slowdown).expect("valid"));
        AppState::new(0.0, 100.0, Stopping::All, vec![job]).with_rho_empty(Some(1e6))
    }

    #[test]
    fn a_gang_that_feels_no_distance_has_one_pattern_a_size() {
        let sizes: Vec<_> =
            solo(2, 8, [1.0; 4]).patterns(&offer()).iter().map(|p| (p.gpus, p.level)).collect();
        let level = Locality::Cluster;
        assert_eq!(sizes, vec![(2, level), (4, level), (6, level), (8, level)]);
    }

    #[test]
    fn closer_patterns_are_worth_more_and_only_those_that_fit_are_bid() {
        let patterns = solo(4, 8, [1.0, 1.0, 1.5, 2.0]).patterns(&offer());
        let rows: Vec<_> = patterns.iter().map(|p| (p.gpus, p.level)).collect();
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
        let patterns = app.patterns(&free);
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
        let rho: Vec<_> = app.patterns(&offer()).iter().map(|p| (-p.log_v).exp()).collect();
        // 600 GPU-s at 2, 4, 6 GPUs after 50 s; never below the longest job's 150 s.
        for (got, want) in rho.iter().zip([3.5, 2.0, 2.0]) {
            assert!((got - want).abs() < 1e-12, "{rho:?}");
        }
    }

    #[test]
    fn the_gpus_that_complete_a_held_gang_come_first() {
        let mut app = solo(4, 8, [1.0; 4]);
        app.hold(0, &[(SlotId(0), 1)].into_iter().collect());
        let sizes: Vec<_> = app.patterns(&offer()).iter().map(|p| p.gpus).collect();
        assert_eq!(sizes, vec![3, 7]);
    }

    #[test]
    fn only_gpus_near_those_held_are_bid_for_as_near() {
        let mut app = solo(1, 4, [1.0, 1.0, 8.0, 8.0]);
        app.hold(0, &[(SlotId(0), 1)].into_iter().collect());
        app.rho_empty = Some(10.0);
        let mut free = offer();
        let machine: Bundle = [(SlotId(0), 2), (SlotId(1), 2)].into_iter().collect();
        assert!(!app.patterns(&free).is_empty());
        free.take(&machine);
        assert_eq!(app.patterns(&free), vec![]);
    }

    #[test]
    fn no_placement_beats_the_bound() {
        for app in [solo(1, 8, [1.0, 1.2, 1.5, 2.0]), solo(3, 9, [1.0, 1.0, 1.1, 1.3])] {
            for pattern in app.patterns(&offer()) {
                let placed = app.place(&pattern, &mut offer()).expect("an empty cluster");
                assert!(placed.log_v >= pattern.log_v);
                let bound = app.bound(&offer());
                let row = bound.iter().rfind(|(gpus, _)| *gpus <= pattern.gpus).expect("a row");
                assert!(placed.log_v <= row.1 + 1e-12);
            }
        }
    }
}
