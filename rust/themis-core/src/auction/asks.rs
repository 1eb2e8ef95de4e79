//! How often the patterns of a bidder ask for each kind of room.
//!
//! A pattern serves the first steps of an app, and those before a cut between jobs lie nearer than the
//! others. What it asks for is what those before the cut ask for within the near reach, and what the
//! others ask for within the far one: differences of beginnings, which are counted once a reach.
//!
//! Cost: O(steps x asks that differ) a reach, O(asks that differ) a pattern.

use smallvec::SmallVec;

use super::Bid;
use super::bid::Ask;
use crate::app::{AppState, Pattern, Reach, Step};
use crate::cluster::Topology;

/// (kind, how often)
pub(super) type Counts = SmallVec<[(u16, u16); 2]>;

/// (which of the asks that differ, how often)
type Tally = SmallVec<[(u32, u16); 2]>;

/// What a bidder's patterns ask for.
pub(super) struct Asked<'a> {
    bid: &'a Bid<'a>,
    topology: &'a Topology,
    /// The most steps that a pattern serves: an app can have far more than an offer has GPUs.
    most: usize,
    /// Asks that differ, and their kinds once these were needed.
    asks: Vec<(Ask, Option<u16>)>,
    /// Of each reach that was met, which of these the first steps ask for: none, one, two, ...
    beginnings: SmallVec<[(Reach, Vec<Tally>); 4]>,
}

impl<'a> Asked<'a> {
    pub(super) fn by(bid: &'a Bid<'a>, topology: &'a Topology) -> Self {
        let most = bid.patterns.iter().map(|pattern| pattern.steps as usize).max().unwrap_or(0);
        Self { bid, topology, most, asks: Vec::new(), beginnings: SmallVec::new() }
    }

    /// How often a pattern asks for each kind, which `kind` numbers.
    pub(super) fn kinds(&mut self, pattern: usize, mut kind: impl FnMut(&Ask) -> u16) -> Counts {
        let mut kinds = Counts::new();
        for (ask, count) in self.of(pattern) {
            let (ask, known) = &mut self.asks[ask as usize];
            let kind = *known.get_or_insert_with(|| kind(ask));
            add(&mut kinds, kind, count);
        }
        kinds
    }

    /// How often it asks for each of the asks that differ.
    fn of(&mut self, pattern: usize) -> Tally {
        let bid = self.bid;
        let mut counts = Tally::new();
        let Some(app) = bid.app_and_steps() else {
            bid.for_each_ask(self.topology, pattern, |ask| add(&mut counts, self.number(ask), 1));
            return counts;
        };
        let Pattern { steps, near_steps, near, reach, .. } = bid.patterns[pattern];
        let cut = usize::from(near_steps);
        if cut > 0 {
            counts.clone_from(&self.beginnings(app, near)[cut]);
        }
        let far = self.beginnings(app, reach);
        for (ask, count) in &far[steps as usize] {
            let nearer = far[cut].iter().find(|(other, _)| other == ask);
            add(&mut counts, *ask, count - nearer.map_or(0, |(_, count)| *count));
        }
        counts
    }

    /// What the first steps ask for within a reach; all steps of a job are one ask.
    fn beginnings(&mut self, (app, steps): (&AppState, &[Step]), reach: Reach) -> &[Tally] {
        let known = self.beginnings.iter().position(|(of, _)| *of == reach);
        let at = known.unwrap_or_else(|| {
            let mut all = vec![Tally::new()];
            let (mut first, mut gpus) = (0, 0);
            for (at, step) in steps.iter().take(self.most).enumerate() {
                if step.job() != steps[first].job() {
                    (first, gpus) = (at, 0);
                }
                gpus += step.gpus;
                let ask = self.number(Ask::of(app, self.topology, (step.job(), gpus), reach));
                let mut counts = all[first].clone();
                add(&mut counts, ask, 1);
                all.push(counts);
            }
            self.beginnings.push((reach, all));
            self.beginnings.len() - 1
        });
        &self.beginnings[at].1
    }

