//! Chunks: what a close bundle uses up beyond its GPUs.
//!
//! A machine with 5 free GPUs serves one gang of 4, not 5/4 of one. For every part of the cluster
//! (slot, machine, rack) and chunk size k, bundles inside single parts hold at most
//! sum over parts of floor(free / k) chunks, since floors add up to no more than the floor of a
//! sum. These inequalities are what placement costs when it is priced; there are few of them.
//!
//! Of several GPU types, each set of types that some job is bound to has GPUs and chunks of its own:
//! a bundle uses those of every set that has all of its types.

use crate::cluster::{Bundle, FreeSet, Locality, Topology, TypeSet, Within};
use crate::ids::{MachineId, RackId};

/// Rows at most: GPUs, and chunks of a locality and size, a set of types.
pub const MAX_ROWS: usize = 12;

/// Kinds of chunks, and one that is never used: twelve numbers are added in fewer steps than eleven.
const CHUNKS: usize = MAX_ROWS;

/// How much of each row a bundle uses. More than 65,535 chunks of a row count as that many: the
/// bound holds for uses that are too small, and bids are many, so that their size matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    gpus: u32,
    chunks: [u16; CHUNKS],
}

impl Use {
    /// GPUs: row 0.
    #[inline]
    pub fn gpus(&self) -> u32 {
        self.gpus
    }

    /// How much of a row.
    #[inline]
    pub fn of_row(&self, row: usize) -> u32 {
        if row == 0 { self.gpus } else { u32::from(self.chunks[row - 1]) }
    }

    /// How much of each row.
    #[inline]
    pub fn rows(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::once(self.gpus).chain(self.chunks.iter().copied().map(u32::from))
    }

    /// This use with more of a row.
    fn add(&mut self, row: usize, more: u32) {
        if row == 0 {
            self.gpus += more;
        } else {
            let chunks = &mut self.chunks[row - 1];
            *chunks = chunks.saturating_add(u16::try_from(more).unwrap_or(u16::MAX));
        }
    }

    /// This use with another added.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        self.gpus += other.gpus;
        for (mine, theirs) in self.chunks.iter_mut().zip(other.chunks) {
            *mine = mine.saturating_add(theirs);
        }
        self
    }

    /// This use less a part of it.
    #[must_use]
    pub fn minus(mut self, part: &Self) -> Self {
        self.gpus -= part.gpus;
        for (mine, theirs) in self.chunks.iter_mut().zip(part.chunks) {
            *mine = mine.saturating_sub(theirs);
        }
        self
    }

    /// What it costs at a price a row; rows beyond the last price are free.
    #[inline]
    pub fn cost(&self, prices: &[f64]) -> f64 {
        let Some((price, prices)) = prices.split_first() else { return 0.0 };
        let mut cost = f64::from(self.gpus) * price;
        for (amount, price) in self.chunks.iter().zip(prices) {
            cost += f64::from(*amount) * price;
        }
        cost
    }
}

/// One kind of chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    types: TypeSet,
    level: Locality,
    size: u32,
}

/// GPUs of a bundle whose chunks are kept at hand.
const AT_HAND: u32 = 64;

/// The rows of an offer and how much each has.
#[derive(Clone, Debug)]
pub struct Chunks {
    rows: Vec<Row>,
    capacity: [f64; MAX_ROWS],
    largest: [u32; 4],
    /// What 0, 1, 2, ... GPUs within one slot use, of GPUs of any type.
    at_hand: Vec<Use>,
    /// By locality, all bits of the rows that bundles within it use.
    used: [[u16; CHUNKS]; 4],
}

