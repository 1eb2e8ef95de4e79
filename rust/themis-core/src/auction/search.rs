//! Selections in order of what they give up, those that can't be packed cut off.
//!
//! At given prices a selection is worth D less the regrets of its choices and the price of what it
//! leaves unused. For the GPUs, the least that any completion gives up is known beforehand from a
//! knapsack over the bidders still to come, so that no branch is followed that can't beat the best
//! selection known. Depth first, in rounds of a growing allowance, until one covers the gap.
//!
//! Cost: the steps of the task at most, counted, never timed. Guarantee: the best selection that packs,
//! when the steps suffice.

use std::cmp::Reverse;

use super::menus::{Choice, Menus, Way, Ways, regret};
use super::packed::Packed;
use super::packing::{Packing, Packings};

/// What a round allows for beside the one before.
const WIDEN: f64 = 4.0;
/// Gains below this are rounding.
pub(super) const LEAST_GAIN: f64 = 1e-9;

/// A pattern of each bidder, or nothing, and the number of its packing.
pub(super) type Found = (Vec<Option<usize>>, u32);

/// What a search goes by.
pub(super) struct Task<'a> {
    pub(super) menus: &'a Menus,
    /// The ways of every bidder at the prices, those that give up least first.
    pub(super) ways: &'a [Ways],
    /// The price of a GPU.
    pub(super) price: f64,
    /// D at the prices.
    pub(super) value: f64,
    /// A bidder to be left out.
    pub(super) without: Option<usize>,
    /// In a search nearby, a bidder that keeps what it has.
    pub(super) fixed: Option<usize>,
    /// The sum of log V that must be beaten.
    pub(super) known: f64,
    /// The one at which a search nearby ends.
    pub(super) enough: f64,
    /// What the first round allows to be given up.
    pub(super) first: f64,
    /// GPUs on offer.
    pub(super) gpus: u32,
    /// Steps at most.
    pub(super) steps: u32,
}

/// What a search came to.
pub(super) struct Answer {
    /// The best sum of log V.
    pub(super) objective: f64,
    /// Its selection, if it is better than what was known.
    pub(super) found: Option<Found>,
    /// Steps that were left; if any, there is none better.
    pub(super) left: u32,
}

/// The best selection: rounds allow for [`WIDEN`] times as much each, until they cover the gap.
pub(super) fn search(task: &Task<'_>, packings: &mut Packings) -> Answer {
    let mut answer = Answer { objective: task.known, found: None, left: task.steps };
    let mut allowance = task.first;
    loop {
        let gap = task.value - answer.objective - LEAST_GAIN;
        if gap <= 0.0 || answer.left == 0 {
            return answer;
        }
        allowance = allowance.min(gap);
        let mut round = Search::new(task, packings, &answer, allowance);
        round.run();
        let (left, best, found) = (round.left, round.best, round.found);
        answer = Answer { objective: best, found: found.or(answer.found), left };
        if allowance >= task.value - best - LEAST_GAIN {
            return answer;
        }
        allowance *= WIDEN;
    }
}

/// The best that some bidders can choose beside what all others have, in whichever rooms.
pub(super) fn search_beside(
    task: &Task<'_>,
    packings: &mut Packings,
    now: &Packed,
    set: &[usize],
) -> Answer {
    let mut answer = Answer { objective: task.known, found: None, left: task.steps };
    let gap = task.value - task.known - LEAST_GAIN;
    let (mut given_up, mut log_v, mut gpus, mut put) = (0.0, 0.0, task.gpus, Packing::new());
    for bidder in 0..now.choices.len() {
        if Some(bidder) == task.without || set.contains(&bidder) {
            continue;
        }
        let choice = now.choice(task.menus, bidder);
        given_up += regret(&task.ways[bidder], now.choices[bidder]).unwrap_or(gap);
        log_v += choice.log_v;
        gpus -= choice.gpus;
        put.extend_from_slice(&now.places[bidder]);
    }
    let number = packings.of(&task.menus.rooms, put);
    let most = (gpus, gap - given_up);
    let mut search = Search::among(task, packings, set.iter().copied(), most, &answer);
    search.allowance = gap;
    if given_up + search.completion[0][gpus as usize] <= gap {
        search.visit(0, gpus, given_up, log_v, number);
    }
    (answer.objective, answer.found, answer.left) = (search.best, search.found, search.left);
    answer
}

