//! The free GPUs of a cluster, indexed so that the best fit is one look-up.

use std::sync::Arc;

use fixedbitset::FixedBitSet;

use crate::cluster::{Bundle, Topology};
use crate::ids::{MachineId, RackId, SlotId};

/// Free GPUs a slot, machine and rack.
///
/// Taking and giving cost O(slots of the bundle); finding the best-fitting slot or machine costs
/// O(largest size + positions / 64): sets of positions are kept by their free count.
#[derive(Clone, Debug)]
pub struct FreeSet {
    topology: Arc<Topology>,
    slots: Buckets,
    machines: Buckets,
    racks: Vec<u32>,
    total: u32,
}

impl FreeSet {
    /// A set with nothing free.
    pub fn empty(topology: Arc<Topology>) -> Self {
        let slots = Buckets::new(topology.slots(), topology.largest(super::Locality::Slot));
        let machines =
            Buckets::new(topology.machines(), topology.largest(super::Locality::Machine));
        Self { slots, machines, racks: vec![0; topology.racks()], total: 0, topology }
    }

    /// A set with every GPU of the cluster free.
    pub fn full(topology: Arc<Topology>) -> Self {
        let mut free = Self::empty(topology);
        for slot in (0..free.topology.slots() as u32).map(SlotId) {
            free.give_slot(slot, free.topology.slot_gpus(slot));
        }
        free
    }

    /// A set in which just this bundle is free.
    pub fn of(topology: Arc<Topology>, bundle: &Bundle) -> Self {
        let mut free = Self::empty(topology);
        free.give(bundle);
        free
    }

    /// The cluster's shape.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The cluster's shape, shared.
    pub fn shared_topology(&self) -> Arc<Topology> {
        Arc::clone(&self.topology)
    }

    /// Free GPUs in all.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Free GPUs of a slot.
    #[inline]
    pub fn slot(&self, slot: SlotId) -> u32 {
        self.slots.free[slot.index()]
    }

    /// Free GPUs of a machine.
    #[inline]
    pub fn machine(&self, machine: MachineId) -> u32 {
        self.machines.free[machine.index()]
    }

    /// Free GPUs of the part of a locality that a slot lies in.
    pub fn around(&self, slot: SlotId, level: super::Locality) -> u32 {
        let machine = self.topology.machine_of(slot);
        match level {
            super::Locality::Slot => self.slot(slot),
            super::Locality::Machine => self.machine(machine),
            super::Locality::Rack => self.rack(self.topology.rack_of(machine)),
            super::Locality::Cluster => self.total(),
        }
    }

    /// Free GPUs of a rack.
    #[inline]
    pub fn rack(&self, rack: RackId) -> u32 {
        self.racks[rack.index()]
    }

    /// True when every GPU of the bundle is free.
    pub fn has(&self, bundle: &Bundle) -> bool {
        bundle.iter().all(|(slot, gpus)| self.slot(slot) >= gpus)
    }

    /// Removes a bundle.
    ///
    /// # Panics
    /// When the bundle is not free: a caller's broken invariant, checked with [`FreeSet::has`].
    pub fn take(&mut self, bundle: &Bundle) {
        for (slot, gpus) in bundle.iter() {
            let left = self.slot(slot).checked_sub(gpus).expect("invariant: the bundle is free");
            self.set_slot(slot, left);
        }
    }

    /// Returns a bundle.
    pub fn give(&mut self, bundle: &Bundle) {
        for (slot, gpus) in bundle.iter() {
            self.give_slot(slot, gpus);
        }
    }

    /// Returns GPUs of one slot.
    pub fn give_slot(&mut self, slot: SlotId, gpus: u32) {
        self.set_slot(slot, self.slot(slot) + gpus);
    }

    fn set_slot(&mut self, slot: SlotId, gpus: u32) {
        debug_assert!(gpus <= self.topology.slot_gpus(slot), "more free than the slot has");
        let machine = self.topology.machine_of(slot);
        let rack = self.topology.rack_of(machine);
        let before = self.slot(slot);
        self.slots.set(slot.index(), gpus);
        self.machines.set(machine.index(), self.machine(machine) - before + gpus);
        self.racks[rack.index()] = self.racks[rack.index()] - before + gpus;
        self.total = self.total - before + gpus;
    }

    /// Every free GPU as one bundle.
    pub fn to_bundle(&self) -> Bundle {
        let slots = self.slots.free.iter().enumerate().filter(|(_, gpus)| **gpus > 0);
        slots.map(|(slot, gpus)| (SlotId(slot as u32), *gpus)).collect()
    }

