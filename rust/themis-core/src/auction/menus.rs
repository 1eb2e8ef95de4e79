//! What every bidder may choose, room by room priced: a sharper dual for few bidders.
//!
//! Beside the rows of [`super::dual`] every room has a toll that all pay who lie in it; an ask goes
//! to the room that costs least. Cost: O(choices + rooms of all kinds) a step.

use std::cmp::Reverse;

use super::Bid;
use super::asks::{Asked, Counts};
use super::descent::{Pace, descend};
use super::prices::Prices;
use super::rooms::{Rooms, WHOLE};
use crate::app::Pattern;
use crate::cluster::{Chunks, FreeSet};

const PACE: Pace = Pace { steps: 100, patience: 5, keep: 0.5, least: 5e-4 };

/// A pattern of a bidder, or nothing.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) log_v: f64,
    pub(super) gpus: u32,
    pub(super) pattern: Option<usize>,
    /// The most GPUs that it asks for in one room; 0 if all may lie anywhere.
    pub(super) largest: u32,
    /// (kind, how often)
    pub(super) asks: Counts,
}

/// A choice at given prices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// What it gives up against the bidder's best choice.
    pub(super) regret: f64,
    pub(super) gpus: u32,
    /// Its place on the bidder's menu.
    pub(super) choice: u32,
}

/// What the best choice of a bidder is worth above its price, and all of them, those that give up
/// least first.
pub(super) type Ways = (f64, Vec<Way>);

/// What a choice gives up, if it is among the ways of its bidder.
pub(super) fn regret(ways: &Ways, choice: u32) -> Option<f64> {
    ways.1.iter().find(|way| way.choice == choice).map(|way| way.regret)
}

/// The choices of every bidder.
#[derive(Debug)]
pub(super) struct Menus {
    pub(super) rooms: Rooms,
    pub(super) of: Vec<Vec<Choice>>,
    /// How much there is of every row, then of every room.
    there: Vec<f64>,
    rows: usize,
    /// Kinds of asks, those of the most GPUs first.
    largest_first: Vec<usize>,
}

