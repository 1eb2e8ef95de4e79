//! Random clusters, and the index of free GPUs against a plain list.

use std::sync::Arc;

use proptest::prelude::*;
use themis_core::cluster::{Bundle, FreeSet, Locality, MachineSpec, Topology, TypeSet};
use themis_core::{MachineId, RackId, SlotId};

/// Up to 6 machines of up to 9 GPUs in slots of up to 4, over up to 3 racks.
pub(crate) fn topologies() -> impl Strategy<Value = Arc<Topology>> {
    let machine = (0..3_u32, 1..10_u32, 1..5_u32);
    proptest::collection::vec(machine, 1..7).prop_map(|machines| {
        let spec = |(rack, gpus, slot_gpus)| MachineSpec { rack, gpus, slot_gpus };
        let specs: Vec<_> = machines.into_iter().map(spec).collect();
        Arc::new(Topology::new(&specs).expect("every machine has GPUs"))
    })
}

/// A cluster of which some GPUs are free: a number a slot, cut to the slot's size.
pub(crate) fn free_sets() -> impl Strategy<Value = FreeSet> {
    (topologies(), proptest::collection::vec(0..5_u32, 64)).prop_map(|(topology, counts)| {
        let slots = (0..topology.slots() as u32).map(SlotId);
        let some = slots.zip(counts).map(|(slot, n)| (slot, n.min(topology.slot_gpus(slot))));
        let bundle: Bundle = some.collect();
        FreeSet::of(topology, &bundle)
    })
}

/// Free GPUs a machine and a rack, counted slot by slot.
fn counted(free: &FreeSet) -> (Vec<u32>, Vec<u32>) {
    let topology = free.topology();
    let mut machines = vec![0; topology.machines()];
    let mut racks = vec![0; topology.racks()];
    for (slot, gpus) in free.to_bundle().iter() {
        let machine = topology.machine_of(slot);
        machines[machine.index()] += gpus;
        racks[topology.rack_of(machine).index()] += gpus;
    }
    (machines, racks)
}

/// The position of the smallest count that is at least `gpus`; ties: the first.
fn tightest(counts: &[u32], gpus: u32) -> Option<u32> {
    let fitting = counts.iter().enumerate().filter(|(_, free)| **free >= gpus.max(1));
    fitting.min_by_key(|(_, free)| **free).map(|(at, _)| at as u32)
}

proptest! {
    #[test]
    fn the_index_agrees_with_a_count(
        mut free in free_sets(),
        moves in proptest::collection::vec((0..64_usize, 0..5_u32, any::<bool>()), 0..20),
    ) {
        for (slot, gpus, take) in moves {
            let slot = SlotId((slot % free.topology().slots()) as u32);
            let most = if take { free.slot(slot) } else { free.topology().slot_gpus(slot) - free.slot(slot) };
            let bundle: Bundle = [(slot, gpus.min(most))].into_iter().collect();
            if take { free.take(&bundle) } else { free.give(&bundle) }

            let (machines, racks) = counted(&free);
            let slots: Vec<u32> = (0..free.topology().slots() as u32).map(|s| free.slot(SlotId(s))).collect();
            prop_assert_eq!(free.total(), slots.iter().sum::<u32>());
            for (at, gpus) in machines.iter().enumerate() {
                prop_assert_eq!(free.machine(MachineId(at as u32)), *gpus);
            }
            for (at, gpus) in racks.iter().enumerate() {
                prop_assert_eq!(free.rack(RackId(at as u32), TypeSet::ALL), *gpus);
            }
            for gpus in 1..12 {
                prop_assert_eq!(free.tightest_slot(gpus, TypeSet::ALL), tightest(&slots, gpus).map(SlotId));
                prop_assert_eq!(free.tightest_machine(gpus, TypeSet::ALL), tightest(&machines, gpus).map(MachineId));
                prop_assert_eq!(free.tightest_rack(gpus, TypeSet::ALL), tightest(&racks, gpus).map(RackId));
            }
            let largest = |counts: &[u32]| counts.iter().copied().max().unwrap_or(0);
            prop_assert_eq!(free.largest(Locality::Slot, TypeSet::ALL), largest(&slots));
            prop_assert_eq!(free.largest(Locality::Machine, TypeSet::ALL), largest(&machines));
            prop_assert_eq!(free.largest(Locality::Rack, TypeSet::ALL), largest(&racks));
            prop_assert_eq!(free.largest(Locality::Cluster, TypeSet::ALL), free.total());
        }
    }

    #[test]
    fn locality_is_the_smallest_part_that_holds_every_slot(free in free_sets()) {
        let (topology, bundle) = (free.topology(), free.to_bundle());
        let slots: Vec<SlotId> = bundle.iter().map(|(slot, _)| slot).collect();
        let same = |of: &dyn Fn(SlotId) -> u32| slots.windows(2).all(|pair| of(pair[0]) == of(pair[1]));
        let rack = |slot| topology.rack_of(topology.machine_of(slot)).0;
        let expected = match () {
            () if slots.len() <= 1 => Locality::Slot,
            () if same(&|slot| topology.machine_of(slot).0) => Locality::Machine,
            () if same(&rack) => Locality::Rack,
            () => Locality::Cluster,
        };
        prop_assert_eq!(topology.locality(&bundle), expected);
    }
}
