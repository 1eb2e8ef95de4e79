//! What GPUs cost a bidder: a price a row of [`crate::cluster::Chunks`], and tolls in crowded parts of the cluster.
//!
//! A bidder that holds GPUs must win near them to run close together. Where those who hold GPUs in
//! one slot, machine or rack could ask for more than is free there (a [`Contest`]), a GPU of that
//! part has a toll for them. Other bidders can go elsewhere and never pay one.

use std::collections::BTreeMap;

use super::Bid;
use crate::app::Pattern;
use crate::cluster::{FreeSet, Locality, MAX_ROWS};
use crate::ids::SlotId;

/// A price a row, and what each bidder pays a GPU beside.
#[derive(Clone, Debug)]
pub(super) struct Prices {
    /// A price a row of [`crate::cluster::Chunks`], and the number of rows up to the last priced.
    rows: [f64; MAX_ROWS],
    priced: usize,
    /// The toll of every contest.
    tolls: Vec<f64>,
    /// Tolls of each bidder by the locality of a pattern; a finer one pays for all parts around it.
    of_bidder: Vec<[f64; 4]>,
}

impl Prices {
    /// Everything is free of charge.
    pub(super) fn zero(bidders: usize, contests: &[Contest]) -> Self {
        let (tolls, of_bidder) = (vec![0.0; contests.len()], vec![[0.0; 4]; bidders]);
        Self { rows: [0.0; MAX_ROWS], priced: 0, tolls, of_bidder }
    }

    /// A price a row.
    pub(super) fn rows(&self) -> &[f64; MAX_ROWS] {
        &self.rows
    }

    /// The price of a GPU anywhere.
    pub(super) fn gpu(&self) -> f64 {
        self.rows[0]
    }

    /// Sets the prices of all rows.
    pub(super) fn set_rows(&mut self, rows: [f64; MAX_ROWS]) {
        self.priced = rows.iter().rposition(|price| *price > 0.0).map_or(0, |last| last + 1);
        self.rows = rows;
    }

    /// Sets the prices of the first rows; the others have none.
    pub(super) fn set_first_rows(&mut self, first: &[f64]) {
        let mut rows = [0.0; MAX_ROWS];
        rows[..first.len()].copy_from_slice(first);
        self.set_rows(rows);
    }

    /// Sets the price of one row.
    pub(super) fn set_row(&mut self, row: usize, price: f64) {
        let mut rows = self.rows;
        rows[row] = price;
        self.set_rows(rows);
    }

    /// Sets the toll of a contest, for all who take part in it.
    pub(super) fn set_toll(&mut self, at: usize, contest: &Contest, toll: f64) {
        let change = toll - std::mem::replace(&mut self.tolls[at], toll);
        for bidder in &contest.bidders {
            for level in &mut self.of_bidder[*bidder][..=contest.level.index()] {
                *level = (*level + change).max(0.0);
            }
        }
    }

    /// What a bidder pays for a pattern.
    #[inline]
    pub(super) fn cost(&self, bidder: usize, pattern: &Pattern) -> f64 {
        let toll = self.of_bidder[bidder][pattern.reach.level.index()];
        pattern.uses.cost(&self.rows[..self.priced]) + toll * f64::from(pattern.gpus())
    }

    /// The price of all that there is.
    pub(super) fn of_everything(&self, capacity: &[f64; MAX_ROWS], contests: &[Contest]) -> f64 {
        let rows = capacity.iter().zip(&self.rows).map(|(there, price)| there * price);
        let parts = contests.iter().zip(&self.tolls).map(|(c, toll)| f64::from(c.free) * toll);
        rows.sum::<f64>() + parts.sum::<f64>()
    }
}

/// The localities of parts that can be crowded.
const PARTS: [Locality; 3] = [Locality::Slot, Locality::Machine, Locality::Rack];

/// A bidder that holds GPUs: one of their slots, and the most that it could ask for in the slot,
/// machine and rack around it.
struct Holder {
    bidder: usize,
    slot: SlotId,
    most: [u32; 3],
}

