//! Where a gang goes: the GPUs of a bundle, given how many, how close, and near what.
//!
//! One rule for bids, grants and leftovers, so that what was bid is what runs. Cost: O(slots of
//! the parts touched) after the look-ups of [`FreeSet`].

use smallvec::SmallVec;

use super::buckets::fullest_then_tightest;
use crate::cluster::{Bundle, FreeSet, Locality, TypeSet, Within};
use crate::ids::{MachineId, RackId, SlotId};

/// What a job already has a claim to when GPUs are found for it.
#[derive(Clone, Copy, Debug)]
pub struct Near<'a> {
    /// GPUs that it keeps: the new ones are judged, and found, together with these.
    pub held: &'a Bundle,
    /// GPUs that it had until now and that are on offer again: the same ones need no switch.
    pub previous: &'a Bundle,
}

/// Which machines of a rack go first for a bundle that none of them can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// The fullest: the bundle lies on as few as can be.
    Fullest,
    /// The emptiest: the others stay whole for those who need a machine to themselves.
    Emptiest,
}

/// Finds `gpus` free GPUs, of the types of `within`, such that together with `near.held` they lie
/// within one part of its level.
///
/// The previous GPUs are kept when they serve; otherwise the smallest locality that fits is used,
/// and within it the tightest part (best fit), lowest number first; in a rack, the fullest machines.
pub fn fit(free: &FreeSet, gpus: u32, within: impl Into<Within>, near: Near<'_>) -> Option<Bundle> {
    fit_by(free, gpus, within.into(), near, Fill::Fullest)
}

/// The same with the machines of a rack in a given order.
#[inline]
pub fn fit_by(
    free: &FreeSet,
    gpus: u32,
    within: Within,
    near: Near<'_>,
    fill: Fill,
) -> Option<Bundle> {
    let Within { level, types } = within;
    if gpus == 0 || gpus > free.total() {
        return None;
    }
    if !near.held.is_empty() {
        return fit_around(free, gpus, within, near, fill);
    }
    let previous = near.previous;
    let topology = free.topology();
    let serves = previous.gpus() == gpus
        && topology.locality(previous) <= level
        && (types == TypeSet::ALL || types.includes(topology.types_of(previous)));
    if serves && free.has(previous) {
        return Some(previous.clone());
    }
    Locality::ALL.into_iter().take_while(|finer| *finer <= level).find_map(|finer| match finer {
        Locality::Slot => fit_slot(free, gpus, types, previous),
        Locality::Machine => fit_machine(free, gpus, types, previous),
        Locality::Rack => fit_rack(free, gpus, types, previous, fill),
        Locality::Cluster => fit_cluster(free, gpus, types, previous, fill),
    })
}

/// Finds `gpus` free GPUs, of the types of `within`, in one part of its level, by its number;
/// `None` when there are not so many. Machines and slots of held or previous GPUs go first.
pub fn fit_in(
    free: &FreeSet,
    gpus: u32,
    within: Within,
    part: u32,
    near: Near<'_>,
) -> Option<Bundle> {
    let Within { level, types } = within;
    let liked = if near.held.is_empty() { near.previous } else { near.held };
    match level {
        Locality::Slot => {
            let slot = SlotId(part);
            (free.slot(slot) >= gpus).then(|| std::iter::once((slot, gpus)).collect())
        }
        Locality::Machine => {
            let machine = MachineId(part);
            (free.machine(machine) >= gpus).then(|| fill_machine(free, machine, gpus, liked))
        }
        Locality::Rack => {
            let rack = RackId(part);
            let by = Fill::Fullest;
            (free.rack(rack, types) >= gpus).then(|| fill_rack(free, rack, gpus, types, liked, by))
        }
        Locality::Cluster => fit_cluster(free, gpus, types, liked, Fill::Fullest),
    }
}

/// Extends what a job holds: the anchor is the slot, machine or rack of the held GPUs.
fn fit_around(
    free: &FreeSet,
    gpus: u32,
    within: Within,
    near: Near<'_>,
    fill: Fill,
) -> Option<Bundle> {
    let Within { level, types } = within;
    let topology = free.topology();
    let (slot, _) = near.held.iter().next()?;
    let machine = topology.machine_of(slot);
    let rack = topology.rack_of(machine);
    let now = topology.locality(near.held);
    Locality::ALL.into_iter().filter(|l| *l >= now && *l <= level).find_map(|l| match l {
        Locality::Slot => (free.slot(slot) >= gpus).then(|| [(slot, gpus)].into_iter().collect()),
        Locality::Machine => {
            (free.machine(machine) >= gpus).then(|| fill_machine(free, machine, gpus, near.held))
        }
        Locality::Rack => (free.rack(rack, types) >= gpus)
            .then(|| fill_rack(free, rack, gpus, types, near.held, fill)),
        Locality::Cluster => fit_cluster(free, gpus, types, near.held, fill),
    })
}

