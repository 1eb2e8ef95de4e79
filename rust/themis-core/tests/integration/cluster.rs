//! Random clusters, and the index of free GPUs against a plain list.

use std::sync::Arc;

use proptest::prelude::*;
use themis_core::cluster::{Bundle, FreeSet, Host, Locality, MachineSpec, Topology, TypeSet};
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

/// A cluster of which some GPUs are free: a number a slot, cut to the slot's size; and of whose
/// machines' host resources something is left, where they are limited.
pub(crate) fn free_sets() -> impl Strategy<Value = FreeSet> {
    let host = proptest::collection::vec((0..20_i64, 0..20_i64), 6);
    let host = proptest::option::of(host);
    (topologies(), proptest::collection::vec(0..5_u32, 64), host).prop_map(
        |(topology, counts, host)| {
            let slots = (0..topology.slots() as u32).map(SlotId);
            let some = slots.zip(counts).map(|(slot, n)| (slot, n.min(topology.slot_gpus(slot))));
            let bundle: Bundle = some.collect();
            let Some(host) = host else { return FreeSet::of(topology, &bundle) };
            let host = host.iter().map(|(cpu, memory)| Host::new(*cpu, *memory));
            let host: Vec<Host> = host.take(topology.machines()).collect();
            let topology = Topology::clone(&topology).with_host(&host).expect("one a machine");
            FreeSet::of(Arc::new(topology), &bundle)
        },
    )
}

/// What each GPU of a job needs: nothing, or a little of one resource or both.
pub(crate) fn needs() -> impl Strategy<Value = Host> {
    let some = || proptest::sample::select(vec![0, 0, 1, 3, 7]);
    (some(), some()).prop_map(|(cpu, memory)| Host::new(cpu, memory))
}

/// GPUs of a machine that a need can use, counted one by one.
pub(crate) fn usable(free: &FreeSet, machine: MachineId, need: Host) -> u32 {
    let gpus = free.topology().slots_of(machine).map(|slot| free.slot(slot)).sum();
    let Some(host) = free.host().get(machine.index()) else { return gpus };
    let enough = |gpus: &u32| {
        let pairs = need.amounts().into_iter().zip(host.amounts());
        pairs.into_iter().all(|(need, there)| need * i64::from(*gpus) <= there)
    };
    (0..=gpus).take_while(enough).last().unwrap_or(0)
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
    fn a_need_sees_what_it_can_use(free in free_sets(), need in needs()) {
        let topology = free.topology();
        let open = free.open_to(need);
        let machines = (0..topology.machines() as u32).map(MachineId);
        let usable: Vec<u32> = machines.clone().map(|machine| usable(&free, machine, need)).collect();
        let mut racks = vec![0; topology.racks()];
        for (machine, gpus) in machines.zip(&usable) {
            racks[topology.rack_of(machine).index()] += gpus;
            prop_assert_eq!(open.machine(machine), *gpus);
            for slot in topology.slots_of(machine) {
                prop_assert_eq!(open.slot(slot), free.slot(slot).min(*gpus));
            }
        }
        for (rack, gpus) in (0..).map(RackId).zip(&racks) {
            prop_assert_eq!(open.rack(rack, TypeSet::ALL), *gpus);
        }
        prop_assert_eq!(open.total(), usable.iter().sum::<u32>());
        for gpus in 1..12 {
            let machine = tightest(&usable, gpus).map(MachineId);
            prop_assert_eq!(open.tightest_machine(gpus, TypeSet::ALL), machine);
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