impl Holder {
    fn of((bidder, bid): (usize, &Bid<'_>)) -> Option<Self> {
        let slot = bid.bidder.anchor()?;
        let mut most = [0; 4];
        for pattern in &bid.patterns {
            let most = &mut most[pattern.reach.level.index()];
            *most = pattern.gpus().max(*most);
        }
        let [in_slot, in_machine, in_rack, _] = most;
        let in_machine = in_machine.max(in_slot);
        Some(Self { bidder, slot, most: [in_slot, in_machine, in_rack.max(in_machine)] })
    }
}

/// A part of the cluster for which those who hold GPUs in it could ask for more than is free.
#[derive(Clone, Debug)]
pub(super) struct Contest {
    level: Locality,
    /// GPUs free in it.
    pub(super) free: u32,
    /// Those who hold GPUs in it.
    pub(super) bidders: Vec<usize>,
}

impl Contest {
    /// All contests, finer parts first, in order of their numbers.
    pub(super) fn all(offer: &FreeSet, bids: &[Bid<'_>]) -> Vec<Self> {
        let holders: Vec<Holder> = (0..).zip(bids).filter_map(Holder::of).collect();
        if holders.is_empty() {
            return Vec::new();
        }
        let topology = offer.topology();
        let mut asked = [topology.slots(), topology.machines(), topology.racks()]
            .map(|parts| vec![0_u64; parts]);
        let part = |slot, level| (level, topology.part_of(slot, level));
        for Holder { slot, most, .. } in &holders {
            for ((level, most), asked) in PARTS.into_iter().zip(most).zip(&mut asked) {
                asked[part(*slot, level).1 as usize] += u64::from(*most);
            }
        }
        let mut contests: BTreeMap<(Locality, u32), Self> = BTreeMap::new();
        for Holder { bidder, slot, most } in holders {
            for ((level, most), asked) in PARTS.into_iter().zip(most).zip(&asked) {
                let (part, free) = (part(slot, level), offer.around(slot, level.into()));
                if most > 0 && asked[part.1 as usize] > u64::from(free) {
                    let none = Self { level, free, bidders: Vec::new() };
                    contests.entry(part).or_insert(none).bidders.push(bidder);
                }
            }
        }
        contests.into_values().collect()
    }

    /// GPUs of this part that a pattern of one of its bidders takes.
    pub(super) fn uses(&self, pattern: &Pattern) -> u32 {
        if pattern.reach.level <= self.level { pattern.gpus() } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::Bidder;
    use super::*;
    use crate::app::{AppState, Job, Profile, Stopping};
    use crate::cluster::{Chunks, MachineSpec, Topology, TypeSet};

    #[test]
    fn holders_who_crowd_a_machine_pay_a_toll_there_and_only_there() {
        let spec = MachineSpec { rack: 0, gpus: 4, slot_gpus: 4 };
        let mut offer = FreeSet::full(Arc::new(Topology::new(&[spec; 3]).expect("valid")));
        let profile = Profile::new([1.0, 1.0, 2.0, 2.0]).expect("valid");
        let holder = |slot| {
            let job = Job::waiting(1, 3, 1000.0, profile.clone());
            let mut app = AppState::new(0.0, 100.0, Stopping::All, vec![job]);
            app.hold(0, &std::iter::once((SlotId(slot), 1)).collect());
            app.with_rho_empty(Some(10.0))
        };
        let apps = [holder(0), holder(0), holder(1)];
        for app in &apps {
            offer.take(&app.jobs[0].held);
        }
        let chunks = Chunks::of(&offer, &[1], &[TypeSet::ALL]);
        let bidders = apps.map(Bidder::App);
        let bids = bidders
            .each_ref()
            .map(|bidder| Bid::none(bidder, offer.topology()).on(&offer, &chunks, false));
        // Two more each, but only two are free beside the first two; the third is alone.
        let contests = Contest::all(&offer, &bids);
        assert!(contests.iter().all(|contest| contest.bidders == [0, 1] && contest.free == 2));
        assert_eq!(contests.len(), 1);
        let mut prices = Prices::zero(3, &contests);
        prices.set_toll(0, &contests[0], 0.25);
        for (bidder, toll) in [(0, 0.25), (1, 0.25), (2, 0.0)] {
            for pattern in &bids[bidder].patterns {
                let near = f64::from(contests[0].uses(pattern));
                assert!((prices.cost(bidder, pattern) - toll * near).abs() < 1e-12);
            }
        }
        let everything = prices.of_everything(chunks.capacity(), &contests);
        assert!((everything - 0.5).abs() < 1e-12);
    }
}
