//! What bidders may have instead of what they have, and what sets of them can gain by it.
//!
//! At given prices a selection is worth D less what its choices give up and what it leaves unused. So a
//! set that chooses again comes to something better only if it gives up less, or what is unused shrinks
//! by as much. Of what is unused beside GPUs, most is of no use to anybody, which narrows what is
//! looked at.
//!
//! Cost: O(choices of all bidders) a survey, and a sort.

use smallvec::SmallVec;

use super::menus::{self, Choice};
use super::search::{LEAST_GAIN, Task};

/// The part of what is left unused, beside GPUs, that a set may make use of: most of it nobody can.
const USE: f64 = 0.3;

/// What a bidder may have instead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    /// What it gives up more than now.
    pub(super) regret: f64,
    /// log V more than now.
    pub(super) gain: f64,
    pub(super) gpus: u32,
    pub(super) choice: u32,
}

/// All that a bidder may have instead, and what that is at best.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    /// Those that give up least first.
    pub(super) all: Vec<Change>,
    /// The least that is given up more, and for a gain.
    pub(super) regret: f64,
    gaining: f64,
    /// The largest ask.
    pub(super) largest: u32,
    /// The most that is gained with up to so many GPUs.
    within: Vec<f64>,
}

/// What everybody may have instead, as things are.
#[derive(Debug)]
pub(super) struct Survey {
    /// By bidder.
    pub(super) of: Vec<Changes>,
    /// Bidders with changes, those that give up least first.
    pub(super) order: Vec<usize>,
    /// Those that may gain, those that give up least for it first, and the place of everybody there.
    pub(super) gainers: Vec<usize>,
    pub(super) rank: Vec<usize>,
    /// What a set gives up more than now is less if it is better.
    pub(super) limit: f64,
}

impl Changes {
    /// The most that is gained with up to so many GPUs.
    pub(super) fn most(&self, gpus: u32) -> f64 {
        self.within.get(gpus as usize).or(self.within.last()).copied().unwrap_or(f64::NEG_INFINITY)
    }

    /// Learns what all of it is at best.
    fn sum_up(&mut self, menu: &[Choice]) {
        let most = self.all.iter().map(|change| change.gpus as usize + 1).max().unwrap_or(0);
        self.within.clear();
        self.within.resize(most, f64::NEG_INFINITY);
        (self.regret, self.gaining, self.largest) = (f64::INFINITY, f64::INFINITY, 0);
        for Change { regret, gain, gpus, choice } in self.all.iter().copied() {
            self.regret = self.regret.min(regret);
            if gain > LEAST_GAIN {
                self.gaining = self.gaining.min(regret);
            }
            self.largest = self.largest.max(menu[choice as usize].largest);
            let within = &mut self.within[gpus as usize];
            *within = within.max(gain);
        }
        for gpus in 1..most {
            self.within[gpus] = self.within[gpus].max(self.within[gpus - 1]);
        }
    }
}

impl Survey {
    pub(super) fn new(bidders: usize) -> Self {
        Self {
            of: vec![Changes::default(); bidders],
            order: Vec::new(),
            gainers: Vec::new(),
            rank: Vec::new(),
            limit: 0.0,
        }
    }

    /// Takes stock of these choices, which leave so many GPUs: for sets of up to `size`.
    pub(super) fn take(&mut self, task: &Task<'_>, choices: &[u32], idle: u32, size: usize) {
        let Task { menus, ways, price, value, without, fixed, .. } = *task;
        let choice = |bidder: usize| &menus.of[bidder][choices[bidder] as usize];
        let others = || (0..choices.len()).filter(|bidder| Some(*bidder) != without);
        let gap = value - menus.log_v(choices, without);
        let regret = |bidder: usize| menus::regret(&ways[bidder], choices[bidder]).unwrap_or(gap);
        let regrets: Vec<f64> = (0..choices.len()).map(regret).collect();
        let of_gpus = price * f64::from(idle);
        let unused = gap - others().map(|bidder| regrets[bidder]).sum::<f64>() - of_gpus;
        self.limit = of_gpus + USE * unused.max(0.0) - LEAST_GAIN;
        // What the others of a set may give up less.
        let mut most: SmallVec<[f64; 64]> = others().map(|bidder| regrets[bidder]).collect();
        most.sort_by(|a, b| b.total_cmp(a));
        let limit = self.limit + most.iter().take(size - 1).sum::<f64>();
        self.order.clear();
        for bidder in others().filter(|bidder| Some(*bidder) != fixed) {
            let now = choice(bidder);
            let changes = &mut self.of[bidder];
            let near = ways[bidder].1.iter().take_while(|way| way.regret - regrets[bidder] < limit);
            changes.all.clear();
            changes.all.extend(near.filter(|way| way.choice != choices[bidder]).map(|way| {
                let regret = way.regret - regrets[bidder];
                let gain = menus.of[bidder][way.choice as usize].log_v - now.log_v;
                Change { regret, gain, gpus: way.gpus, choice: way.choice }
            }));
            if changes.all.is_empty() {
                continue;
            }
            changes.sum_up(&menus.of[bidder]);
            self.order.push(bidder);
        }
        self.sort();
    }