    /// The number of an ask among those that differ.
    fn number(&mut self, ask: Ask) -> u32 {
        let known = self.asks.iter().position(|(known, _)| known.is_like(&ask));
        let number = known.unwrap_or_else(|| {
            self.asks.push((ask, None));
            self.asks.len() - 1
        });
        number as u32
    }
}

/// Counts so many more of one.
fn add<T: PartialEq>(counts: &mut SmallVec<[(T, u16); 2]>, one: T, more: u16) {
    match counts.iter_mut().find(|(known, _)| *known == one) {
        Some((_, count)) => *count += more,
        None if more > 0 => counts.push((one, more)),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::Bidder;
    use super::*;
    use crate::SlotId;
    use crate::app::{Job, Profile, Stopping};
    use crate::cluster::{Chunks, FreeSet, MachineSpec, TypeSet};

    /// Two racks of two machines of 8 GPUs in slots of 4.
    fn offer() -> FreeSet {
        let spec = |rack| MachineSpec { rack, gpus: 8, slot_gpus: 4 };
        let topology = Topology::new(&[0, 0, 1, 1].map(spec)).expect("valid");
        FreeSet::full(Arc::new(topology))
    }

    #[test]
    fn steps_beyond_an_offer_cost_nothing() {
        let offer = offer();
        let job = Job::waiting(1, 400_000, 1e9, Profile::PERFECT);
        let app = AppState::new(100.0, 500.0, Stopping::All, vec![job]);
        let bidder = Bidder::App(app.with_rho_empty(Some(1e9)));
        let chunks = Chunks::of(&offer, &[1], &[TypeSet::ALL]);
        let bid = Bid::none(&bidder, offer.topology()).on(&offer, &chunks, true);
        let mut asked = Asked::by(&bid, offer.topology());
        assert_eq!(asked.kinds(bid.patterns.len() - 1, |_| 7)[..], [(7, 1)]);
        assert_eq!((asked.most, asked.asks.len()), (32, 32));
    }

    #[test]
    fn differences_of_beginnings_are_what_jobs_ask_for_one_by_one() {
        let offer = offer();
        let (mut mixtures, mut several) = (0, 0);
        for seed in 1..60_u64 {
            let mut state = seed * 7_919;
            let mut below = |limit: u64| {
                state = state * 48_271 % 0x7fff_ffff;
                (state % limit) as u32
            };
            let far = 1.5 + f64::from(below(20)) / 10.0;
            let jobs = (0..2 + below(4)).map(|_| {
                let profile = Profile::new([1.0, 1.1, far, far + 1.0]).expect("valid");
                let gang = 1 + below(3);
                Job::waiting(gang, gang * (1 + below(3)), f64::from(500 + below(5_000)), profile)
            });
            let mut app = AppState::new(100.0, 500.0, Stopping::All, jobs.collect());
            if below(2) == 0 {
                app.hold(0, &[(SlotId(below(8)), 1)].into_iter().collect());
            }
            let bidder = Bidder::App(app.with_rho_empty(Some(200.0)));
            let chunks = Chunks::of(&offer, &[1, 2, 3, 4], &[TypeSet::ALL]);
            let bid = Bid::none(&bidder, offer.topology()).on(&offer, &chunks, true);
            let mut asked = Asked::by(&bid, offer.topology());
            let mut numbered: Vec<Ask> = Vec::new();
            for (at, pattern) in bid.patterns.iter().enumerate() {
                let mut kinds = asked.kinds(at, |ask| {
                    numbered.push(*ask);
                    numbered.len() as u16 - 1
                });
                let mut one_by_one = Counts::new();
                bid.for_each_ask(offer.topology(), at, |ask| {
                    let like = numbered.iter().position(|known| known.is_like(&ask));
                    add(&mut one_by_one, like.expect("it was numbered") as u16, 1);
                });
                kinds.sort_unstable();
                one_by_one.sort_unstable();
                assert_eq!(kinds, one_by_one, "seed {seed}: pattern {at}");
                mixtures += u32::from(pattern.near_steps > 0);
                several += u32::from(kinds.len() > 1);
            }
        }
        assert!(mixtures > 500 && several > 1_000, "{mixtures} {several}");
    }
}
