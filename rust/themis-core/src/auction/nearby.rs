//! Better selections near one that packs: local search.
//!
//! The best selection without a winner differs from the best with everybody in few bidders: 3.3 of 30
//! on average, where 128 scattered GPUs are on offer. So all sets of up to [`SIZE`] bidders are tried:
//! what they have is taken back, and they choose again, those with the largest asks first, while the
//! others keep what they have, in rooms that may change ([`super::floor`]). What is better stands, and
//! all begins anew. At given prices most sets can't be better and are passed over: a selection is worth
//! D less what its choices give up and what it leaves unused.
//!
//! Cost: the steps of the task at most, counted, never timed. Guarantee: not worse than the start, and
//! it packs.

use std::cmp::Reverse;

use smallvec::SmallVec;

use super::floor::Floor;
use super::menus::Choice;
use super::packed::Packed;
use super::search::{LEAST_GAIN, Task};

/// Bidders that choose again at once.
const SIZE: usize = 3;
/// The part of what is left unused, beside GPUs, that a set may make use of: most of it nobody can.
const USE: f64 = 0.3;

/// What a bidder may have instead.
#[derive(Clone, Copy)]
struct Change {
    /// What it gives up more than now.
    regret: f64,
    /// log V more than now.
    gain: f64,
    gpus: u32,
    choice: u32,
}

/// What a bidder may have instead, and what that is at best.
#[derive(Clone, Default)]
struct Changes {
    /// Those that give up least first.
    all: Vec<Change>,
    /// The least that is given up more.
    regret: f64,
    /// The most that is gained.
    gain: f64,
    /// The largest ask.
    largest: u32,
}

/// Rooms and asks looked at in a step, and what a set and a way of a bidder count as.
const A_STEP: u32 = 40;
const A_SET: u32 = 32;

type Set = SmallVec<[usize; SIZE]>;

/// A search under way.
struct Nearby<'a> {
    task: &'a Task<'a>,
    choices: Vec<u32>,
    floor: Floor<'a>,
    /// GPUs that nobody has.
    idle: u32,
    changes: Vec<Changes>,
    /// Bidders with changes, those that give up least first.
    order: Vec<usize>,
    /// What a set gives up more than now is less if it is better.
    limit: f64,
    /// By how many of a set have chosen: the number of that choice, and of which choice a kind was
    /// found not to fit.
    misfits: [(u32, Vec<u32>); SIZE],
    dealt: u32,
}

/// The best selection that is found from this one on, its sum of log V, and the steps that are left.
pub(super) fn improve(task: &Task<'_>, mut start: Packed) -> (Packed, f64, u32) {
    if let Some(bidder) = task.without {
        start.choices[bidder] = 0;
        start.places[bidder].clear();
    }
    let mut nearby = Nearby::new(task, start);
    loop {
        nearby.survey();
        if !(1..=SIZE).any(|size| nearby.any_set(0, size, &mut Set::new(), 0.0)) {
            break;
        }
    }
    let left = nearby.left();
    let packed = Packed { choices: nearby.choices, places: nearby.floor.into_places() };
    let log_v = packed.log_v(task.menus, task.without);
    (packed, log_v, left)
}

impl<'a> Nearby<'a> {
    fn new(task: &'a Task<'a>, start: Packed) -> Self {
        let bidders = task.menus.of.len();
        let used = (0..bidders).map(|bidder| start.choice(task.menus, bidder).gpus).sum::<u32>();
        let kinds = task.menus.rooms.kinds.len();
        Self {
            task,
            choices: start.choices,
            floor: Floor::new(&task.menus.rooms, start.places),
            idle: task.gpus - used,
            changes: vec![Changes::default(); bidders],
            order: Vec::new(),
            limit: 0.0,
            misfits: [0; SIZE].map(|_| (0, vec![0; kinds])),
            dealt: 0,
        }
    }

    fn left(&self) -> u32 {
        self.task.steps.saturating_sub(self.floor.looks / A_STEP)
    }