/// A search under way.
pub(super) struct Search<'a> {
    pub(super) task: &'a Task<'a>,
    packings: &'a mut Packings,
    /// Bidders, those without a choice first, then those with the largest asks.
    pub(super) order: Vec<(usize, &'a [Way])>,
    /// What is given up at least by the bidders from each on with so many GPUs left.
    pub(super) completion: Vec<Vec<f64>>,
    allowance: f64,
    pub(super) best: f64,
    pub(super) found: Option<Found>,
    chosen: Vec<Option<usize>>,
    pub(super) left: u32,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        task: &'a Task<'a>,
        packings: &'a mut Packings,
        before: &Answer,
        allowance: f64,
    ) -> Self {
        let others = (0..task.ways.len()).filter(|bidder| Some(*bidder) != task.without);
        Self::among(task, packings, others, (task.gpus, allowance), before)
    }

    /// Of some bidders, who have so many GPUs and give up so much at most.
    fn among(
        task: &'a Task<'a>,
        packings: &'a mut Packings,
        bidders: impl Iterator<Item = usize>,
        (gpus, allowance): (u32, f64),
        before: &Answer,
    ) -> Self {
        let Task { menus, ways, price, .. } = *task;
        let near = |bidder: usize| {
            let ways = &ways[bidder].1;
            (bidder, &ways[..ways.partition_point(|way| way.regret <= allowance)])
        };
        let mut order: Vec<(usize, &[Way])> = bidders.map(near).collect();
        order.sort_by_cached_key(|(bidder, ways)| {
            let choices = ways.iter().map(|way| &menus.of[*bidder][way.choice as usize]);
            let largest = choices.map(|choice| choice.largest).max();
            (ways.len() > 1, Reverse(largest), *bidder)
        });
        let completion = completions(&order, price, gpus);
        Self {
            task,
            packings,
            order,
            completion,
            allowance,
            best: before.objective,
            found: None,
            chosen: vec![None; menus.of.len()],
            left: before.left,
        }
    }

    fn run(&mut self) {
        let gpus = self.task.gpus;
        if self.completion[0][gpus as usize] <= self.allowance {
            self.visit(0, gpus, 0.0, 0.0, 0);
        }
    }

    /// What a better selection may give up at most.
    pub(super) fn gap(&self) -> f64 {
        self.task.value - self.best - LEAST_GAIN
    }

    fn visit(&mut self, at: usize, gpus: u32, regret: f64, log_v: f64, packing: u32) {
        self.left = self.left.saturating_sub(1);
        if at == self.order.len() {
            if log_v > self.best + LEAST_GAIN {
                self.best = log_v;
                self.found = Some((self.chosen.clone(), packing));
            }
            return;
        }
        let bidder = self.order[at].0;
        for way in self.order[at].1 {
            let Way { regret: more, gpus: asked, choice } = *way;
            let limit = self.allowance.min(self.gap());
            let regret = regret + more;
            if regret > limit || self.left == 0 {
                break;
            }
            if asked > gpus || regret + self.completion[at + 1][(gpus - asked) as usize] > limit {
                continue;
            }
            let choice = &self.task.menus.of[bidder][choice as usize];
            if let Some(packing) = self.pack(packing, choice) {
                self.chosen[bidder] = choice.pattern;
                self.visit(at + 1, gpus - asked, regret, log_v + choice.log_v, packing);
            }
        }
        self.chosen[bidder] = None;
    }

    /// The packing with the asks of one more choice.
    pub(super) fn pack(&mut self, packing: u32, choice: &Choice) -> Option<u32> {
        let before = self.packings.steps;
        let with = self.packings.with_all(&self.task.menus.rooms, packing, &choice.asks);
        self.left = self.left.saturating_sub(self.packings.steps - before);
        with
    }
}

/// For every bidder, and after the last one, the least that it and those to come give up with so
/// many GPUs left; GPUs that nobody takes are given up at their price.
pub(super) fn completions(order: &[(usize, &[Way])], price: f64, gpus: u32) -> Vec<Vec<f64>> {
    let idle: Vec<f64> = (0..=gpus).map(|left| f64::from(left) * price).collect();
    let mut all = vec![idle];
    for (_, choices) in order.iter().rev() {
        let after = &all[all.len() - 1];
        let mut now = vec![f64::INFINITY; after.len()];
        for Way { regret, gpus, .. } in choices.iter().filter(|way| way.gpus <= gpus) {
            for (least, rest) in now[*gpus as usize..].iter_mut().zip(after) {
                let sum = regret + rest;
                *least = if sum < *least { sum } else { *least };
            }
        }
        all.push(now);
    }
    all.reverse();
    all
}