impl Chunks {
    /// The rows that may bind: GPUs, of all types and of each set of `bound` (most wanted first);
    /// then of these in turn powers of two that fit, and other gang sizes that are asked for, in
    /// slots, machines and racks; smaller parts first, larger chunks first.
    pub fn of(offer: &FreeSet, gangs: &[u32], bound: &[TypeSet]) -> Self {
        let gpus = |types| Row { types, level: Locality::Cluster, size: 1 };
        let mut rows = vec![gpus(TypeSet::ALL)];
        rows.extend(bound.iter().filter(|types| **types != TypeSet::ALL).map(|t| gpus(*t)));
        let parts: Vec<Vec<Row>> =
            bound.iter().map(|types| Self::in_parts(offer, gangs, *types)).collect();
        let longest = parts.iter().map(Vec::len).max().unwrap_or(0);
        rows.extend((0..longest).flat_map(|at| parts.iter().filter_map(move |of| of.get(at))));
        rows.truncate(MAX_ROWS);
        let mut capacity = [0.0; MAX_ROWS];
        for (row, there) in rows.iter().zip(&mut capacity) {
            *there = Self::count(offer, *row);
        }
        let largest = Locality::ALL.map(|level| offer.largest(level, TypeSet::ALL));
        let used = Locality::ALL.map(|level| Self::used(&rows, level));
        let mut chunks = Self { rows, capacity, largest, at_hand: Vec::new(), used };
        let uses = |gpus| {
            let mut uses = Use::default();
            chunks.count_in(&mut uses, Locality::Slot.into(), 0, gpus);
            uses
        };
        chunks.at_hand = (0..=offer.total().min(AT_HAND)).map(uses).collect();
        chunks
    }

    fn used(rows: &[Row], level: Locality) -> [u16; CHUNKS] {
        let mut used = [0; CHUNKS];
        for (row, used) in rows[1..].iter().zip(&mut used) {
            if level <= row.level && row.types == TypeSet::ALL {
                *used = u16::MAX;
            }
        }
        used
    }

    /// Chunks in slots, machines and racks, of GPUs of some types.
    fn in_parts(offer: &FreeSet, gangs: &[u32], types: TypeSet) -> Vec<Row> {
        let topology = offer.topology();
        let mut rows = Vec::new();
        let mut floor = 1;
        for level in [Locality::Slot, Locality::Machine, Locality::Rack] {
            let largest = offer.largest(level, types);
            let flat = match level {
                Locality::Slot => topology.slots() == topology.machines(),
                Locality::Machine => false,
                _ => topology.racks() == 1,
            };
            if flat {
                continue;
            }
            let powers = (1..31).map(|bit| 1 << bit);
            let mut sizes: Vec<u32> = powers
                .chain(gangs.iter().copied())
                .filter(|k| *k > floor && *k <= largest)
                .collect();
            sizes.sort_unstable_by(|a, b| b.cmp(a));
            sizes.dedup();
            rows.extend(sizes.into_iter().take(4).map(|size| Row { types, level, size }));
            floor = if level == Locality::Slot { 1 } else { largest };
        }
        rows
    }