impl Menus {
    /// What bidders may choose and give up no more than so much at these prices; patterns that could
    /// not even be had alone are left out.
    pub(super) fn of(
        offer: &FreeSet,
        chunks: &Chunks,
        bids: &[Bid<'_>],
        (prices, most): (&Prices, f64),
    ) -> Self {
        let mut rooms = Rooms::of(offer);
        let menu = |(bidder, bid): (usize, &Bid<'_>)| {
            let surplus = |pattern: &Pattern| pattern.log_v - prices.cost(bidder, pattern);
            let best = bid.patterns.iter().map(surplus).fold(bid.nothing, f64::max);
            let (log_v, asks) = (bid.nothing, Counts::new());
            let mut asked = Asked::by(bid, offer.topology());
            let mut menu = vec![Choice { log_v, gpus: 0, pattern: None, largest: 0, asks }];
            for (at, pattern) in bid.patterns.iter().enumerate() {
                if best - surplus(pattern) > most {
                    continue;
                }
                let asks = asked.kinds(at, |ask| rooms.kind(offer, chunks, ask));
                let fits = |(kind, count): &(u16, u16)| {
                    u32::from(*count) <= rooms.kinds[usize::from(*kind)].most
                };
                if asks.iter().all(fits) {
                    let (log_v, gpus, pattern) = (pattern.log_v, pattern.gpus(), Some(at));
                    let largest = rooms.largest(asks.iter().map(|(kind, _)| *kind));
                    menu.push(Choice { log_v, gpus, pattern, largest, asks });
                }
            }
            menu
        };
        let of = bids.iter().enumerate().map(menu).collect();
        let rows = chunks.len();
        let mut there = chunks.capacity()[..rows].to_vec();
        there.extend(rooms.all.iter().map(|room| f64::from(room.free)));
        let mut largest_first: Vec<usize> = (0..rooms.kinds.len()).collect();
        largest_first.sort_by_key(|kind| Reverse(rooms.kinds[*kind].gpus));
        Self { rooms, of, there, rows, largest_first }
    }

    /// The sum of log V of these choices, but for a bidder that is left out.
    pub(super) fn log_v(&self, choices: &[u32], without: Option<usize>) -> f64 {
        let others = (0..choices.len()).filter(|bidder| Some(*bidder) != without);
        others.map(|bidder| self.of[bidder][choices[bidder] as usize].log_v).sum()
    }

    /// Prices of the rows alone.
    pub(super) fn prices_of_rows(&self, rows: &[f64]) -> Vec<f64> {
        let mut prices = rows[..self.rows].to_vec();
        prices.resize(self.there.len(), 0.0);
        prices
    }

    /// What an ask of each kind costs, and the toll of every room with those around it.
    fn costs(&self, prices: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (rows, tolls) = prices.split_at(self.rows);
        let mut paths = tolls.to_vec();
        for at in 1..paths.len() {
            paths[at] += paths[usize::from(self.rooms.outer(at as u16))];
        }
        let cost = |kind: &super::rooms::Kind| {
            let tolls = kind.rooms.iter().map(|room| paths[usize::from(*room)]);
            f64::from(kind.gpus) * tolls.fold(f64::INFINITY, f64::min) + kind.uses.cost(rows)
        };
        (self.rooms.kinds.iter().map(cost).collect(), paths)
    }

    /// D over the choices of some bidders, and by how much too much is asked for of every row and room.
    fn evaluate(&self, menus: &[Vec<Choice>], prices: &[f64], excess: &mut [f64]) -> f64 {
        let (costs, paths) = self.costs(prices);
        let mut value = self.of_everything(prices);
        let mut asked = vec![0_u32; costs.len()];
        for menu in menus {
            let (mut most, mut best) = (f64::NEG_INFINITY, &menu[0]);
            for choice in menu {
                let surplus = choice.log_v - choice.cost(&costs);
                if surplus > most {
                    (most, best) = (surplus, choice);
                }
            }
            value += most;
            for (kind, count) in &best.asks {
                asked[usize::from(*kind)] += u32::from(*count);
            }
        }
        self.balance(&asked, &paths, excess);
        value
    }

    /// By how much too much is asked for of every row and room, of so many asks of each kind. Those of the
    /// most GPUs choose first; rooms that cost as little share a kind by what is left of them.
    fn balance(&self, asked: &[u32], paths: &[f64], excess: &mut [f64]) {
        for (excess, there) in excess.iter_mut().zip(&self.there) {
            *excess = -there;
        }
        let (rows, rooms) = excess.split_at_mut(self.rows);
        let mut left: Vec<f64> = Vec::new();
        for at in self.largest_first.iter().filter(|at| asked[**at] > 0) {
            let (kind, asked) = (&self.rooms.kinds[*at], asked[*at]);
            for (row, used) in rows.iter_mut().zip(kind.uses.rows()) {
                *row += f64::from(asked * used);
            }
            let path = |room: &u16| paths[usize::from(*room)];
            let least = kind.rooms.iter().map(path).fold(f64::INFINITY, f64::min);
            let cheap = || kind.rooms.iter().filter(|room| path(room) <= least + 1e-12);
            let left_of = |room: &u16| {
                let parts = self.rooms.around(*room).into_iter().filter(|at| *at != WHOLE.into());
                parts.map(|at| -rooms[at]).fold(f64::MAX, f64::min).max(0.0)
            };
            left.clear();
            left.extend(cheap().map(left_of));
            if left.iter().all(|left| *left <= 0.0) {
                left.fill(1.0);
            }
            let each = f64::from(asked * kind.gpus) / left.iter().sum::<f64>();
            for (room, left) in cheap().zip(&left) {
                for room in self.rooms.around(*room) {
                    rooms[room] += each * left;
                }
            }
        }
        rooms[usize::from(WHOLE)] = 0.0;
    }

    /// Prices of a small D, from these on, by the choices that a better selection than the one known
    /// could have; the same where no room is short at them, since the rows alone had their turn in
    /// [`super::dual`].
    pub(super) fn priced(&self, start: Vec<f64>, known: f64) -> (Vec<f64>, f64) {
        let mut excess = vec![0.0; start.len()];
        let value = self.evaluate(&self.of, &start, &mut excess);
        if excess[self.rows..].iter().all(|excess| *excess <= 0.0) {
            return (start, value);
        }
        let gap = (value - known).max(0.0);
        let near = self.near(&start, gap);
        let (prices, _) = descend((start.clone(), value), gap, PACE, |prices, excess| {
            self.evaluate(&near, prices, excess)
        });
        let of_all = self.evaluate(&self.of, &prices, &mut excess);
        if of_all < value { (prices, of_all) } else { (start, value) }
    }

    /// The choices of every bidder that give up so much at most at these prices.
    fn near(&self, prices: &[f64], gap: f64) -> Vec<Vec<Choice>> {
        let (costs, _) = self.costs(prices);
        let surplus = |choice: &Choice| choice.log_v - choice.cost(&costs);
        let near = |menu: &Vec<Choice>| {
            let most = menu.iter().map(surplus).fold(f64::NEG_INFINITY, f64::max);
            menu.iter().filter(|choice| most - surplus(choice) <= gap).cloned().collect()
        };
        self.of.iter().map(near).collect()
    }

    /// Prices of a smaller D without one bidder, from those of all on, by so many steps, and the ways
    /// at them: choices of the others that give up more than the gap to what is known are left out.
    pub(super) fn priced_without(
        &self,
        bidder: usize,
        (prices, value): (&[f64], f64),
        ways: &[Ways],
        known: f64,
        steps: u32,
    ) -> (Vec<f64>, f64, Vec<Ways>) {
        let value = value - ways[bidder].0;
        let gap = (value - known).max(0.0);
        let near = |at: usize| {
            let within = if at == bidder { f64::NEG_INFINITY } else { gap };
            let near = ways[at].1.iter().take_while(move |way| way.regret <= within);
            near.map(move |way| (way.choice, &self.of[at][way.choice as usize]))
        };
        let others = (0..self.of.len()).filter(|at| *at != bidder);
        let menus: Vec<Vec<Choice>> =
            others.clone().map(|at| near(at).map(|(_, choice)| choice.clone()).collect()).collect();
        let pace = Pace { steps, ..PACE };
        let (prices, _) = descend((prices.to_vec(), value), gap, pace, |prices, excess| {
            self.evaluate(&menus, prices, excess)
        });
        let (costs, _) = self.costs(&prices);
        let ways: Vec<Ways> = (0..self.of.len()).map(|at| ways_of(near(at), &costs)).collect();
        let value = self.of_everything(&prices) + others.map(|at| ways[at].0).sum::<f64>();
        (prices, value, ways)
    }

    /// The price of all that there is.
    fn of_everything(&self, prices: &[f64]) -> f64 {
        self.there.iter().zip(prices).map(|(there, price)| there * price).sum()
    }

    /// The ways of every bidder.
    pub(super) fn regrets(&self, prices: &[f64]) -> Vec<Ways> {
        let (costs, _) = self.costs(prices);
        self.of.iter().map(|menu| ways_of((0..).zip(menu), &costs)).collect()
    }
}

/// What the best of some choices is worth above its price, and what all give up against it, least
/// first. Ties: the order of the menu.
fn ways_of<'a>(choices: impl Iterator<Item = (u32, &'a Choice)>, costs: &[f64]) -> Ways {
    let mut most = f64::NEG_INFINITY;
    let mut ways: Vec<Way> = choices
        .map(|(choice, of)| {
            let surplus = of.log_v - of.cost(costs);
            most = most.max(surplus);
            Way { regret: surplus, gpus: of.gpus, choice }
        })
        .collect();
    for way in &mut ways {
        way.regret = most - way.regret;
    }
    ways.sort_unstable_by(|a, b| a.regret.total_cmp(&b.regret).then(a.choice.cmp(&b.choice)));
    (most, ways)
}

impl Choice {
    fn cost(&self, costs: &[f64]) -> f64 {
        self.asks.iter().map(|(kind, count)| f64::from(*count) * costs[usize::from(*kind)]).sum()
    }
}