    fn choice(&self, bidder: usize) -> &'a Choice {
        &self.task.menus.of[bidder][self.choices[bidder] as usize]
    }

    /// What everybody may have instead, as things are.
    fn survey(&mut self) {
        let Task { menus, ways, price, value, without, .. } = *self.task;
        let bidders = (0..self.choices.len()).filter(|bidder| Some(*bidder) != without);
        let log_v: f64 = bidders.clone().map(|bidder| self.choice(bidder).log_v).sum();
        let gap = value - log_v;
        let regret = |bidder: usize| {
            let now = ways[bidder].1.iter().find(|way| way.choice == self.choices[bidder]);
            now.map_or(gap, |way| way.regret)
        };
        let regrets: Vec<f64> = (0..self.choices.len()).map(regret).collect();
        let idle = price * f64::from(self.idle);
        let unused = gap - bidders.clone().map(|bidder| regrets[bidder]).sum::<f64>() - idle;
        self.limit = idle + USE * unused.max(0.0) - LEAST_GAIN;
        // What the others of a set may give up less.
        let mut most: SmallVec<[f64; 64]> = bidders.clone().map(|bidder| regrets[bidder]).collect();
        most.sort_by(|a, b| b.total_cmp(a));
        let limit = self.limit + most.iter().take(SIZE - 1).sum::<f64>();
        self.order.clear();
        for bidder in bidders {
            let now = self.choice(bidder).log_v;
            let changes = &mut self.changes[bidder];
            changes.all.clear();
            (changes.gain, changes.largest) = (f64::NEG_INFINITY, 0);
            let others = ways[bidder].1.iter().filter(|way| way.choice != self.choices[bidder]);
            for way in others {
                let regret = way.regret - regrets[bidder];
                if regret >= limit {
                    break;
                }
                let choice = &menus.of[bidder][way.choice as usize];
                let gain = choice.log_v - now;
                changes.gain = changes.gain.max(gain);
                changes.largest = changes.largest.max(choice.largest);
                changes.all.push(Change { regret, gain, gpus: way.gpus, choice: way.choice });
            }
            self.floor.looks += 8 + changes.all.len() as u32;
            if let Some(first) = changes.all.first() {
                changes.regret = first.regret;
                self.order.push(bidder);
            }
        }
        let regret = |bidder: &usize| self.changes[*bidder].regret;
        self.order.sort_by(|a, b| regret(a).total_cmp(&regret(b)).then(a.cmp(b)));
    }

    /// Whether a set of so many more bidders, from one in the order on, can have something better; they
    /// have it then.
    fn any_set(&mut self, from: usize, more: usize, set: &mut Set, regret: f64) -> bool {
        if more == 0 {
            let gain: f64 = set.iter().map(|bidder| self.changes[*bidder].gain).sum();
            return gain > LEAST_GAIN && self.chooses_again(set);
        }
        for at in from..self.order.len() {
            let bidder = self.order[at];
            let regret = regret + self.changes[bidder].regret;
            let next = self.order[at + 1..].iter().take(more - 1);
            let less: f64 = next.map(|next| self.changes[*next].regret.min(0.0)).sum();
            if regret + less >= self.limit {
                if less == 0.0 {
                    return false;
                }
                continue;
            }
            set.push(bidder);
            let better = self.any_set(at + 1, more - 1, set, regret);
            set.pop();
            if better || self.left() == 0 {
                return better;
            }
        }
        false
    }

    /// Whether the bidders of a set, whose GPUs are taken back, can have something better.
    fn chooses_again(&mut self, set: &Set) -> bool {
        self.floor.looks += A_SET;
        let mut set = set.clone();
        set.sort_by_key(|bidder| (Reverse(self.changes[*bidder].largest), *bidder));
        let mut gpus = self.idle;
        for bidder in &set {
            gpus += self.choice(*bidder).gpus;
            self.floor.take_back(*bidder);
        }
        let better = self.deal(&set, &mut SmallVec::new(), (0.0, 0.0), gpus);
        if !better {
            self.floor.restore();
        }
        better
    }

    /// Whether the rest of a set can have something that makes the sum larger, with so many GPUs.
    fn deal(
        &mut self,
        set: &Set,
        dealt: &mut SmallVec<[u32; SIZE]>,
        (regret, gain): (f64, f64),
        gpus: u32,
    ) -> bool {
        let Some((bidder, rest)) = set[dealt.len()..].split_first() else {
            self.keep(set, dealt, gpus);
            return true;
        };
        self.dealt += 1;
        self.misfits[dealt.len()].0 = self.dealt;
        let of_rest = |what: fn(&Changes) -> f64| -> f64 {
            rest.iter().map(|other| what(&self.changes[*other])).sum()
        };
        let (least, most) = (of_rest(|changes| changes.regret), of_rest(|changes| changes.gain));
        for at in 0..self.changes[*bidder].all.len() {
            let change = self.changes[*bidder].all[at];
            let (regret, gain) = (regret + change.regret, gain + change.gain);
            if regret + least >= self.limit || self.left() == 0 {
                return false;
            }
            if change.gpus > gpus || gain + most <= LEAST_GAIN {
                continue;
            }
            let before = self.floor.done();
            if self.put(*bidder, change.choice, dealt.len()) {
                dealt.push(change.choice);
                if self.deal(set, dealt, (regret, gain), gpus - change.gpus) {
                    return true;
                }
                dealt.pop();
            }
            self.floor.undo(before);
        }
        false
    }

    /// Puts what a choice asks for; whether it could. A kind that does not fit does not beside more.
    fn put(&mut self, bidder: usize, choice: u32, dealt: usize) -> bool {
        let asks = &self.task.menus.of[bidder][choice as usize].asks;
        let misfit = |(kind, _): &(u16, u16)| {
            let of = |(number, of): &(u32, Vec<u32>)| of[usize::from(*kind)] == *number;
            self.misfits[..=dealt].iter().any(of)
        };
        if asks.iter().any(misfit) {
            return false;
        }
        let before = self.floor.done();
        let mut bound = asks.iter().filter(|(kind, _)| self.task.menus.rooms.is_bound(*kind));
        bound.all(|(kind, count)| {
            (0..*count).all(|_| {
                let first = self.floor.done() == before;
                let fits = self.floor.put(*kind);
                if first && !fits {
                    let (number, misfits) = &mut self.misfits[dealt];
                    misfits[usize::from(*kind)] = *number;
                }
                fits
            })
        })
    }

    /// For good: a set has these choices.
    fn keep(&mut self, set: &Set, dealt: &[u32], idle: u32) {
        for (bidder, choice) in set.iter().zip(dealt) {
            self.choices[*bidder] = *choice;
        }
        let asks = |bidder: &usize| {
            let asks = self.choice(*bidder).asks.iter();
            let bound = asks.filter(|(kind, _)| self.task.menus.rooms.is_bound(*kind));
            (*bidder, bound.map(|(_, count)| usize::from(*count)).sum())
        };
        let owners: SmallVec<[(usize, usize); SIZE]> = set.iter().map(asks).collect();
        self.floor.keep(owners.into_iter());
        self.idle = idle;
    }
}

