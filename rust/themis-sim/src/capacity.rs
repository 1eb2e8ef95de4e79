//! What the cluster has: machines that join, leave, fail and are repaired.
//!
//! The topology has every GPU that a machine ever has. Those that it lacks at present are withdrawn
//! (`tenure.rs`): on no offer, in no free count.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::SimError;
use crate::failures::Failures;
use crate::quarantine::Quarantine;
use crate::settings::{LATEST_US, Settings};
use crate::workload::Workload;
use themis_core::MachineId;
use themis_core::app::Speeds;
use themis_core::cluster::{Host, Topology, TypeSet};

/// Why a machine's number of GPUs changes, and what becomes of those in use that it loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ChangeCause {
    /// They leave when their leases end (without leases: when their jobs do) and are granted to
    /// nobody else until then.
    Planned = 0,
    /// They leave at once; their jobs save their state.
    Evicted = 1,
    /// They are gone at once; their jobs go back to their last checkpoints.
    Failure = 2,
    /// A machine is back after a failure.
    Repair = 3,
}

/// From an instant on a machine has so many GPUs, those of the lowest numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// When; at 0 or before, it is so from the start.
    pub at_us: i64,
    /// The machine's number.
    pub machine: u32,
    /// GPUs that it has from then on.
    pub gpus: u32,
    /// Why.
    pub cause: ChangeCause,
}

/// A cluster's shape and what is known beforehand of its capacity over time.
#[derive(Clone, Debug)]
pub struct Cluster {
    topology: Arc<Topology>,
    /// By time; those of one instant in the order in which they were given.
    changes: Arc<[Change]>,
    sizes: Sizes,
}

/// (from when, GPUs of each type), by time.
type Sizes = Arc<[(i64, Vec<u32>)]>;

impl Cluster {
    /// The same shape with changes of its capacity; a machine has all of its GPUs until its first.
    ///
    /// # Errors
    /// [`SimError::Capacity`] for an unknown machine, more GPUs than it has in the topology, or an
    /// instant beyond the clock.
    pub fn with_changes(&self, changes: &[Change]) -> Result<Self, SimError> {
        for (row, change) in changes.iter().enumerate() {
            let refuse = |field, value: String, expected: String| {
                Err(SimError::Capacity { row, field, value, expected })
            };
            if change.machine as usize >= self.topology.machines() {
                let expected = format!("less than {}", self.topology.machines());
                return refuse("machine", change.machine.to_string(), expected);
            }
            let most = self.topology.machine_gpus(MachineId(change.machine));
            if change.gpus > most {
                return refuse("gpus", change.gpus.to_string(), format!("0 to {most}"));
            }
            if !(-LATEST_US..LATEST_US).contains(&change.at_us) {
                return refuse("at", change.at_us.to_string(), "an instant of the clock".into());
            }
        }
        let mut changes = changes.to_vec();
        changes.sort_by_key(|change| change.at_us);
        let sizes = sizes(&self.topology, &changes, Host::NONE);
        Ok(Self { topology: Arc::clone(&self.topology), changes: changes.into(), sizes })
    }

    /// The shape: all that there ever is.
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }
}

/// A cluster that has all of its machines at all times.
impl From<Topology> for Cluster {
    fn from(topology: Topology) -> Self {
        let sizes = sizes(&topology, &[], Host::NONE);
        Self { topology: Arc::new(topology), changes: [].into(), sizes }
    }
}

fn gpus_of(sizes: &[u32], types: TypeSet) -> u32 {
    let named = sizes.iter().enumerate().filter(|(at, _)| types.has(*at));
    named.map(|(_, gpus)| gpus).sum()
}

/// GPUs by type that a need can use, from each instant on at which they change.
fn sizes(topology: &Topology, changes: &[Change], need: Host) -> Sizes {
    let machines = (0..topology.machines() as u32).map(MachineId);
    let usable = |machine, gpus| topology.serves(machine, gpus, need);
    let all = machines.clone().map(|machine| usable(machine, topology.machine_gpus(machine)));
    let mut has: Vec<u32> = all.collect();
    let mut now = vec![0; topology.types()];
    for machine in machines {
        now[topology.type_of(machine)] += has[machine.index()];
    }
    let mut sizes = Vec::new();
    for at_once in changes.chunk_by(|a, b| a.at_us == b.at_us || b.at_us <= 0) {
        let at_us = at_once[0].at_us;
        if sizes.is_empty() && at_once[at_once.len() - 1].at_us > 0 {
            sizes.push((i64::MIN, now.clone()));
        }
        for change in at_once {
            let machine = MachineId(change.machine);
            let gpus = usable(machine, change.gpus);
            let before = std::mem::replace(&mut has[machine.index()], gpus);
            let size = &mut now[topology.type_of(machine)];
            *size = *size - before + gpus;
        }
        sizes.push((at_us, now.clone()));
    }
    if sizes.is_empty() {
        sizes.push((i64::MIN, now));
    }
    sizes.into()
}