fn fit_slot(free: &FreeSet, gpus: u32, types: TypeSet, liked: &Bundle) -> Option<Bundle> {
    let topology = free.topology();
    let fits =
        |slot: &SlotId| free.slot(*slot) >= gpus && free.is_of(topology.machine_of(*slot), types);
    let known = liked.iter().map(|(slot, _)| slot).find(fits);
    let slot = known.or_else(|| free.tightest_slot(gpus, types))?;
    Some([(slot, gpus)].into_iter().collect())
}

fn fit_machine(free: &FreeSet, gpus: u32, types: TypeSet, liked: &Bundle) -> Option<Bundle> {
    let mut machines = liked.iter().map(|(slot, _)| free.topology().machine_of(slot));
    let fits = |machine: &MachineId| free.machine(*machine) >= gpus && free.is_of(*machine, types);
    let known = machines.find(fits);
    let machine = known.or_else(|| free.tightest_machine(gpus, types))?;
    Some(fill_machine(free, machine, gpus, liked))
}

fn fit_rack(
    free: &FreeSet,
    gpus: u32,
    types: TypeSet,
    liked: &Bundle,
    fill: Fill,
) -> Option<Bundle> {
    let topology = free.topology();
    let mut racks = liked.iter().map(|(slot, _)| topology.rack_of(topology.machine_of(slot)));
    let known = racks.find(|rack| free.rack(*rack, types) >= gpus);
    let rack = known.or_else(|| free.tightest_rack(gpus, types))?;
    Some(fill_rack(free, rack, gpus, types, liked, fill))
}

/// Liked slots first, then the fewest slots: fullest first, the last one by best fit.
fn fill_machine(free: &FreeSet, machine: MachineId, gpus: u32, liked: &Bundle) -> Bundle {
    let mut bundle = Bundle::new();
    let mut need = gpus;
    let left = |bundle: &Bundle, slot: SlotId| free.slot(slot) - bundle.in_slot(slot);
    while need > 0 {
        let open = free.topology().slots_of(machine).filter(|slot| left(&bundle, *slot) > 0);
        let best = open.min_by_key(|slot| {
            (liked.in_slot(*slot) == 0, fullest_then_tightest(left(&bundle, *slot), need))
        });
        let slot = best.expect("invariant: the machine has the GPUs");
        let taken = need.min(left(&bundle, slot));
        bundle.add(slot, taken);
        need -= taken;
    }
    bundle
}

/// Liked machines first, then the fewest machines: fullest first, the last one by best fit; or
/// emptiest first.
fn fill_rack(
    free: &FreeSet,
    rack: RackId,
    gpus: u32,
    types: TypeSet,
    liked: &Bundle,
    fill: Fill,
) -> Bundle {
    let topology = free.topology();
    let is_liked = |machine| liked.iter().any(|(slot, _)| topology.machine_of(slot) == machine);
    let mut open: Vec<(bool, MachineId)> = topology
        .machines_of(rack)
        .iter()
        .filter(|machine| free.machine(**machine) > 0 && free.is_of(**machine, types))
        .map(|machine| (!is_liked(*machine), *machine))
        .collect();
    let mut bundle = Bundle::new();
    let mut need = gpus;
    while need > 0 {
        let each = open.iter().enumerate();
        let best = match fill {
            Fill::Fullest => each.min_by_key(|(_, (unliked, machine))| {
                (*unliked, fullest_then_tightest(free.machine(*machine), need))
            }),
            Fill::Emptiest => {
                each.min_by_key(|(_, (unliked, machine))| (*unliked, free.machine(*machine)))
            }
        };
        let (at, (_, machine)) = best.expect("invariant: the rack has the GPUs");
        let machine = *machine;
        let taken = need.min(free.machine(machine));
        bundle.merge(&fill_machine(free, machine, taken, liked));
        need -= taken;
        open.remove(at);
    }
    bundle
}

