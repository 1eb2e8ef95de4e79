//! Host resources: what GPUs need of their machine beside themselves, such as CPU cores and memory.
//!
//! A free GPU on a machine without free cores is of no use to whom needs some. Everything that finds
//! GPUs asks one question: what of a free set can this need use ([`FreeSet::open_to`])? Of a machine
//! that is min(free GPUs, floor(free host / need a GPU)), of whichever slots. Where no machine is
//! limited, or nothing is needed, the answer is the set itself, at no cost; else it costs O(slots).

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::cluster::{Bundle, FreeSet, Topology, TypeSet};
use crate::error::CoreError;
use crate::ids::MachineId;

/// How many host resources there are.
const KINDS: usize = 2;

/// An amount of each host resource, in whole units of the caller's choice: what a machine has, or
/// what a GPU needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host([i64; KINDS]);

impl Host {
    /// Nothing of any.
    pub const NONE: Self = Self([0; KINDS]);
    /// An amount for a machine that is not limited in a resource: no sum of needs comes near it.
    pub const UNLIMITED: i64 = 1 << 62;
    /// The most that a GPU may need of a resource.
    pub const MOST_A_GPU: i64 = 1 << 37;

    /// CPU and memory.
    pub const fn new(cpu: i64, memory: i64) -> Self {
        Self([cpu, memory])
    }

    /// CPU and memory.
    pub const fn amounts(self) -> [i64; KINDS] {
        self.0
    }

    /// Whether it is nothing of any.
    #[inline]
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// What so many need together.
    #[must_use]
    pub fn times(self, count: u32) -> Self {
        Self(self.0.map(|amount| amount * i64::from(count)))
    }

    /// Both together.
    #[must_use]
    fn plus(self, other: Self) -> Self {
        let mut sum = self;
        sum.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine += theirs);
        sum
    }

    /// What is left without another amount; below 0 where there was less.
    #[must_use]
    fn minus(self, other: Self) -> Self {
        let mut rest = self;
        rest.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine -= theirs);
        rest
    }

    /// Of so many GPUs, those that this is enough for.
    fn serves(self, gpus: u32, need: Self) -> u32 {
        let each = self.0.iter().zip(need.0).filter(|(_, need)| *need > 0);
        each.fold(gpus, |gpus, (there, need)| {
            if need * i64::from(gpus) <= *there { gpus } else { (*there / need).max(0) as u32 }
        })
    }
}

impl Topology {
    /// The same cluster with what each machine has beside GPUs.
    ///
    /// # Errors
    /// [`CoreError::Cluster`] for another number of machines, or less than nothing.
    pub fn with_host(mut self, host: &[Host]) -> Result<Self, CoreError> {
        if host.len() != self.machines() {
            let (found, expected) = (host.len(), self.machines());
            return Err(CoreError::Cluster(format!(
                "host resources of {found} machines, of {expected}"
            )));
        }
        let outside = |amount: &i64| !(0..=Host::UNLIMITED).contains(amount);
        if let Some(at) = host.iter().position(|host| host.0.iter().any(outside)) {
            return Err(CoreError::Cluster(format!(
                "machine {at} has host resources {:?}; expected 0 or more",
                host[at].0
            )));
        }
        self.host = host.to_vec();
        Ok(self)
    }

    /// What each machine has beside GPUs; empty where no machine is limited.
    pub fn host(&self) -> &[Host] {
        &self.host
    }

    /// Whether a need can matter here.
    #[inline]
    pub fn limits(&self, need: Host) -> bool {
        !self.host.is_empty() && !need.is_none()
    }

    /// Of so many GPUs of a machine, those that a need can use when everything is free.
    pub fn serves(&self, machine: MachineId, gpus: u32, need: Host) -> u32 {
        self.host.get(machine.index()).map_or(gpus, |host| host.serves(gpus, need))
    }

    /// Most GPUs of some types that a need can use within one part of each locality when everything
    /// is free.
    pub fn largest_each(&self, types: TypeSet, need: Host) -> [u32; 4] {
        use super::Locality::{self, Cluster};
        if !self.limits(need) {
            return Locality::ALL.map(|level| self.largest_of(level, types));
        }
        let mut largest = [0; 4];
        let mut racks = vec![0; self.racks()];
        let machines = (0..self.machines() as u32).map(MachineId);
        for machine in machines.filter(|machine| types.has(self.type_of(*machine))) {
            let gpus = self.serves(machine, self.machine_gpus(machine), need);
            let slots = self.slots_of(machine).map(|slot| self.slot_gpus(slot).min(gpus));
            largest[0] = largest[0].max(slots.max().unwrap_or(0));
            largest[1] = largest[1].max(gpus);
            racks[self.rack_of(machine).index()] += gpus;
        }
        largest[2] = racks.iter().copied().max().unwrap_or(0);
        largest[Cluster.index()] = racks.iter().sum();
        largest
    }
}