/// The capacity during a run.
#[derive(Clone, Debug)]
pub(crate) struct Capacity {
    cluster: Cluster,
    /// Sizes for jobs that need something of their machines.
    usable: BTreeMap<Host, Sizes>,
    next: usize,
    /// GPUs by machine, were none down.
    planned: Vec<u32>,
    down: Vec<bool>,
    /// GPUs by machine at present.
    has: Vec<u32>,
    failures: Option<Failures>,
    quarantine: Option<Quarantine>,
}

impl Capacity {
    pub(crate) fn new(cluster: &Cluster, workload: &Workload, settings: &Settings) -> Self {
        let topology = &cluster.topology;
        let machines = topology.machines();
        let ids = (0..machines as u32).map(MachineId);
        let all: Vec<u32> = ids.map(|machine| topology.machine_gpus(machine)).collect();
        let mut usable = BTreeMap::new();
        for need in workload.jobs.iter().map(|job| workload.needs_of(job)) {
            if topology.limits(need) {
                usable.entry(need).or_insert_with(|| sizes(topology, &cluster.changes, need));
            }
        }
        Self {
            usable,
            next: 0,
            planned: all.clone(),
            down: vec![false; machines],
            has: all,
            failures: Failures::new(machines, settings),
            quarantine: Quarantine::new(machines, settings),
            cluster: cluster.clone(),
        }
    }

    /// Whether anything is known beforehand to change.
    pub(crate) fn changes(&self) -> bool {
        !self.cluster.changes.is_empty()
    }

    /// When something changes next.
    pub(crate) fn next_us(&self) -> Option<i64> {
        let planned = self.cluster.changes.get(self.next).map(|change| change.at_us);
        let by_chance = self.failures.as_ref().map(Failures::next_us);
        let rested = self.quarantine.as_ref().and_then(Quarantine::next_us);
        planned.into_iter().chain(by_chance).chain(rested).min()
    }

    /// Most GPUs for one bundle of a job of these speeds and needs at one time from an instant on,
    /// but for failures by chance.
    pub(crate) fn most_from(&self, at_us: i64, speeds: &Speeds, need: Host) -> u32 {
        self.bundles_from(at_us, speeds, need).max().unwrap_or(0)
    }

    /// Whether that is a gang or more; soon found where it is so at present.
    pub(crate) fn has_room_from(&self, at_us: i64, speeds: &Speeds, need: Host, gang: u32) -> bool {
        self.bundles_from(at_us, speeds, need).any(|gpus| gpus >= gang)
    }

