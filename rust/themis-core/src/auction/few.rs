//! Few bidders: the best allocation, and the best without each winner, found by search.
//!
//! Prices of every room make the dual sharp ([`super::menus`]). Selections are tried in order of what
//! they give up ([`super::search`]), as far as they pack ([`super::packing`]); where that does not come
//! to its end soon, sweeps follow ([`super::sweep`]). Searches near what is known ([`super::nearby`])
//! come first of all and after each sweep, and larger changes last ([`super::large`]). Payments go on
//! from there ([`super::without`]).
//!
//! Cost: [`STEPS`] at most, [`NEARBY_STEPS`] first and after each sweep, and those of larger changes,
//! counted, never timed. Guarantee: not worse than what is known; where the steps suffice, the best
//! selection of the patterns bid.

use std::cmp::Reverse;

use super::Bid;
use super::bid::Ask;
use super::dual::Dual;
use super::greedy::Greedy;
use super::menus::{Menus, Ways};
use super::nearby::{self, First};
use super::packed::Packed;
use super::packing::{Packing, Packings};
use super::search::{Answer, LEAST_GAIN, Task, search};
use super::solution::Solution;
use super::sweep::sweep;
use crate::app::{Part, Placed};
use crate::cluster::{Chunks, FreeSet, Locality, fit, fit_in};

/// Steps of search and sweeps for the allocation, and at most so many a bidder. One takes some 0.1 us;
/// with more than [`FULL_EFFORT`] bidders steps take longer, and there are fewer.
const STEPS: u32 = 40_000;
const STEPS_A_BIDDER: u32 = 2_000;
pub(super) const FULL_EFFORT: u32 = 24;
/// Sweeps that share them.
const SWEEPS: u32 = 2;
/// Where no selection is worth so much more than the allocation, there is no second sweep, and there
/// are no detours: they seldom find anything then. Where it is so little more, the search ends.
pub(super) const CLOSE: f64 = 0.06;
pub(super) const CLOSEST: f64 = 0.005;
/// Steps of a search near what is known, of which so many take as long as one of another.
const NEARBY_STEPS: u32 = 20_000;
pub(super) const A_STEP: u32 = 2;
/// The first of so many parts of the steps are searched before sweeps: easy auctions need none.
const FIRST_PARTS: u32 = 8;
/// Choices times GPUs beyond which an auction is too large: a search begins with a table of as many.
const MOST_CELLS: usize = 1 << 22;
/// The first round of a search for all allows for this share of the gap.
const FIRST_SHARE: f64 = 1.0 / 64.0;