/// Liked racks first, then the fewest racks: freest first, the last one by best fit.
fn fit_cluster(
    free: &FreeSet,
    gpus: u32,
    types: TypeSet,
    liked: &Bundle,
    fill: Fill,
) -> Option<Bundle> {
    if gpus > free.total_of(types) {
        return None;
    }
    let topology = free.topology();
    let racks = liked.iter().map(|(slot, _)| topology.rack_of(topology.machine_of(slot)));
    let mut liked_racks: SmallVec<[RackId; 2]> =
        racks.filter(|rack| free.rack(*rack, types) > 0).collect();
    liked_racks.sort_unstable();
    liked_racks.dedup();
    let mut taken: SmallVec<[RackId; 8]> = SmallVec::new();
    let mut bundle = Bundle::new();
    let mut need = gpus;
    while need > 0 {
        let open = liked_racks.iter().filter(|rack| !taken.contains(rack));
        let best = open.min_by_key(|rack| fullest_then_tightest(free.rack(**rack, types), need));
        let rack = best.copied().or_else(|| free.next_rack(need, types, &taken));
        let rack = rack.expect("invariant: the cluster has the GPUs");
        let gpus = need.min(free.rack(rack, types));
        bundle.merge(&fill_rack(free, rack, gpus, types, liked, fill));
        need -= gpus;
        taken.push(rack);
    }
    Some(bundle)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cluster::{MachineSpec, Topology};

    const NONE: Bundle = Bundle::EMPTY;

    fn cluster() -> FreeSet {
        let spec = |rack, gpus| MachineSpec { rack, gpus, slot_gpus: 2 };
        let specs = [spec(0, 4), spec(0, 2), spec(1, 4), spec(1, 4)];
        FreeSet::full(Arc::new(Topology::new(&specs).expect("valid")))
    }

    fn fresh(free: &FreeSet, gpus: u32, level: Locality) -> Option<Vec<(u32, u32)>> {
        let near = Near { held: &NONE, previous: &NONE };
        fit(free, gpus, level, near).map(|b| b.iter().map(|(s, n)| (s.0, n)).collect())
    }

    #[test]
    fn the_smallest_locality_and_the_tightest_part_win() {
        let mut free = cluster();
        free.take(&[(SlotId(4), 1)].into_iter().collect());
        assert_eq!(fresh(&free, 1, Locality::Cluster), Some(vec![(4, 1)]));
        assert_eq!(fresh(&free, 3, Locality::Cluster), Some(vec![(3, 2), (4, 1)]));
        assert_eq!(fresh(&free, 3, Locality::Slot), None);
        assert_eq!(fresh(&free, 5, Locality::Machine), None);
        assert_eq!(fresh(&free, 5, Locality::Rack), Some(vec![(0, 2), (1, 2), (2, 1)]));
        assert_eq!(fresh(&free, 14, Locality::Cluster), None);
        assert_eq!(fresh(&free, 13, Locality::Cluster).map(|b| b.len()), Some(7));
    }

    #[test]
    fn emptiest_machines_first_leave_the_others_whole() {
        let spec = |gpus| MachineSpec { rack: 0, gpus, slot_gpus: 4 };
        let topology = Topology::new(&[3, 1, 3, 1].map(spec)).expect("valid");
        let free = FreeSet::full(Arc::new(topology));
        let near = Near { held: &NONE, previous: &NONE };
        let lies = |fill| {
            let bundle = fit_by(&free, 5, Locality::Rack.into(), near, fill).expect("fits");
            bundle.iter().map(|(slot, n)| (slot.0, n)).collect::<Vec<_>>()
        };
        assert_eq!(lies(Fill::Fullest), [(0, 3), (2, 2)]);
        assert_eq!(lies(Fill::Emptiest), [(0, 3), (1, 1), (3, 1)]);
    }

    #[test]
    fn previous_gpus_are_kept_when_they_serve() {
        let free = cluster();
        let previous: Bundle = [(SlotId(1), 1), (SlotId(5), 1)].into_iter().collect();
        let near = Near { held: &NONE, previous: &previous };
        assert_eq!(fit(&free, 2, Locality::Cluster, near).as_ref(), Some(&previous));
        let moved = fit(&free, 2, Locality::Slot, near).expect("fits");
        assert_eq!(moved.iter().collect::<Vec<_>>(), vec![(SlotId(1), 2)]);
    }

    #[test]
    fn new_gpus_are_found_around_those_held() {
        let mut free = cluster();
        let held: Bundle = [(SlotId(5), 1)].into_iter().collect();
        free.take(&held);
        let near = Near { held: &held, previous: &NONE };
        let at = |n, level| fit(&free, n, level, near).map(|b| b.iter().collect::<Vec<_>>());
        assert_eq!(at(1, Locality::Slot), Some(vec![(SlotId(5), 1)]));
        assert_eq!(at(2, Locality::Slot), None);
        assert_eq!(at(2, Locality::Machine), Some(vec![(SlotId(5), 1), (SlotId(6), 1)]));
        assert_eq!(at(4, Locality::Machine), None);
        let rack = at(4, Locality::Rack).expect("fits");
        assert!(rack.iter().all(|(slot, _)| slot.0 >= 3));
    }
}