impl FreeSet {
    /// The same with so much of host resources free a machine.
    #[must_use]
    pub fn with_host(mut self, host: Vec<Host>) -> Self {
        self.host = host;
        self
    }

    /// What is free of host resources a machine; empty where no machine is limited.
    pub fn host(&self) -> &[Host] {
        &self.host
    }

    /// What a need can use of it: read, and search, but take from the set itself.
    #[inline]
    pub fn open_to(&self, need: Host) -> Cow<'_, Self> {
        if self.host.is_empty() || need.is_none() { Cow::Borrowed(self) } else { self.narrow(need) }
    }

    #[cold]
    fn narrow(&self, need: Host) -> Cow<'_, Self> {
        let mut open = Cow::Borrowed(self);
        for (machine, host) in (0..).map(MachineId).zip(&self.host) {
            let gpus = self.machine(machine);
            let most = host.serves(gpus, need);
            if most < gpus {
                open.to_mut().cap_machine(machine, most);
            }
        }
        open
    }

    /// True when every GPU of the bundle is free, and what they need of their machines too.
    #[inline]
    pub fn allows(&self, need: Host, bundle: &Bundle) -> bool {
        self.has(bundle) && (self.host.is_empty() || self.machines_host(need, bundle))
    }

    #[cold]
    fn machines_host(&self, need: Host, bundle: &Bundle) -> bool {
        let machines = bundle.by_machine(self.topology());
        machines.iter().all(|(machine, gpus)| self.hosts(*machine, *gpus, need))
    }

    /// Whether a machine has left what so many GPUs of it need.
    pub fn hosts(&self, machine: MachineId, gpus: u32, need: Host) -> bool {
        self.host.get(machine.index()).is_none_or(|host| host.serves(gpus, need) == gpus)
    }

    /// Removes a bundle with what its GPUs need.
    ///
    /// # Panics
    /// When the bundle is not free: a caller's broken invariant, checked with [`FreeSet::allows`].
    pub fn take_with(&mut self, need: Host, bundle: &Bundle) {
        self.take(bundle);
        self.take_host(need, bundle);
    }

    /// Returns a bundle with what its GPUs needed.
    pub fn give_with(&mut self, need: Host, bundle: &Bundle) {
        self.give(bundle);
        self.give_host(need, bundle);
    }

    /// Removes what GPUs need of their machines, but not the GPUs.
    #[inline]
    pub fn take_host(&mut self, need: Host, bundle: &Bundle) {
        if !self.host.is_empty() {
            self.change_host(need, bundle, Host::minus);
        }
    }

    /// Returns what GPUs need of their machines, but not the GPUs.
    #[inline]
    pub fn give_host(&mut self, need: Host, bundle: &Bundle) {
        if !self.host.is_empty() {
            self.change_host(need, bundle, Host::plus);
        }
    }

    #[cold]
    fn change_host(&mut self, need: Host, bundle: &Bundle, change: fn(Host, Host) -> Host) {
        for (slot, gpus) in bundle.iter() {
            let host = &mut self.host[self.topology.machine_of(slot).index()];
            *host = change(*host, need.times(gpus));
        }
    }

    /// True unless more of some machine is taken than it has.
    pub fn host_is_sound(&self) -> bool {
        self.host.iter().all(|host| host.0.iter().all(|amount| *amount >= 0))
    }
}

impl Bundle {
    /// GPUs of each machine.
    pub fn by_machine(&self, topology: &Topology) -> SmallVec<[(MachineId, u32); 2]> {
        let mut machines: SmallVec<[(MachineId, u32); 2]> = SmallVec::new();
        for (slot, gpus) in self.iter() {
            let machine = topology.machine_of(slot);
            match machines.last_mut() {
                Some((last, all)) if *last == machine => *all += gpus,
                _ => machines.push((machine, gpus)),
            }
        }
        machines
    }
}

/// An offer as each of some needs can use it.
#[derive(Debug)]
pub struct Openings<'a> {
    offer: &'a FreeSet,
    /// Of the needs that can't use all of it.
    narrower: SmallVec<[(Host, FreeSet); 1]>,
}