    fn sort(&mut self) {
        let Self { of, order, gainers, rank, .. } = self;
        let by = |key: fn(&Changes) -> f64, a: usize, b: usize| {
            key(&of[a]).total_cmp(&key(&of[b])).then(a.cmp(&b))
        };
        order.sort_by(|a, b| by(|changes| changes.regret, *a, *b));
        gainers.clear();
        gainers.extend(order.iter().filter(|bidder| of[**bidder].gaining.is_finite()));
        gainers.sort_by(|a, b| by(|changes| changes.gaining, *a, *b));
        rank.clear();
        rank.resize(of.len(), usize::MAX);
        for (at, bidder) in gainers.iter().enumerate() {
            rank[*bidder] = at;
        }
    }

    /// What bidders may gain alone with so many GPUs beside their own, the most first.
    pub(super) fn alone(&self, idle: u32, own: impl Fn(usize) -> u32) -> Vec<(usize, Change)> {
        let mut alone: Vec<(usize, Change)> = Vec::new();
        for bidder in self.gainers.iter().copied() {
            let gpus = idle + own(bidder);
            let gains = self.of[bidder].all.iter().filter(|change| {
                change.gain > LEAST_GAIN && change.regret < self.limit && change.gpus <= gpus
            });
            alone.extend(gains.map(|change| (bidder, *change)));
        }
        let order = |(bidder, change): &(usize, Change)| (*bidder, change.choice);
        alone.sort_unstable_by(|a, b| {
            b.1.gain.total_cmp(&a.1.gain).then_with(|| order(a).cmp(&order(b)))
        });
        alone
    }

    /// Whether these bidders could gain anything with so many GPUs between them, wherever these lie.
    pub(super) fn could_gain(&self, set: &[usize], gpus: u32) -> bool {
        let Some((first, rest)) = set.split_first() else { return false };
        let mut changes = self.of[*first].all.iter().filter(|change| change.gpus <= gpus);
        changes.any(|change| change.gain + self.most(rest, gpus - change.gpus) > LEAST_GAIN)
    }

    /// The most that bidders gain, each with up to so many GPUs.
    pub(super) fn most(&self, set: &[usize], gpus: u32) -> f64 {
        set.iter().map(|bidder| self.of[*bidder].most(gpus)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Bid;
    use super::super::few::tests::{draw, solved};
    use super::super::packed::Packed;
    use super::*;
    use crate::cluster::{Chunks, TypeSet};

    /// Whether some of the changes of these bidders, or none, gain with so many GPUs.
    fn gains(survey: &Survey, set: &[usize], gpus: u32, gain: f64) -> bool {
        let Some((first, rest)) = set.split_first() else { return gain > LEAST_GAIN };
        let changes = survey.of[*first].all.iter().filter(|change| change.gpus <= gpus);
        changes.into_iter().any(|more| gains(survey, rest, gpus - more.gpus, gain + more.gain))
    }

    #[test]
    fn no_set_that_could_gain_is_passed_over_and_gains_alone_are_all_that_fit() {
        let (mut passed, mut tried, mut alone) = (0, 0, 0);
        for seed in 0..60 {
            let (offer, bidders) = draw(seed);
            let chunks = Chunks::of(&offer, &[1, 2, 3, 4], &[TypeSet::ALL]);
            let bid = |bidder| Bid::none(bidder, offer.topology()).on(&offer, &chunks, false);
            let bids: Vec<Bid<'_>> = bidders.iter().map(bid).collect();
            let (best, mut few) = solved(&offer, &chunks, &bids);
            let mut packed = Packed::of(&few.menus, offer.topology(), &bids, &best);
            packed.choices[seed as usize % bids.len()] = 0;
            let gpus = |bidder: usize| packed.choice(&few.menus, bidder).gpus;
            let now: Vec<u32> = (0..bids.len()).map(gpus).collect();
            let idle = offer.total() - now.iter().sum::<u32>();
            let (task, ..) = few.task(None, 0.0, 0.0, 0);
            let mut survey = Survey::new(bids.len());
            survey.take(&task, &packed.choices, idle, 3);
            for set in [&[0, 1][..], &[3, 2], &[0, 2, 4], &[4, 3, 1]] {
                let gpus = idle + set.iter().map(|bidder| now[*bidder]).sum::<u32>();
                let could = survey.could_gain(set, gpus);
                assert!(could || !gains(&survey, set, gpus, 0.0), "seed {seed}: {set:?}");
                passed += u32::from(!could);
                tried += 1;
            }
            let gains_alone = survey.alone(idle, |bidder| now[bidder]);
            assert!(gains_alone.is_sorted_by(|a, b| a.1.gain >= b.1.gain));
            for (bidder, change) in gains_alone {
                assert!(change.gain > 0.0 && change.gpus <= idle + now[bidder], "seed {seed}");
                assert!(gains(&survey, &[bidder], idle + now[bidder], 0.0), "seed {seed}");
                alone += 1;
            }
        }
        assert!(passed > 30 && passed < tried - 30 && alone > 60, "{passed} of {tried}, {alone}");
    }
}
