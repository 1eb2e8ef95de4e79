//! An app's bid: a few dozen patterns instead of every subset of the offer.
//!
//! GPUs of a slot are interchangeable and a job's speed depends on count, locality and slowest GPU only, so a
//! bundle is worth what its *pattern* is worth: the first k steps of the app's jobs (a gang, then
//! as much again up to the job's cap), each job within one locality and one pool of GPU types. Cost:
//! O(steps x localities x pools).

use smallvec::SmallVec;

use crate::app::ladder::{Ladder, Reach, Step};
use crate::app::{AppState, Job, Stake, Stopping};
use crate::cluster::{Bundle, Chunks, Fill, FreeSet, Locality, Near, Topology, Use, fit_by};

/// Patterns of most bids at most.
const USUAL: usize = 64;

/// GPUs for one job of an app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Position among the app's jobs.
    pub job: usize,
    /// The GPUs.
    pub bundle: Bundle,
}

/// One row of a bid: so many GPUs, each job within one reach, and what that is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pattern {
    /// How many of the app's steps it serves (or the row of an explicit table).
    pub steps: u32,
    /// How many of those, from the first on, lie within `near` ([`AppState::mixtures`]).
    pub near_steps: u16,
    /// The reach that no job of the near steps exceeds.
    pub near: Reach,
    /// The reach that no other job exceeds.
    pub reach: Reach,
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

impl AppState {
    /// The bid on an offer: patterns that are worth more than nothing, by steps, slower pools and
    /// coarser localities first; of a pool, a closer one is listed only if it is worth more.
    pub fn patterns(&self, offer: &FreeSet, chunks: &Chunks) -> Vec<Pattern> {
        self.patterns_of(&self.stake(offer.topology()), offer, chunks)
    }

    /// The same with what it rests on at hand.
    pub(crate) fn patterns_of(
        &self,
        stake: &Stake,
        offer: &FreeSet,
        chunks: &Chunks,
    ) -> Vec<Pattern> {
        let steps = first_of(&stake.steps, offer.total().min(self.spare_of(offer)));
        let openings = self.openings(offer);
        let ladder = |reach| Ladder::new(self, stake, offer.topology(), reach);
        let mut ladders: SmallVec<[Ladder; 4]> = self.reaches().map(ladder).collect();
        let floor = stake.value.floor();
        let mut patterns: SmallVec<[Pattern; USUAL]> = SmallVec::new();
        for (count, step) in (1..).zip(steps) {
            let (mut coarser, mut pool) = (floor, u8::MAX);
            for ladder in &mut ladders {
                if ladder.reach().pool != pool {
                    (coarser, pool) = (floor, ladder.reach().pool);
                }
                if !ladder.climb(self, &openings, chunks, *step) {
                    continue;
                }
                let log_v = stake.value.log_v(ladder.pace());
                if log_v > coarser {
                    let (reach, uses) = (ladder.reach(), ladder.uses());
                    patterns.push(Pattern {
                        steps: count,
                        near_steps: 0,
                        near: reach,
                        reach,
                        log_v,
                        uses,
                    });
                    coarser = log_v;
                }
            }
        }
        patterns.to_vec()
    }

    /// Finds the GPUs of a pattern and takes them from `free`; `None` (and `free` unchanged) when
    /// they can't be had.
    pub fn place(&self, pattern: &Pattern, free: &mut FreeSet) -> Option<Placed> {
        self.place_of(pattern, &self.stake(free.topology()), free, Fill::Fullest)
    }

    /// The same with what it rests on at hand, since one bid is placed many times, and with the
    /// machines of a rack in a given order.
    pub(crate) fn place_of(
        &self,
        pattern: &Pattern,
        stake: &Stake,
        free: &mut FreeSet,
        fill: Fill,
    ) -> Option<Placed> {
        if pattern.gpus() > free.room(self.tenant) {
            return None;
        }
        let topology = free.shared_topology();
        let shares = shares(pattern, &stake.steps);
        let mut parts: Vec<Part> = Vec::with_capacity(shares.len());
        for (step, reach) in shares {
            let (job, gpus) = (step.job(), step.gpus);
            let state = &self.jobs[job];
            let near = Near { held: &state.held, previous: &state.previous };
            let within = state.within(&topology, reach);
            let Some(bundle) = fit_by(&free.open_to(state.needs), gpus, within, near, fill) else {
                for part in &parts {
                    self.give(free, part.job, &part.bundle);
                }
                return None;
            };
            free.take_for(self.tenant, state.needs, &bundle);
            parts.push(Part { job, bundle });
        }
        let log_v = stake.value.log_v(self.pace_with(stake, &topology, &parts));
        Some(Placed { parts, log_v })
    }