    fn count(offer: &FreeSet, Row { types, level, size }: Row) -> f64 {
        let topology = offer.topology();
        let machines = (0..topology.machines() as u32).map(MachineId);
        let machines = machines.filter(|machine| offer.is_of(*machine, types));
        let chunks: u64 = match level {
            Locality::Slot => machines
                .flat_map(|machine| topology.slots_of(machine))
                .map(|slot| u64::from(offer.slot(slot) / size))
                .sum(),
            Locality::Machine => {
                machines.map(|machine| u64::from(offer.machine(machine) / size)).sum()
            }
            Locality::Rack => (0..topology.racks() as u32)
                .map(|rack| u64::from(offer.rack(RackId(rack), types) / size))
                .sum(),
            Locality::Cluster => u64::from(offer.total_of(types) / size),
        };
        chunks as f64
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Never: GPUs are always a row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How much each row has.
    pub fn capacity(&self) -> &[f64; MAX_ROWS] {
        &self.capacity
    }

    /// Most GPUs on offer within one part of a locality: any part, or the one that holds `held`.
    pub fn room(&self, offer: &FreeSet, held: &Bundle, within: Within) -> u32 {
        match held.iter().next() {
            Some((slot, _)) => offer.around(slot, within),
            None if within.types == TypeSet::ALL && !offer.is_narrowed() => {
                self.largest[within.level.index()]
            }
            None => offer.largest(within.level, within.types),
        }
    }

    /// What a bundle of given GPUs uses: chunks of the parts that it takes from.
    pub fn of_bundle(&self, topology: &Topology, bundle: &Bundle) -> Use {
        let mut uses = Use::default();
        for (at, Row { types, level, size }) in self.rows.iter().enumerate() {
            let of_types = |slot| types.has(topology.type_of(topology.machine_of(slot)));
            let mut parts: Vec<(u32, u32)> = bundle
                .iter()
                .filter(|(slot, _)| of_types(*slot))
                .map(|(slot, n)| (topology.part_of(slot, *level), n))
                .collect();
            parts.sort_unstable();
            for same in parts.chunk_by(|a, b| a.0 == b.0) {
                uses.add(at, same.iter().map(|(_, gpus)| gpus).sum::<u32>() / size);
            }
        }
        uses
    }

    /// Counts in that a job's bundle within one part grows from `from` to `to` GPUs.
    pub fn grow(&self, uses: &mut Use, within: Within, from: u32, to: u32) {
        let (Some(before), Some(after)) =
            (self.at_hand.get(from as usize), self.at_hand.get(to as usize))
        else {
            return self.count_in(uses, within, from, to);
        };
        if within.types != TypeSet::ALL {
            return self.count_in(uses, within, from, to);
        }
        uses.gpus += to - from;
        let more = after.chunks.iter().zip(&before.chunks).zip(&self.used[within.level.index()]);
        for (mine, ((after, before), used)) in uses.chunks.iter_mut().zip(more) {
            *mine = mine.saturating_add((after - before) & used);
        }
    }

    /// The same, row by row.
    fn count_in(&self, uses: &mut Use, within: Within, from: u32, to: u32) {
        for (at, row) in self.rows.iter().enumerate() {
            if within.level <= row.level && row.types.includes(within.types) {
                uses.add(at, to / row.size - from / row.size);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cluster::MachineSpec;

    #[test]
    fn rows_count_what_parts_can_hold() {
        let machine = |rack, gpus| MachineSpec { rack, gpus, slot_gpus: 4 };
        let specs = [machine(0, 8), machine(0, 5), machine(1, 3)];
        let offer = FreeSet::full(Arc::new(Topology::new(&specs).expect("valid")));
        let chunks = Chunks::of(&offer, &[3], &[TypeSet::ALL]);
        let of = |level, size| {
            let wanted = Row { types: TypeSet::ALL, level, size };
            let row = chunks.rows.iter().position(|row| *row == wanted).expect("a row");
            chunks.capacity[row] as u32
        };
        assert_eq!(of(Locality::Cluster, 1), 16);
        assert_eq!(
            (of(Locality::Slot, 4), of(Locality::Slot, 3), of(Locality::Slot, 2)),
            (3, 4, 7)
        );
        assert_eq!((of(Locality::Machine, 8), of(Locality::Machine, 3)), (1, 4));
        let mut uses = Use::default();
        chunks.grow(&mut uses, Locality::Machine.into(), 0, 5);
        chunks.grow(&mut uses, Locality::Cluster.into(), 5, 6);
        assert_eq!(uses.gpus(), 6);
        assert_eq!(uses.rows().sum::<u32>(), 6 + 1 + 1 + 2);
    }

    #[test]
    fn chunks_beyond_16_bits_count_as_fewer_and_gpus_do_not() {
        let spec = MachineSpec { rack: 0, gpus: 200_000, slot_gpus: 200_000 };
        let offer = FreeSet::full(Arc::new(Topology::new(&[spec]).expect("valid")));
        let row = |level, size| Row { types: TypeSet::ALL, level, size };
        let rows = vec![row(Locality::Cluster, 1), row(Locality::Machine, 2)];
        let chunks = Chunks { rows, ..Chunks::of(&offer, &[], &[]) };
        let mut uses = Use::default();
        chunks.grow(&mut uses, Locality::Machine.into(), 0, 200_000);
        assert_eq!((uses.of_row(0), uses.of_row(1)), (200_000, 65_535));
        assert_eq!(uses.plus(&uses).of_row(1), 65_535);
        assert!((uses.cost(&[1.0, 0.0]) - 200_000.0).abs() < 1e-9);
    }
}