impl<'a> Openings<'a> {
    /// What these needs can use; most follow one of their kind.
    #[inline]
    pub fn of(offer: &'a FreeSet, needs: impl Iterator<Item = Host>) -> Self {
        let mut narrower: SmallVec<[(Host, FreeSet); 1]> = SmallVec::new();
        if !offer.host.is_empty() {
            for need in needs {
                if narrower.iter().all(|(known, _)| *known != need)
                    && let Cow::Owned(open) = offer.open_to(need)
                {
                    narrower.push((need, open));
                }
            }
        }
        Self { offer, narrower }
    }

    /// What a need can use.
    #[inline]
    pub fn to(&self, need: Host) -> &FreeSet {
        if self.narrower.is_empty() { self.offer } else { self.narrower_to(need) }
    }

    #[cold]
    fn narrower_to(&self, need: Host) -> &FreeSet {
        let known = self.narrower.iter().find(|(known, _)| *known == need);
        known.map_or(self.offer, |(_, open)| open)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::SlotId;
    use crate::cluster::{Locality, MachineSpec};

    /// Two machines of 4 GPUs in slots of 2: 10 cores and 100 GiB, and as much as one likes.
    fn free() -> FreeSet {
        let spec = MachineSpec { rack: 0, gpus: 4, slot_gpus: 2 };
        let topology = Topology::new(&[spec; 2]).expect("valid");
        let host = [Host::new(10, 100), Host::new(Host::UNLIMITED, Host::UNLIMITED)];
        FreeSet::full(Arc::new(topology.with_host(&host).expect("valid")))
    }

    fn bundle(parts: &[(u32, u32)]) -> Bundle {
        parts.iter().map(|(slot, gpus)| (SlotId(*slot), *gpus)).collect()
    }

    #[test]
    fn a_need_can_use_what_the_scarcer_resource_allows() {
        let free = free();
        let of = |need| {
            let open = free.open_to(need);
            let machine = |at| open.machine(MachineId(at));
            (machine(0), machine(1), open.slot(SlotId(0)), open.total())
        };
        assert_eq!(of(Host::NONE), (4, 4, 2, 8));
        assert_eq!(of(Host::new(2, 25)), (4, 4, 2, 8));
        assert_eq!(of(Host::new(3, 25)), (3, 4, 2, 7));
        assert_eq!(of(Host::new(3, 60)), (1, 4, 1, 5));
        assert_eq!(of(Host::new(11, 0)), (0, 4, 0, 4));
    }

    #[test]
    fn what_is_taken_comes_back() {
        let (mut free, need) = (free(), Host::new(3, 10));
        let three = bundle(&[(0, 1), (1, 2)]);
        assert!(free.allows(need, &three) && !free.allows(need, &bundle(&[(0, 2), (1, 2)])));
        free.take_with(need, &three);
        assert_eq!((free.host()[0], free.machine(MachineId(0))), (Host::new(1, 70), 1));
        assert_eq!(free.open_to(need).machine(MachineId(0)), 0);
        assert!(!free.hosts(MachineId(0), 1, need) && free.hosts(MachineId(0), 1, Host::new(1, 0)));
        free.give_with(need, &three);
        assert_eq!(free.host()[0], Host::new(10, 100));
        assert!(free.host_is_sound());
        free.take_host(Host::new(11, 0), &bundle(&[(0, 1)]));
        assert!(!free.host_is_sound());
    }

    #[test]
    fn a_narrower_set_has_what_its_machines_have_together() {
        let free = free();
        let open = free.open_to(Host::new(3, 0));
        assert!(open.has(&bundle(&[(0, 1), (1, 2)])) && !open.has(&bundle(&[(0, 2), (1, 2)])));
        assert_eq!(open.largest(Locality::Machine, TypeSet::ALL), 4);
        assert_eq!(open.tightest_machine(3, TypeSet::ALL), Some(MachineId(0)));
        let all = |need| free.topology().largest_each(TypeSet::ALL, need);
        assert_eq!((all(Host::NONE), all(Host::new(3, 60))), ([2, 4, 8, 8], [2, 4, 5, 5]));
    }

    #[test]
    fn an_offer_is_narrowed_once_a_need() {
        let free = free();
        let needs = [Host::NONE, Host::new(3, 0), Host::new(1, 0), Host::new(3, 0)];
        let openings = Openings::of(&free, needs.into_iter());
        assert_eq!(openings.narrower.len(), 1);
        assert_eq!(needs.map(|need| openings.to(need).total()), [8, 7, 8, 7]);
    }

    #[test]
    fn odd_capacities_are_refused() {
        let spec = MachineSpec { rack: 0, gpus: 4, slot_gpus: 2 };
        let topology = Topology::new(&[spec]).expect("valid");
        for bad in [vec![], vec![Host::new(-1, 0)], vec![Host::NONE; 2]] {
            assert!(topology.clone().with_host(&bad).is_err());
        }
    }
}
