//! Where gangs go: within what is free, as many as asked, as close as asked.

use proptest::prelude::*;
use themis_core::cluster::{Bundle, Fill, FreeSet, Host, Locality, Near, fit_by};
use themis_core::{MachineId, SlotId};

use crate::cluster::{free_sets, needs, usable};

/// A cluster with some GPUs free, and a job that holds some of the others (perhaps none).
pub(crate) fn with_held() -> impl Strategy<Value = (FreeSet, Bundle)> {
    (free_sets(), proptest::collection::vec(0..3_u32, 64), any::<bool>(), 0..64_usize).prop_map(
        |(free, counts, holds, first)| {
            let slots = free.topology().slots();
            let mut held = Bundle::new();
            for (at, gpus) in counts.into_iter().take(3).enumerate().filter(|_| holds) {
                let slot = SlotId(((first + at) % slots) as u32);
                held.add(slot, gpus.min(free.topology().slot_gpus(slot) - free.slot(slot)));
            }
            (free, held)
        },
    )
}

/// Most GPUs that a need can use within one part of a locality with all that is held.
pub(crate) fn within(free: &FreeSet, held: &Bundle, level: Locality, need: Host) -> u32 {
    let topology = free.topology();
    let part = |slot: SlotId| {
        let machine = topology.machine_of(slot);
        match level {
            Locality::Slot => slot.0,
            Locality::Machine => machine.0,
            Locality::Rack => topology.rack_of(machine).0,
            Locality::Cluster => 0,
        }
    };
    let parts: Vec<u32> = held.iter().map(|(slot, _)| part(slot)).collect();
    let open = free.to_bundle();
    let machines = (0..topology.machines() as u32).map(MachineId);
    let of_machine = |machine, of: u32| {
        let slots = topology.slots_of(machine).filter(|slot| part(*slot) == of);
        usable(free, machine, need).min(slots.map(|slot| free.slot(slot)).sum())
    };
    let sum = |of: u32| machines.clone().map(|machine| of_machine(machine, of)).sum();
    match parts.first() {
        Some(first) if parts.iter().all(|other| other == first) => sum(*first),
        Some(_) => 0,
        None => open.iter().map(|(slot, _)| sum(part(slot))).max().unwrap_or(0),
    }
}

proptest! {
    #[test]
    fn a_fit_is_free_whole_and_close_enough(
        (free, held) in with_held(),
        gpus in 0..12_u32,
        level in proptest::sample::select(Locality::ALL.to_vec()),
        liked in 0..64_usize,
        need in needs(),
        fill in proptest::sample::select(vec![Fill::Fullest, Fill::Emptiest]),
    ) {
        let some = SlotId((liked % free.topology().slots()) as u32);
        let previous: Bundle = [(some, 2)].into_iter().collect();
        let near = Near { held: &held, previous: &previous };
        let found = fit_by(&free.open_to(need), gpus, level.into(), near, fill);
        if let Some(bundle) = &found {
            prop_assert_eq!(bundle.gpus(), gpus);
            prop_assert!(free.allows(need, bundle));
            prop_assert!(free.topology().locality(&held.union(bundle)) <= level);
        }
        let there_is_room = gpus > 0 && within(&free, &held, level, need) >= gpus;
        prop_assert_eq!(found.is_some(), there_is_room);
    }
}