    /// The slot with the fewest free GPUs that still has `gpus`; ties: lowest slot.
    pub fn tightest_slot(&self, gpus: u32) -> Option<SlotId> {
        self.slots.tightest(gpus).map(|s| SlotId(s as u32))
    }

    /// The machine with the fewest free GPUs that still has `gpus`; ties: lowest machine.
    pub fn tightest_machine(&self, gpus: u32) -> Option<MachineId> {
        self.machines.tightest(gpus).map(|m| MachineId(m as u32))
    }

    /// The rack with the fewest free GPUs that still has `gpus`; ties: lowest rack.
    pub fn tightest_rack(&self, gpus: u32) -> Option<RackId> {
        let fitting = self.racks.iter().enumerate().filter(|(_, free)| **free >= gpus);
        fitting.min_by_key(|(_, free)| **free).map(|(r, _)| RackId(r as u32))
    }

    /// Most free GPUs within one part of this locality.
    pub fn largest(&self, level: super::Locality) -> u32 {
        match level {
            super::Locality::Slot => self.slots.largest(),
            super::Locality::Machine => self.machines.largest(),
            super::Locality::Rack => self.racks.iter().copied().max().unwrap_or(0),
            super::Locality::Cluster => self.total,
        }
    }
}

/// Positions grouped by their free count.
#[derive(Clone, Debug)]
struct Buckets {
    free: Vec<u32>,
    by_free: Vec<FixedBitSet>,
    members: Vec<u32>,
    /// No position of a group is lower.
    lowest: Vec<usize>,
}

impl Buckets {
    fn new(positions: usize, largest: u32) -> Self {
        let mut by_free = vec![FixedBitSet::with_capacity(positions); largest as usize + 1];
        by_free[0].insert_range(..);
        let mut members = vec![0; largest as usize + 1];
        members[0] = positions as u32;
        let lowest = vec![0; largest as usize + 1];
        Self { free: vec![0; positions], by_free, members, lowest }
    }

    fn set(&mut self, position: usize, free: u32) {
        let before = self.free[position] as usize;
        if before == free as usize {
            return;
        }
        self.by_free[before].remove(position);
        self.members[before] -= 1;
        if self.lowest[before] == position {
            self.lowest[before] = next_one(&self.by_free[before], position);
        }
        let after = free as usize;
        self.by_free[after].insert(position);
        self.lowest[after] =
            if self.members[after] == 0 { position } else { self.lowest[after].min(position) };
        self.members[after] += 1;
        self.free[position] = free;
    }

    fn tightest(&self, gpus: u32) -> Option<usize> {
        let from = gpus.max(1) as usize;
        let bucket = (from..self.by_free.len()).find(|count| self.members[*count] > 0)?;
        Some(self.lowest[bucket])
    }

    fn largest(&self) -> u32 {
        self.members.iter().rposition(|members| *members > 0).unwrap_or(0) as u32
    }
}

/// The first position of a set from this one on; the end of the set if there is none.
fn next_one(set: &FixedBitSet, from: usize) -> usize {
    let bits = usize::BITS as usize;
    let mut words = set.as_slice().iter().enumerate().skip(from / bits);
    let found = words.find(|(_, word)| **word != 0);
    found.map_or(set.len(), |(at, word)| at * bits + word.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Locality, MachineSpec};

    #[test]
    fn the_index_follows_what_is_taken_and_given() {
        let spec = |rack, gpus| MachineSpec { rack, gpus, slot_gpus: 4 };
        let t = Topology::new(&[spec(0, 8), spec(0, 4), spec(1, 2)]).expect("valid");
        let mut free = FreeSet::full(Arc::new(t));
        assert_eq!((free.total(), free.largest(Locality::Rack)), (14, 12));
        assert_eq!(free.tightest_slot(1), Some(SlotId(3)));
        assert_eq!(free.tightest_machine(3), Some(MachineId(1)));
        let part: Bundle = [(SlotId(0), 3), (SlotId(3), 2)].into_iter().collect();
        free.take(&part);
        assert!(!free.has(&part));
        assert_eq!(free.tightest_slot(1), Some(SlotId(0)));
        assert_eq!((free.largest(Locality::Slot), free.largest(Locality::Machine)), (4, 5));
        assert_eq!(free.tightest_rack(1), Some(RackId(0)));
        free.give(&part);
        assert_eq!(free.to_bundle().gpus(), 14);
        assert_eq!(free.tightest_slot(9), None);
    }
}