    /// The pace with these GPUs beside what its jobs keep.
    fn pace_with(&self, stake: &Stake, topology: &Topology, parts: &[Part]) -> f64 {
        let rate_with = |Part { job, bundle }: &Part| {
            let job = &self.jobs[*job];
            if job.held.is_empty() {
                return job.rate_on(topology, bundle);
            }
            job.rate_on(topology, &job.held.union(bundle))
        };
        match self.stopping {
            Stopping::All => parts.iter().fold(stake.pace, |pace, part| {
                let job = &self.jobs[part.job];
                pace - job.rate_on(topology, &job.held) + rate_with(part)
            }),
            Stopping::First => {
                let mut rates = self.held_rates(topology);
                for part in parts {
                    rates[part.job] = rate_with(part);
                }
                self.pace(&rates)
            }
        }
    }

    /// The steps in the order of service.
    pub(super) fn steps(&self) -> SmallVec<[Step; 8]> {
        let mut steps = SmallVec::new();
        let mut left = self.spare();
        let mut before: Option<&Job> = None;
        for job in self.order_of(|_| true) {
            let state = &self.jobs[job];
            let again = before.replace(state).is_some_and(|before| before.bids_like(state));
            let mut has = state.held.gpus();
            while has < state.max {
                // What completes the gang comes first, then as much again.
                let missing = state.gang.saturating_sub(has);
                let piece = if missing > 0 { missing } else { state.gang };
                let gpus = piece.clamp(1, state.max - has);
                if gpus > left {
                    return steps;
                }
                steps.push(Step { job: job as u32, gpus, again });
                has += gpus;
                left -= gpus;
            }
        }
        steps
    }

    /// Reaches between which some job can tell a difference: slowest pools, then coarsest
    /// localities first.
    pub(super) fn reaches(&self) -> impl Iterator<Item = Reach> {
        let mut tells = [false; 4];
        let mut before = None;
        for job in &self.jobs {
            if before != Some(&job.profile) {
                job.profile.distinct_levels().for_each(|level| tells[level.index()] = true);
                before = Some(&job.profile);
            }
        }
        let pools = self.jobs.iter().map(|job| job.speeds.pools().len()).max().unwrap_or(0);
        let levels = move || Locality::ALL.into_iter().rev().filter(move |l| tells[l.index()]);
        let pools = (0..pools as u8).rev();
        pools.flat_map(move |pool| levels().map(move |level| Reach { level, pool }))
    }
}

/// The first steps, up to so many GPUs in all.
pub(super) fn first_of(steps: &[Step], mut gpus: u32) -> &[Step] {
    let fits = |step: &&Step| {
        let left = gpus.checked_sub(step.gpus);
        gpus = left.unwrap_or(0);
        left.is_some()
    };
    &steps[..steps.iter().take_while(fits).count()]
}

/// What each job gets by a pattern, and how far apart it may be.
pub(crate) fn shares(pattern: &Pattern, steps: &[Step]) -> SmallVec<[(Step, Reach); 16]> {
    let mut shares: SmallVec<[(Step, Reach); 16]> = SmallVec::new();
    let mut left = pattern.gpus();
    for (at, step) in (0..).zip(steps) {
        if step.gpus > left {
            break;
        }
        left -= step.gpus;
        let reach = if at < pattern.near_steps { pattern.near } else { pattern.reach };
        match shares.last_mut() {
            Some((last, _)) if last.job() == step.job() => last.gpus += step.gpus,
            _ => shares.push((*step, reach)),
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::SlotId;
    use crate::app::{Job, Profile, Stopping};
    use crate::cluster::{MachineSpec, Topology, TypeSet};

    fn offer() -> FreeSet {
        let specs = [0, 0, 1].map(|rack| MachineSpec { rack, gpus: 4, slot_gpus: 2 });
        FreeSet::full(Arc::new(Topology::new(&specs).expect("valid")))
    }

    fn rows() -> Chunks {
        Chunks::of(&offer(), &[], &[TypeSet::ALL])
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
            .map(|p| (p.gpus(), p.reach.level))
            .collect();
        let level = Locality::Cluster;
        assert_eq!(sizes, vec![(2, level), (4, level), (6, level), (8, level)]);
    }

    #[test]
    fn closer_patterns_are_worth_more_and_only_those_that_fit_are_bid() {
        let patterns = solo(4, 8, [1.0, 1.0, 1.5, 2.0]).patterns(&offer(), &rows());
        let rows: Vec<_> = patterns.iter().map(|p| (p.gpus(), p.reach.level)).collect();
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
}
