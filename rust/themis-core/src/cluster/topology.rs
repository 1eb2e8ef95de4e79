//! The fixed shape of a cluster.

use crate::cluster::{Bundle, Host, MAX_TYPES, TypeSet};
use crate::error::CoreError;
use crate::ids::{MachineId, RackId, SlotId};

/// The smallest part of the cluster that contains a bundle; smaller is better placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Locality {
    /// All GPUs in one slot (one fast-link island).
    Slot = 0,
    /// All in one machine.
    Machine = 1,
    /// All in one rack.
    Rack = 2,
    /// Across racks.
    Cluster = 3,
}

impl Locality {
    /// Every locality, best first.
    pub const ALL: [Self; 4] = [Self::Slot, Self::Machine, Self::Rack, Self::Cluster];

    /// Position in a profile's columns.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// One machine of a cluster description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineSpec {
    /// Rack label: any number; equal numbers are one rack.
    pub rack: u32,
    /// GPUs of the machine.
    pub gpus: u32,
    /// GPUs a slot; the last slot takes the remainder.
    pub slot_gpus: u32,
}

/// Racks, machines and slots with their sizes. Immutable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    machine_rack: Vec<RackId>,
    machine_first_slot: Vec<u32>,
    machine_gpus: Vec<u32>,
    slot_machine: Vec<MachineId>,
    slot_gpus: Vec<u32>,
    rack_gpus: Vec<u32>,
    rack_machines: Vec<Vec<MachineId>>,
    gpus: u32,
    largest: [u32; 4],
    /// A machine's type, and what there is of each type; of one type, neither.
    machine_type: Vec<u8>,
    of_type: Vec<OfType>,
    /// What each machine has beside GPUs; empty where none is limited.
    pub(super) host: Vec<Host>,
}

/// What a cluster has of one GPU type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OfType {
    slot: u32,
    machine: u32,
    racks: Vec<u32>,
    gpus: u32,
}

impl Topology {
    /// Builds the cluster from its machines, cutting each into slots.
    ///
    /// # Errors
    /// [`CoreError::Cluster`] without machines, for a machine or slot of no GPUs, and beyond 2^31
    /// GPUs.
    pub fn new(machines: &[MachineSpec]) -> Result<Self, CoreError> {
        let mut slots = Vec::new();
        for (index, spec) in machines.iter().enumerate() {
            if spec.gpus == 0 || spec.slot_gpus == 0 {
                return Err(CoreError::Cluster(format!(
                    "machine {index} has {} GPUs in slots of {}; both must be at least 1",
                    spec.gpus, spec.slot_gpus
                )));
            }
            let mut rest = spec.gpus;
            while rest > 0 {
                let gpus = rest.min(spec.slot_gpus);
                slots.push((spec.rack, index as u32, gpus));
                rest -= gpus;
            }
        }
        Self::from_slots(&slots)
    }

    /// Builds a cluster from its slots: (rack label, machine label, GPUs), a machine's slots
    /// together. A slot of no GPUs is allowed (nothing of it is on offer).
    ///
    /// # Errors
    /// [`CoreError::Cluster`] without slots, when a machine's slots are not adjacent or lie in two
    /// racks, and beyond 2^31 GPUs.
    pub fn from_slots(slots: &[(u32, u32, u32)]) -> Result<Self, CoreError> {
        if slots.is_empty() {
            return Err(CoreError::Cluster("no machine; at least one is needed".into()));
        }
        let mut labels = Labels::default();
        let mut topology = Self {
            machine_rack: Vec::new(),
            machine_first_slot: Vec::new(),
            machine_gpus: Vec::new(),
            slot_machine: Vec::with_capacity(slots.len()),
            slot_gpus: Vec::with_capacity(slots.len()),
            rack_gpus: Vec::new(),
            rack_machines: Vec::new(),
            gpus: 0,
            largest: [0; 4],
            machine_type: Vec::new(),
            of_type: Vec::new(),
            host: Vec::new(),
        };
        for &(rack, machine, gpus) in slots {
            topology.push_slot(&mut labels, rack, machine, gpus)?;
        }
        topology.machine_first_slot.push(slots.len() as u32);
        let largest = |sizes: &[u32]| sizes.iter().copied().max().unwrap_or(0);
        topology.largest = [
            largest(&topology.slot_gpus),
            largest(&topology.machine_gpus),
            largest(&topology.rack_gpus),
            topology.gpus,
        ];
        Ok(topology)
    }

