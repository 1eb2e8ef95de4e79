//! The free GPUs of a cluster, indexed so that the best fit is one look-up.

use std::sync::Arc;

use super::buckets::{Buckets, fullest_then_tightest};
use crate::cluster::{Bundle, Host, Topology, TypeSet, Within};
use crate::ids::{MachineId, RackId, SlotId};

/// Racks that are looked through one by one.
const FEW_RACKS: usize = 64;

/// Free GPUs a slot, machine and rack, and how many of them each tenant may still take.
///
/// Taking and giving cost O(slots of the bundle); finding the best-fitting slot or machine costs
/// O(largest size + positions / 64): sets of positions are kept by their free count.
#[derive(Clone, Debug)]
pub struct FreeSet {
    pub(super) topology: Arc<Topology>,
    slots: Buckets,
    machines: Buckets,
    racks: Vec<u32>,
    /// Of racks that are many ([`FreeSet::indexes_racks`]), whatever their types.
    racks_by_free: Option<Buckets>,
    /// Type by type, all racks; of one type, nothing.
    racks_of_type: Vec<u32>,
    total: u32,
    /// By tenant; one without an entry may take any number.
    rooms: Vec<u32>,
    /// Free host resources by machine ([`Host`]); empty where no machine is limited.
    pub(super) host: Vec<Host>,
    /// Whether it is what a need can use ([`FreeSet::open_to`]): of a machine perhaps fewer GPUs than
    /// its slots have.
    narrowed: bool,
}

impl FreeSet {
    /// A set with nothing free.
    pub fn empty(topology: Arc<Topology>) -> Self {
        use super::Locality::{Machine, Rack, Slot};
        let types = topology.types();
        let slots = Buckets::new(topology.slots(), topology.largest(Slot), types);
        let machines = Buckets::new(topology.machines(), topology.largest(Machine), types);
        let racks = vec![0; topology.racks()];
        let indexed = Self::indexes_racks(&topology);
        let racks_by_free = indexed.then(|| Buckets::new(racks.len(), topology.largest(Rack), 1));
        let racks_of_type = if types > 1 { racks.repeat(types) } else { Vec::new() };
        let (rooms, host) = (Vec::new(), topology.host().to_vec());
        Self {
            slots,
            machines,
            racks,
            racks_by_free,
            racks_of_type,
            total: 0,
            rooms,
            host,
            narrowed: false,
            topology,
        }
    }