#[cfg(test)]
mod tests {
    use super::super::few::Few;
    use super::super::few::tests::draw;
    use super::super::packed::tests::assert_packs;
    use super::super::solution::Solution;
    use super::super::{Bid, dual};
    use super::*;
    use crate::cluster::{Chunks, TypeSet};

    #[test]
    fn from_nothing_it_comes_to_the_best_mostly_and_never_above_it() {
        let (mut best, mut whole) = (0, 0);
        for seed in 0..60 {
            let (offer, bidders) = draw(seed);
            let chunks = Chunks::of(&offer, &[1, 2, 3, 4], &[TypeSet::ALL]);
            let bid = |bidder| Bid::none(bidder, offer.topology()).on(&offer, &chunks, false);
            let bids: Vec<Bid<'_>> = bidders.iter().map(bid).collect();
            let nothing = Solution::nothing(&bids);
            let dual = dual::minimise(&offer, &chunks, &bids, None);
            let mut few = Few::new(&offer, &chunks, &bids, &dual, &nothing);
            let start = Packed::of(&few.menus, offer.topology(), &bids, &nothing);
            for without in [None, Some(seed as usize % bids.len())] {
                let known = start.log_v(&few.menus, without);
                let exact = few.search(without, known, 0.01, 1_000_000).objective;
                let (task, ..) = few.task(without, known, 0.0, 0);
                assert!((improve(&task, start.clone()).1 - known).abs() < 1e-12);
                let (task, ..) = few.task(without, known, 0.0, 100_000);
                let (packed, log_v, left) = improve(&task, start.clone());
                assert!(left > 0 && log_v <= exact + 1e-9, "seed {seed}: {log_v} above {exact}");
                assert!(without.is_none_or(|bidder| packed.choices[bidder] == 0));
                assert_packs(&few.menus, &packed);
                best += u32::from(log_v > exact - 1e-9);
                whole += 1;
            }
        }
        assert!(best > whole * 8 / 10, "{best} of {whole}");
    }
}