    /// The same cluster with a GPU type a machine, by number from 0.
    ///
    /// # Errors
    /// [`CoreError::Cluster`] for another number of machines, and beyond [`MAX_TYPES`] types.
    pub fn with_gpu_types(mut self, types: &[u32]) -> Result<Self, CoreError> {
        if types.len() != self.machines() {
            let (found, expected) = (types.len(), self.machines());
            return Err(CoreError::Cluster(format!("{found} GPU types for {expected} machines")));
        }
        let count = types.iter().max().map_or(1, |last| *last as usize + 1);
        if count > MAX_TYPES {
            return Err(CoreError::Cluster(format!("{count} GPU types; at most {MAX_TYPES}")));
        }
        if count == 1 {
            return Ok(self);
        }
        self.machine_type = types.iter().map(|gpu_type| *gpu_type as u8).collect();
        self.of_type = vec![OfType { racks: vec![0; self.racks()], ..OfType::default() }; count];
        for slot in (0..self.slots() as u32).map(SlotId) {
            let (machine, gpus) = (self.machine_of(slot), self.slot_gpus(slot));
            let all = &mut self.of_type[usize::from(self.machine_type[machine.index()])];
            all.slot = all.slot.max(gpus);
            all.machine = all.machine.max(self.machine_gpus[machine.index()]);
            all.racks[self.machine_rack[machine.index()].index()] += gpus;
            all.gpus += gpus;
        }
        Ok(self)
    }

    fn push_slot(
        &mut self,
        labels: &mut Labels,
        rack: u32,
        machine: u32,
        gpus: u32,
    ) -> Result<(), CoreError> {
        let rack_id = labels.rack(rack);
        if rack_id.index() == self.rack_gpus.len() {
            self.rack_gpus.push(0);
            self.rack_machines.push(Vec::new());
        }
        if labels.last_machine != Some(machine) {
            if !labels.seen_machines.insert(machine) {
                return Err(CoreError::Cluster(format!(
                    "the slots of machine {machine} are apart"
                )));
            }
            labels.last_machine = Some(machine);
            let id = MachineId(self.machine_rack.len() as u32);
            self.machine_rack.push(rack_id);
            self.machine_first_slot.push(self.slot_gpus.len() as u32);
            self.machine_gpus.push(0);
            self.rack_machines[rack_id.index()].push(id);
        }
        let id = MachineId(self.machine_rack.len() as u32 - 1);
        if self.machine_rack[id.index()] != rack_id {
            return Err(CoreError::Cluster(format!("machine {machine} lies in two racks")));
        }
        self.gpus = self
            .gpus
            .checked_add(gpus)
            .filter(|total| i32::try_from(*total).is_ok())
            .ok_or_else(|| CoreError::Cluster("more than 2^31 - 1 GPUs".into()))?;
        self.slot_machine.push(id);
        self.slot_gpus.push(gpus);
        self.machine_gpus[id.index()] += gpus;
        self.rack_gpus[rack_id.index()] += gpus;
        Ok(())
    }

    /// GPUs of the whole cluster (`R_C` of the paper).
    pub fn gpus(&self) -> u32 {
        self.gpus
    }

    /// Number of GPU types.
    #[inline]
    pub fn types(&self) -> usize {
        self.of_type.len().max(1)
    }

    /// The GPU type of a machine.
    #[inline]
    pub fn type_of(&self, machine: MachineId) -> usize {
        self.machine_type.get(machine.index()).map_or(0, |gpu_type| usize::from(*gpu_type))
    }

    /// The GPU types of a bundle.
    pub fn types_of(&self, bundle: &Bundle) -> TypeSet {
        bundle.iter().map(|(slot, _)| self.type_of(self.machine_of(slot))).collect()
    }

    /// GPUs of a bundle that are of some types.
    pub fn count_of(&self, bundle: &Bundle, types: TypeSet) -> u32 {
        let of_types = |slot| types.has(self.type_of(self.machine_of(slot)));
        bundle.iter().filter(|(slot, _)| of_types(*slot)).map(|(_, gpus)| gpus).sum()
    }

    /// GPUs of some types.
    pub fn gpus_of(&self, types: TypeSet) -> u32 {
        self.largest_of(Locality::Cluster, types)
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.slot_gpus.len()
    }

    /// Number of machines.
    pub fn machines(&self) -> usize {
        self.machine_rack.len()
    }

    /// Number of racks.
    pub fn racks(&self) -> usize {
        self.rack_gpus.len()
    }

    /// GPUs of one slot.
    #[inline]
    pub fn slot_gpus(&self, slot: SlotId) -> u32 {
        self.slot_gpus[slot.index()]
    }

    /// The machine of a slot.
    #[inline]
    pub fn machine_of(&self, slot: SlotId) -> MachineId {
        self.slot_machine[slot.index()]
    }

    /// The rack of a machine.
    #[inline]
    pub fn rack_of(&self, machine: MachineId) -> RackId {
        self.machine_rack[machine.index()]
    }

    /// Number of the part of a locality that a slot lies in.
    #[inline]
    pub fn part_of(&self, slot: SlotId, level: Locality) -> u32 {
        match level {
            Locality::Slot => slot.0,
            Locality::Machine => self.machine_of(slot).0,
            Locality::Rack => self.rack_of(self.machine_of(slot)).0,
            Locality::Cluster => 0,
        }
    }