/// The offer, what it counts, and the bids.
pub(super) type Auction<'a> = (&'a FreeSet, &'a Chunks, &'a [Bid<'a>]);

/// What is known of an auction of few bidders.
#[derive(Debug)]
pub(super) struct Few {
    pub(super) menus: Menus,
    pub(super) packings: Packings,
    /// Prices of rows and rooms, and D at them.
    pub(super) prices: Vec<f64>,
    pub(super) value: f64,
    /// At these prices: the best surplus of every bidder, and its ways.
    pub(super) ways: Vec<Ways>,
    /// No selection is worth more.
    pub(super) bound: f64,
    /// GPUs on offer.
    pub(super) gpus: u32,
    /// D above the best selection known.
    pub(super) gap: f64,
    proven: bool,
    /// Bidders that sweeps serve first.
    pub(super) urgent: Vec<usize>,
}

impl Few {
    /// Of an auction in which an allocation is known; nothing was searched for.
    pub(super) fn new(
        offer: &FreeSet,
        chunks: &Chunks,
        bids: &[Bid<'_>],
        dual: &Dual,
        known: &Solution,
    ) -> Self {
        let most = worth_giving_up(bids, dual, known);
        let menus = Menus::of(offer, chunks, bids, (&dual.prices, most));
        let known = known.objective();
        let (prices, value) = menus.priced(menus.prices_of_rows(dual.prices.rows()), known);
        let (packings, gpus) = (Packings::new(&menus.rooms), offer.total());
        let (ways, gap) = (menus.regrets(&prices), value - known);
        let (proven, urgent) = (false, Vec::new());
        Self { menus, packings, prices, value, ways, bound: value, gpus, gap, proven, urgent }
    }

    /// Whether no selection is better than the allocation, as far as packings were found.
    pub(super) fn proven(&self) -> bool {
        self.proven
    }

    /// The better of what is known and what is found, by 1 / `thrift` of the steps.
    pub(super) fn improve(
        &mut self,
        offer: &FreeSet,
        chunks: &Chunks,
        bids: &[Bid<'_>],
        known: Solution,
        thrift: u32,
    ) -> Solution {
        let most = STEPS_A_BIDDER * bids.len() as u32;
        let steps = self.effort(STEPS, FULL_EFFORT).min(most) / thrift;
        let easy = steps / FIRST_PARTS;
        let auction = (offer, chunks, bids);
        let nearby = NEARBY_STEPS / thrift;
        let (mut best, mut settled) = self.improve_nearby(auction, known, First::Gains, nearby);
        let mut found = None;
        for round in 0..=SWEEPS {
            if round > 1 && self.is_within(CLOSE, best.objective()) {
                break;
            }
            let known = self.value - self.gap;
            let (answer, bound) = if round == 0 {
                self.search_all(known, easy)
            } else {
                let (task, packings, urgent) = self.task(None, known, 0.0, (steps - easy) / SWEEPS);
                sweep(&task, packings, urgent)
            };
            (self.gap, self.bound) = (self.value - answer.objective, self.bound.min(bound));
            self.proven = self.bound <= answer.objective;
            found = answer.found.or(found);
            if round == 0 && !self.proven {
                continue;
            }
            if let Some((chosen, packing)) = found.take() {
                let packing = self.packings.get(packing).clone();
                let Some(placed) = self.place(auction, &chosen, packing) else {
                    self.proven = false;
                    return best;
                };
                best = best.or_better(Greedy::resume(offer, bids, placed).fill());
            }
            if self.proven {
                return best;
            }
            if best.objective() > settled {
                let first = if round == 1 { First::Sets } else { First::Gains };
                (best, settled) = self.improve_nearby(auction, best, first, nearby);
            }
        }
        self.improve_by_large_changes(auction, best, thrift)
    }

    /// The better of an allocation and what a search from it on finds, and the sum of log V from which
    /// on it finds nothing more.
    fn improve_nearby(
        &mut self,
        auction: Auction<'_>,
        known: Solution,
        first: First,
        steps: u32,
    ) -> (Solution, f64) {
        let (offer, _, bids) = auction;
        let start = Packed::of(&self.menus, offer.topology(), bids, &known);
        let (task, ..) = self.task(None, known.objective(), 0.0, steps);
        let (packed, _, left) = nearby::improve(&task, start, first);
        let best = self.or_packed(auction, known, &packed);
        let settled = if left > 0 { best.objective() } else { f64::NEG_INFINITY };
        (best, settled)
    }

    /// The better of an allocation and a selection that packs.
    pub(super) fn or_packed(
        &mut self,
        (offer, chunks, bids): Auction<'_>,
        known: Solution,
        packed: &Packed,
    ) -> Solution {
        let log_v = packed.log_v(&self.menus, None);
        if log_v <= known.objective() + LEAST_GAIN {
            return known;
        }
        let (chosen, packing) = packed.patterns(&self.menus);
        let Some(placed) = self.place((offer, chunks, bids), &chosen, packing) else {
            return known;
        };
        let better = known.or_better(Greedy::resume(offer, bids, placed).fill());
        // What was placed may be worth less than was thought, where an offer has more limits.
        let log_v = log_v.min(better.objective());
        self.gap = self.value - log_v;
        self.proven = self.bound <= log_v;
        better
    }

    /// Whether an auction is small enough: 16 bits hold the numbers of its rooms and how many asks
    /// are alike, and its tables are soon made.
    pub(super) fn is_small(offer: &FreeSet, bids: &[Bid<'_>]) -> bool {
        let topology = offer.topology();
        let rooms = 1 + topology.racks() + topology.machines() + topology.slots();
        let gpus = offer.total() as usize;
        let choices: usize = bids.iter().map(|bid| bid.patterns.len()).sum();
        u16::try_from(rooms.max(gpus)).is_ok() && choices * gpus <= MOST_CELLS
    }

    /// Whether the rooms know all limits of an offer: GPU types, host resources and what tenants may
    /// take are checked only when a selection is placed.
    pub(super) fn knows_all(offer: &FreeSet, bids: &[Bid<'_>]) -> bool {
        let has_room = |bid: &Bid<'_>| bid.bidder.room(offer) >= offer.total();
        offer.topology().types() == 1 && offer.host().is_empty() && bids.iter().all(has_room)
    }

    /// Whether no selection is worth so much more than one of this sum of log V.
    pub(super) fn is_within(&self, gap: f64, log_v: f64) -> bool {
        self.bound - log_v <= gap
    }

    /// Fewer steps with more bidders than so many.
    pub(super) fn effort(&self, steps: u32, full: u32) -> u32 {
        steps * full / full.max(self.menus.of.len() as u32)
    }

    /// A search of all, and what no selection is worth more than.
    fn search_all(&mut self, known: f64, steps: u32) -> (Answer, f64) {
        let answer = self.search(None, known, (self.value - known) * FIRST_SHARE, steps);
        let bound = if answer.left > 0 { answer.objective } else { self.value };
        (answer, bound)
    }

    /// A search at the prices found, of all or without a bidder, for more than is known.
    pub(super) fn search(
        &mut self,
        without: Option<usize>,
        known: f64,
        first: f64,
        steps: u32,
    ) -> Answer {
        let (task, packings, _) = self.task(without, known, first, steps);
        search(&task, packings)
    }

    /// What it goes by.
    pub(super) fn task(
        &mut self,
        without: Option<usize>,
        known: f64,
        first: f64,
        steps: u32,
    ) -> (Task<'_>, &mut Packings, &mut Vec<usize>) {
        let Self { menus, ways, prices, gpus, packings, urgent, .. } = self;
        let (price, gpus) = (prices[0], *gpus);
        let value = self.value - without.map_or(0.0, |bidder| ways[bidder].0);
        let (fixed, enough) = (None, f64::INFINITY);
        let task =
            Task { menus, ways, price, value, without, fixed, known, enough, first, gpus, steps };
        (task, packings, urgent)
    }

    /// The GPUs of a selection in the rooms of its packing, inner rooms first; `None` where the offer
    /// has more limits than the rooms know.
    fn place(
        &mut self,
        (offer, chunks, bids): Auction<'_>,
        chosen: &[Option<usize>],
        mut put: Packing,
    ) -> Option<Solution> {
        let mut asks: Vec<(usize, Ask, Option<u16>)> = Vec::new();
        for (bidder, bid) in bids.iter().enumerate() {
            let Some(pattern) = chosen[bidder] else { continue };
            bid.for_each_ask(offer.topology(), pattern, |ask| {
                let kind = self.menus.rooms.kind(offer, chunks, &ask);
                let at = put.iter().position(|(other, _)| *other == kind);
                asks.push((bidder, ask, at.map(|at| put.swap_remove(at).1)));
            });
        }
        asks.sort_by_key(|(bidder, ask, room)| {
            let level = if room.is_some() { ask.within.level } else { Locality::Cluster };
            (level, ask.near.is_none(), Reverse(ask.gpus), *bidder)
        });
        let mut free = offer.clone();
        let mut parts: Vec<Vec<Part>> = vec![Vec::new(); bids.len()];
        for (bidder, Ask { job, gpus, within, .. }, room) in asks {
            let who = bids[bidder].bidder;
            if gpus > who.room(&free) {
                return None;
            }
            let open = free.open_to(who.needs(job));
            let bundle = match room.map(|room| self.menus.rooms.all[usize::from(room)].part) {
                Some(part) => fit_in(&open, gpus, within, part, who.near(job)),
                None => fit(&open, gpus, within, who.near(job)),
            }?;
            let part = Part { job, bundle };
            who.take(&mut free, &part);
            parts[bidder].push(part);
        }
        let mut solution = Solution::nothing(bids);
        for (bidder, parts) in parts.into_iter().enumerate().filter(|(_, won)| !won.is_empty()) {
            let log_v = bids[bidder].bidder.log_v_with(offer.topology(), &parts);
            solution.log_v[bidder] = log_v;
            solution.wins[bidder] = Some(Placed { parts, log_v });
        }
        Some(solution)
    }
}

/// What a choice may give up, at the dual's prices, and still be part of a better allocation, or of a
/// better one without some winner.
///
/// A selection is worth D at most, less what its choices give up: one that is better than what is
/// known gives up no more than the gap. Without a bidder, D falls by its surplus and what is known
/// by its value: the gap widens by the difference, its price.
fn worth_giving_up(bids: &[Bid<'_>], dual: &Dual, known: &Solution) -> f64 {
    let gap = (dual.value - known.objective()).max(0.0) + LEAST_GAIN;
    let price = |(bidder, bid): (usize, &Bid<'_>)| {
        let choices = || bid.choices(bidder, &dual.prices);
        let surplus = choices().map(|choice| choice.surplus).fold(f64::NEG_INFINITY, f64::max);
        // What it may win, and what that is worth if it lies closer together than bid.
        let near = choices().filter(|choice| surplus - choice.surplus <= gap);
        let gpus = near.map(|choice| choice.gpus).max().unwrap_or(0);
        let within = bid.patterns.iter().filter(|pattern| pattern.gpus() <= gpus);
        within.map(|pattern| pattern.log_v).fold(known.log_v[bidder], f64::max) - surplus
    };
    gap + bids.iter().enumerate().map(price).fold(0.0, f64::max)
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use super::super::{Bidder, dual};
    use super::*;
    use crate::app::{AppState, Job, Profile, Stopping};
    use crate::cluster::{MachineSpec, Topology, TypeSet};

    /// Five apps with gangs of one to four on two racks of two machines; by Lehmer's numbers.
    pub(in super::super) fn draw(seed: u64) -> (FreeSet, Vec<Bidder>) {
        let mut state = seed * 7_919 + 1;
        let mut below = |limit: u64| {
            state = state * 48_271 % 0x7fff_ffff;
            (state % limit) as u32
        };
        let spec = |rack| MachineSpec { rack, gpus: 4, slot_gpus: 2 };
        let topology = Topology::new(&[0, 0, 1, 1].map(spec)).expect("valid");
        let bidders = (0..5).map(|_| {
            let far = 1.5 + f64::from(below(20)) / 10.0;
            let profile = Profile::new([1.0, 1.1, far, far + 1.0]).expect("valid");
            let (gang, work) = (1 + below(4), f64::from(500 + below(5_000)));
            let job = Job::waiting(gang, gang * (1 + below(3)), work, profile);
            let jobs = vec![job; 1 + below(2) as usize];
            let app = AppState::new(f64::from(below(900)), 500.0, Stopping::All, jobs);
            Bidder::App(app.with_rho_empty(Some(200.0)))
        });
        let bidders = bidders.collect();
        (FreeSet::full(Arc::new(topology)), bidders)
    }

    /// Sixty auctions of which nothing is known yet, with who wins nothing in them.
    pub(in super::super) fn for_each_auction(mut test: impl FnMut(u64, &mut Few, &Packed)) {
        for seed in 0..60 {
            let (offer, bidders) = draw(seed);
            let chunks = Chunks::of(&offer, &[1, 2, 3, 4], &[TypeSet::ALL]);
            let bid = |bidder| Bid::none(bidder, offer.topology()).on(&offer, &chunks, false);
            let bids: Vec<Bid<'_>> = bidders.iter().map(bid).collect();
            let nothing = Solution::nothing(&bids);
            let dual = dual::minimise(&offer, &chunks, &bids, None);
            let mut few = Few::new(&offer, &chunks, &bids, &dual, &nothing);
            let start = Packed::of(&few.menus, offer.topology(), &bids, &nothing);
            test(seed, &mut few, &start);
        }
    }

    /// The best sum of log V from nothing, and the search after it.
    pub(in super::super) fn solved(
        offer: &FreeSet,
        chunks: &Chunks,
        bids: &[Bid<'_>],
    ) -> (Solution, Few) {
        let known = Solution::nothing(bids);
        let dual = dual::minimise(offer, chunks, bids, None);
        let mut few = Few::new(offer, chunks, bids, &dual, &known);
        let best = few.improve(offer, chunks, bids, known, 1);
        (best, few)
    }

    #[test]
    fn rooms_without_numbers_and_large_tables_are_not_searched() {
        let (small, bidders) = draw(1);
        let spec = |gpus| MachineSpec { rack: 0, gpus, slot_gpus: gpus };
        let offer =
            |specs: &[MachineSpec]| FreeSet::full(Arc::new(Topology::new(specs).expect("valid")));
        let is_small = |offer: &FreeSet, copies: usize| {
            let chunks = Chunks::of(&small, &[], &[TypeSet::ALL]);
            let bid = |bidder| Bid::none(bidder, small.topology()).on(&small, &chunks, false);
            let bids = bidders.iter().cycle().take(copies * bidders.len()).map(bid);
            Few::is_small(offer, &bids.collect::<Vec<_>>())
        };
        assert!(is_small(&small, 1));
        // The whole, a rack, and a machine and a slot for each.
        assert!(is_small(&offer(&vec![spec(1); 32_766]), 1));
        assert!(!is_small(&offer(&vec![spec(1); 32_767]), 1));
        assert!(!is_small(&offer(&[spec(4_096); 16]), 1));
        assert!(is_small(&offer(&[spec(4_096); 15]), 1));
        assert!(!is_small(&offer(&[spec(4_096); 15]), 12));
    }

    #[test]
    fn going_on_without_a_winner_is_searching_anew_without_it() {
        for seed in 0..60 {
            let (offer, bidders) = draw(seed);
            let chunks = Chunks::of(&offer, &[1, 2, 3, 4], &[TypeSet::ALL]);
            let bids: Vec<Bid<'_>> = bidders
                .iter()
                .map(|bidder| Bid::none(bidder, offer.topology()).on(&offer, &chunks, false))
                .collect();
            let (best, mut few) = solved(&offer, &chunks, &bids);
            assert!(few.proven(), "seed {seed}");
            // Jobs may lie closer together than their patterns say, never further apart.
            assert!(best.objective() >= few.value - few.gap - 1e-9, "seed {seed}");
            let with: Vec<(usize, f64)> =
                (0..bids.len()).map(|at| (at, best.objective_of_others(at))).collect();
            let payments = few.without_each((&offer, &bids, &best), &with);
            for ((without, _), found) in with.iter().zip(payments) {
                let mut others = bids.clone();
                others.remove(*without);
                let anew = solved(&offer, &chunks, &others).1;
                let objective = anew.value - anew.gap;
                assert!((found - objective).abs() < 1e-9, "seed {seed}: without {without}");
            }
        }
    }
}