    /// The most GPUs for one bundle of such a job, at each time from an instant on.
    #[inline]
    fn bundles_from<'a>(
        &'a self,
        at_us: i64,
        speeds: &'a Speeds,
        need: Host,
    ) -> impl Iterator<Item = u32> + 'a {
        let all = &self.cluster.sizes;
        let sizes =
            if self.usable.is_empty() { all } else { self.usable.get(&need).unwrap_or(all) };
        let next = sizes.partition_point(|(from_us, _)| *from_us <= at_us);
        let later = sizes[next.saturating_sub(1)..].iter();
        later.map(|(_, sizes)| {
            let pools = speeds.pools().iter().map(|pool| gpus_of(sizes, pool.types));
            pools.max().unwrap_or(0)
        })
    }

    /// Takes the next change that is due by now: machines that have rested, plans in their order,
    /// then chance. A machine that is left alone after its repair gets no GPUs back until it has
    /// rested.
    pub(crate) fn pop(&mut self, now_us: i64) -> Option<Change> {
        if let Some(change) = self.pop_rested(now_us) {
            return Some(self.made(change));
        }
        let change = self.pop_planned(now_us).or_else(|| self.pop_by_chance(now_us))?;
        let Some(quarantine) = &mut self.quarantine else { return Some(self.made(change)) };
        match change.cause {
            ChangeCause::Failure => quarantine.failed(change.machine, change.at_us),
            ChangeCause::Repair => _ = quarantine.holds_back(change.machine, change.at_us),
            ChangeCause::Planned | ChangeCause::Evicted => {}
        }
        let rests = quarantine.is_resting(change.machine);
        let most = if rests { self.has[change.machine as usize] } else { u32::MAX };
        Some(self.made(Change { gpus: change.gpus.min(most), ..change }))
    }

    fn made(&mut self, change: Change) -> Change {
        self.has[change.machine as usize] = change.gpus;
        change
    }

    fn pop_rested(&mut self, now_us: i64) -> Option<Change> {
        let (at_us, machine) = self.quarantine.as_mut()?.pop(now_us)?;
        Some(Change { at_us, machine, gpus: self.meant(machine), cause: ChangeCause::Repair })
    }

    fn pop_planned(&mut self, now_us: i64) -> Option<Change> {
        let change = self.cluster.changes.get(self.next).copied();
        let change = change.filter(|change| change.at_us <= now_us)?;
        self.next += 1;
        self.planned[change.machine as usize] = change.gpus;
        Some(Change { gpus: self.meant(change.machine), ..change })
    }

    fn pop_by_chance(&mut self, now_us: i64) -> Option<Change> {
        let (at_us, machine) = self.failures.as_mut()?.pop(now_us)?;
        let down = &mut self.down[machine as usize];
        *down = !*down;
        let cause = if *down { ChangeCause::Failure } else { ChangeCause::Repair };
        Some(Change { at_us, machine, gpus: self.meant(machine), cause })
    }

    /// GPUs that a machine has by plan and chance.
    fn meant(&self, machine: u32) -> u32 {
        if self.down[machine as usize] { 0 } else { self.planned[machine as usize] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use themis_core::cluster::MachineSpec;

    fn cluster() -> Cluster {
        let machine = MachineSpec { rack: 0, gpus: 4, slot_gpus: 2 };
        Cluster::from(Topology::new(&[machine; 3]).expect("valid"))
    }

    fn change(at_us: i64, machine: u32, gpus: u32) -> Change {
        Change { at_us, machine, gpus, cause: ChangeCause::Planned }
    }

    #[test]
    fn the_most_that_is_still_to_come_is_known() {
        let rows = [change(-5, 0, 0), change(0, 1, 2), change(10, 0, 4), change(20, 2, 0)];
        let cluster = cluster().with_changes(&rows).expect("valid");
        // 6 GPUs at first, 10 from 10 on, 6 from 20 on.
        let most = |cluster: &Cluster, at_us| {
            let capacity = Capacity::new(cluster, &Workload::default(), &Settings::default());
            let most = capacity.most_from(at_us, &Speeds::ALIKE, Host::NONE);
            let room = |gang| capacity.has_room_from(at_us, &Speeds::ALIKE, Host::NONE, gang);
            assert!(room(most) && !room(most + 1));
            most
        };
        let found = [0, 9, 10, 19, 20, 99].map(|at_us| most(&cluster, at_us));
        assert_eq!(found, [10, 10, 10, 10, 6, 6]);
        assert_eq!(most(&cluster.with_changes(&[]).expect("valid"), 0), 12);
    }

    #[test]
    fn changes_come_in_order_and_odd_ones_are_refused() {
        let rows = [change(30, 1, 1), change(10, 0, 0), change(10, 0, 3)];
        let cluster = cluster();
        let changed = cluster.with_changes(&rows).expect("valid");
        let mut capacity = Capacity::new(&changed, &Workload::default(), &Settings::default());
        assert_eq!(capacity.next_us(), Some(10));
        let due: Vec<u32> = std::iter::from_fn(|| capacity.pop(20)).map(|c| c.gpus).collect();
        assert_eq!((due, capacity.next_us()), (vec![0, 3], Some(30)));
        for bad in [change(0, 3, 1), change(0, 0, 5), change(LATEST_US, 0, 1)] {
            assert!(matches!(cluster.with_changes(&[bad]), Err(SimError::Capacity { .. })));
        }
    }

    #[test]
    fn a_machine_that_failed_twice_gets_its_gpus_back_later() {
        let of = |at_us, gpus, cause| Change { at_us, machine: 0, gpus, cause };
        let rows = [
            of(10, 2, ChangeCause::Failure), // one slot of two
            of(20, 4, ChangeCause::Repair),
            of(30, 2, ChangeCause::Failure),
            of(40, 4, ChangeCause::Repair), // held back until 140
            of(50, 1, ChangeCause::Planned),
            of(60, 3, ChangeCause::Planned),
        ];
        let changed = cluster().with_changes(&rows).expect("valid");
        let settings =
            Settings { quarantine_after: Some(2), quarantine_us: 100, ..Settings::default() };
        let mut capacity = Capacity::new(&changed, &Workload::default(), &settings);
        let played: Vec<(i64, u32)> = std::iter::from_fn(|| capacity.pop(capacity.next_us()?))
            .map(|change| (change.at_us, change.gpus))
            .collect();
        assert_eq!(played, [(10, 2), (20, 4), (30, 2), (40, 2), (50, 1), (60, 1), (140, 3)]);
    }
}