    /// GPUs of one machine.
    pub fn machine_gpus(&self, machine: MachineId) -> u32 {
        self.machine_gpus[machine.index()]
    }

    /// The slots of one machine, in order.
    pub fn slots_of(&self, machine: MachineId) -> impl Iterator<Item = SlotId> + use<> {
        let m = machine.index();
        (self.machine_first_slot[m]..self.machine_first_slot[m + 1]).map(SlotId)
    }

    /// The machines of one rack, in order.
    pub fn machines_of(&self, rack: RackId) -> &[MachineId] {
        &self.rack_machines[rack.index()]
    }

    /// The best locality at which `gpus` GPUs of some types fit when the whole cluster is free;
    /// `None` when there are not so many.
    pub fn best_locality(&self, gpus: u32, types: TypeSet) -> Option<Locality> {
        Locality::ALL.into_iter().find(|level| gpus <= self.largest_of(*level, types))
    }

    /// Most GPUs that one part of this locality has when everything is free.
    pub fn largest(&self, level: Locality) -> u32 {
        self.largest[level.index()]
    }

    /// The same of GPUs of some types.
    #[inline]
    pub fn largest_of(&self, level: Locality, types: TypeSet) -> u32 {
        if self.of_type.is_empty() || types == TypeSet::ALL {
            return if types.has(0) { self.largest(level) } else { 0 };
        }
        let all = || types.iter(self.types()).map(|gpu_type| &self.of_type[gpu_type]);
        let largest = match level {
            Locality::Slot => all().map(|of| of.slot).max(),
            Locality::Machine => all().map(|of| of.machine).max(),
            Locality::Rack => {
                (0..self.racks()).map(|rack| all().map(|of| of.racks[rack]).sum()).max()
            }
            Locality::Cluster => Some(all().map(|of| of.gpus).sum()),
        };
        largest.unwrap_or(0)
    }

    /// The locality of a bundle; an empty bundle has the best one.
    pub fn locality(&self, bundle: &Bundle) -> Locality {
        let mut slots = bundle.iter().map(|(slot, _)| slot);
        let Some(first) = slots.next() else { return Locality::Slot };
        let machine = self.machine_of(first);
        let mut level = Locality::Slot;
        for slot in slots {
            let other = self.machine_of(slot);
            if self.rack_of(other) != self.rack_of(machine) {
                return Locality::Cluster;
            }
            level = level.max(if other == machine { Locality::Machine } else { Locality::Rack });
        }
        level
    }
}

/// Maps caller labels to dense ids while a topology is built.
#[derive(Default)]
struct Labels {
    racks: std::collections::BTreeMap<u32, RackId>,
    seen_machines: std::collections::BTreeSet<u32>,
    last_machine: Option<u32>,
}

impl Labels {
    fn rack(&mut self, label: u32) -> RackId {
        let next = RackId(self.racks.len() as u32);
        *self.racks.entry(label).or_insert(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_cut_into_slots_with_the_remainder_last() {
        let t = Topology::new(&[MachineSpec { rack: 7, gpus: 5, slot_gpus: 2 }]).expect("valid");
        assert_eq!((t.gpus(), t.slots(), t.machines(), t.racks()), (5, 3, 1, 1));
        assert_eq!([0, 1, 2].map(|s| t.slot_gpus(SlotId(s))), [2, 2, 1]);
        assert_eq!(t.best_locality(2, TypeSet::ALL), Some(Locality::Slot));
        assert_eq!(t.best_locality(3, TypeSet::ALL), Some(Locality::Machine));
        assert_eq!(t.best_locality(6, TypeSet::ALL), None);
    }

    #[test]
    fn locality_is_the_smallest_part_that_contains_the_bundle() {
        let m = |rack| MachineSpec { rack, gpus: 4, slot_gpus: 2 };
        let t = Topology::new(&[m(0), m(0), m(1)]).expect("valid");
        let level =
            |slots: &[u32]| t.locality(&slots.iter().map(|s| (SlotId(*s), 1)).collect::<Bundle>());
        assert_eq!(level(&[]), Locality::Slot);
        assert_eq!(level(&[3]), Locality::Slot);
        assert_eq!(level(&[0, 1]), Locality::Machine);
        assert_eq!(level(&[1, 2]), Locality::Rack);
        assert_eq!(level(&[0, 1, 5]), Locality::Cluster);
    }

    #[test]
    fn empty_and_absurd_clusters_are_refused() {
        assert!(Topology::new(&[]).is_err());
        assert!(Topology::new(&[MachineSpec { rack: 0, gpus: 0, slot_gpus: 1 }]).is_err());
        assert!(Topology::from_slots(&[(0, 0, u32::MAX)]).is_err());
        assert!(Topology::from_slots(&[(0, 0, 1), (0, 1, 1), (0, 0, 1)]).is_err());
        assert!(Topology::from_slots(&[(0, 0, 1), (1, 0, 1)]).is_err());
    }
}