    /// Whether racks are worth an index: more than are soon seen through, and none so large that the
    /// index would outgrow the rest of the set.
    fn indexes_racks(topology: &Topology) -> bool {
        let largest = topology.largest(super::Locality::Rack) as usize;
        topology.racks() > FEW_RACKS && largest * topology.racks() / 64 <= 4 * topology.slots()
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

    /// The same without the GPUs of some types.
    #[must_use]
    pub fn without(&self, types: TypeSet) -> Self {
        let mut rest = self.clone();
        for slot in (0..self.topology.slots() as u32).map(SlotId) {
            if self.is_of(self.topology.machine_of(slot), types) {
                rest.set_slot(slot, 0);
            }
        }
        rest
    }

    /// The same with so much room for each tenant; for those beyond the list, any.
    #[must_use]
    pub fn with_rooms(mut self, rooms: Vec<u32>) -> Self {
        self.rooms = rooms;
        self
    }

    /// GPUs that a tenant may still take.
    #[inline]
    pub fn room(&self, tenant: u32) -> u32 {
        self.rooms.get(tenant as usize).copied().unwrap_or(u32::MAX)
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

    /// Free GPUs of some types.
    pub fn total_of(&self, types: TypeSet) -> u32 {
        if types == TypeSet::ALL {
            return self.total;
        }
        (0..self.topology.racks() as u32).map(|rack| self.rack(RackId(rack), types)).sum()
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

    /// Free GPUs, of a slot's type and others, in the part of a locality that it lies in.
    pub fn around(&self, slot: SlotId, within: Within) -> u32 {
        let machine = self.topology.machine_of(slot);
        match within.level {
            super::Locality::Slot => self.slot(slot),
            super::Locality::Machine => self.machine(machine),
            super::Locality::Rack => self.rack(self.topology.rack_of(machine), within.types),
            super::Locality::Cluster => self.total_of(within.types),
        }
    }

    /// Free GPUs of some types in a rack.
    #[inline]
    pub fn rack(&self, rack: RackId, types: TypeSet) -> u32 {
        if types == TypeSet::ALL || self.racks_of_type.is_empty() {
            return if types.has(0) { self.racks[rack.index()] } else { 0 };
        }
        let of_type = |gpu_type| self.racks_of_type[gpu_type * self.racks.len() + rack.index()];
        types.iter(self.topology.types()).map(of_type).sum()
    }

    /// Whether a machine has GPUs of these types.
    #[inline]
    pub fn is_of(&self, machine: MachineId, types: TypeSet) -> bool {
        types == TypeSet::ALL || types.has(self.topology.type_of(machine))
    }

    /// True when every GPU of the bundle is free.
    #[inline]
    pub fn has(&self, bundle: &Bundle) -> bool {
        bundle.iter().all(|(slot, gpus)| self.slot(slot) >= gpus)
            && (!self.narrowed || self.machines_have(bundle))
    }

    #[cold]
    fn machines_have(&self, bundle: &Bundle) -> bool {
        let machines = bundle.by_machine(&self.topology);
        machines.iter().all(|(machine, gpus)| self.machine(*machine) >= *gpus)
    }

    /// Whether it is what a need can use of a larger set.
    #[inline]
    pub fn is_narrowed(&self) -> bool {
        self.narrowed
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

    /// Removes a bundle with what its GPUs need, and counts it for a tenant.
    ///
    /// # Panics
    /// When the bundle is not free or exceeds the tenant's room: a caller's broken invariant.
    pub fn take_for(&mut self, tenant: u32, need: Host, bundle: &Bundle) {
        self.take_with(need, bundle);
        if let Some(room) = self.rooms.get_mut(tenant as usize) {
            *room = room.checked_sub(bundle.gpus()).expect("invariant: the tenant has room");
        }
    }

    /// Returns a bundle that was taken for a tenant.
    #[inline]
    pub fn give_for(&mut self, tenant: u32, need: Host, bundle: &Bundle) {
        self.give_with(need, bundle);
        if let Some(room) = self.rooms.get_mut(tenant as usize) {
            *room += bundle.gpus();
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
        debug_assert!(!self.narrowed, "a narrowed set is only read");
        let machine = self.topology.machine_of(slot);
        let rack = self.topology.rack_of(machine);
        let before = self.slot(slot);
        let mut gpu_type = 0;
        if !self.racks_of_type.is_empty() {
            gpu_type = self.topology.type_of(machine);
            let of_type = &mut self.racks_of_type[gpu_type * self.racks.len() + rack.index()];
            *of_type = *of_type - before + gpus;
        }
        self.slots.set(slot.index(), gpu_type, gpus);
        self.machines.set(machine.index(), gpu_type, self.machine(machine) - before + gpus);
        self.set_rack(rack, self.racks[rack.index()] - before + gpus);
        self.total = self.total - before + gpus;
    }

    /// Leaves of a machine at most so many GPUs, in whichever slots.
    pub(super) fn cap_machine(&mut self, machine: MachineId, gpus: u32) {
        self.narrowed = true;
        let gpu_type = self.topology.type_of(machine);
        for slot in self.topology.slots_of(machine) {
            self.slots.set(slot.index(), gpu_type, self.slot(slot).min(gpus));
        }
        let fewer = self.machine(machine) - gpus;
        self.machines.set(machine.index(), gpu_type, gpus);
        let rack = self.topology.rack_of(machine);
        self.set_rack(rack, self.racks[rack.index()] - fewer);
        if !self.racks_of_type.is_empty() {
            self.racks_of_type[gpu_type * self.racks.len() + rack.index()] -= fewer;
        }
        self.total -= fewer;
    }

    fn set_rack(&mut self, rack: RackId, gpus: u32) {
        self.racks[rack.index()] = gpus;
        if let Some(racks) = &mut self.racks_by_free {
            racks.set(rack.index(), 0, gpus);
        }
    }

    /// Every free GPU as one bundle.
    pub fn to_bundle(&self) -> Bundle {
        let slots = self.slots.free.iter().enumerate().filter(|(_, gpus)| **gpus > 0);
        slots.map(|(slot, gpus)| (SlotId(slot as u32), *gpus)).collect()
    }

    /// The slot of some types with the fewest free GPUs that still has `gpus`; ties: lowest slot.
    pub fn tightest_slot(&self, gpus: u32, types: TypeSet) -> Option<SlotId> {
        self.slots.tightest(gpus, types).map(|s| SlotId(s as u32))
    }

    /// The machine with the fewest free GPUs that still has `gpus`; ties: lowest machine.
    pub fn tightest_machine(&self, gpus: u32, types: TypeSet) -> Option<MachineId> {
        self.machines.tightest(gpus, types).map(|m| MachineId(m as u32))
    }

    /// The rack with the fewest free GPUs of some types that still has `gpus`; ties: lowest rack.
    pub fn tightest_rack(&self, gpus: u32, types: TypeSet) -> Option<RackId> {
        if let (Some(racks), TypeSet::ALL) = (&self.racks_by_free, types) {
            return racks.tightest(gpus, types).map(|rack| RackId(rack as u32));
        }
        let racks = (0..self.topology.racks() as u32).map(RackId);
        let fitting = racks.map(|rack| (self.rack(rack, types), rack));
        let fitting = fitting.filter(|(free, _)| *free >= gpus);
        fitting.min_by_key(|(free, _)| *free).map(|(_, rack)| rack)
    }

    /// The rack to take GPUs from next where so many are needed and these racks gave all that they
    /// have: the tightest that has as many, else the fullest; ties: lowest rack.
    pub(super) fn next_rack(&self, need: u32, types: TypeSet, taken: &[RackId]) -> Option<RackId> {
        let is_open = |rack: &RackId| !taken.contains(rack);
        if let (Some(racks), TypeSet::ALL) = (&self.racks_by_free, types) {
            let mut near = racks.tighter_first(need).map(|rack| RackId(rack as u32));
            return near.find(is_open);
        }
        let racks = (0..self.topology.racks() as u32).map(RackId);
        let open = racks.filter(|rack| self.rack(*rack, types) > 0 && is_open(rack));
        open.min_by_key(|rack| fullest_then_tightest(self.rack(*rack, types), need))
    }

    /// Most free GPUs of some types within one part of this locality.
    pub fn largest(&self, level: super::Locality, types: TypeSet) -> u32 {
        match level {
            super::Locality::Slot => self.slots.largest(types),
            super::Locality::Machine => self.machines.largest(types),
            super::Locality::Rack => match &self.racks_by_free {
                Some(racks) if types == TypeSet::ALL => racks.largest(types),
                _ => {
                    let racks = (0..self.topology.racks() as u32).map(RackId);
                    racks.map(|rack| self.rack(rack, types)).max().unwrap_or(0)
                }
            },
            super::Locality::Cluster => self.total_of(types),
        }
    }
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
        assert_eq!((free.total(), free.largest(Locality::Rack, TypeSet::ALL)), (14, 12));
        assert_eq!(free.tightest_slot(1, TypeSet::ALL), Some(SlotId(3)));
        assert_eq!(free.tightest_machine(3, TypeSet::ALL), Some(MachineId(1)));
        let part: Bundle = [(SlotId(0), 3), (SlotId(3), 2)].into_iter().collect();
        free.take(&part);
        assert!(!free.has(&part));
        assert_eq!(free.tightest_slot(1, TypeSet::ALL), Some(SlotId(0)));
        assert_eq!(
            (
                free.largest(Locality::Slot, TypeSet::ALL),
                free.largest(Locality::Machine, TypeSet::ALL)
            ),
            (4, 5)
        );
        assert_eq!(free.tightest_rack(1, TypeSet::ALL), Some(RackId(0)));
        free.give(&part);
        assert_eq!(free.to_bundle().gpus(), 14);
        assert_eq!(free.tightest_slot(9, TypeSet::ALL), None);
    }

    #[test]
    fn room_is_used_up_and_comes_back_with_the_gpus() {
        let spec = MachineSpec { rack: 0, gpus: 4, slot_gpus: 4 };
        let t = Topology::new(&[spec]).expect("valid");
        let mut free = FreeSet::full(Arc::new(t)).with_rooms(vec![3, 0]);
        let two: Bundle = std::iter::once((SlotId(0), 2)).collect();
        free.take_for(0, Host::NONE, &two);
        assert_eq!((free.total(), free.room(0), free.room(1)), (2, 1, 0));
        free.take_for(2, Host::NONE, &two);
        assert_eq!((free.total(), free.room(0), free.room(2)), (0, 1, u32::MAX));
        free.give_for(0, Host::NONE, &two);
        assert_eq!((free.total(), free.room(0)), (2, 3));
    }
}
