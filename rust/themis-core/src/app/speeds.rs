//! How fast a job runs on each GPU type.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use crate::cluster::{Topology, TypeSet};

/// GPU types on which a job may run together, and how fast the slowest of them is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pool {
    /// The types.
    pub types: TypeSet,
    /// GPU-seconds of work that a GPU does a second there; at most 1. For a job that uses a share of
    /// its GPU, that share of it.
    pub speed: f64,
}

/// The pools of a job: what it may run on, fastest first.
///
/// Work is counted in GPU-seconds on the fastest type that the job may use, where a GPU does one a
/// second. All GPUs of a job keep step, so that a bundle of several types runs at the speed of its
/// slowest: a pool is the types of some speed or more, or a single type for a job that does not mix
/// them.
#[derive(Clone, Debug, PartialEq)]
pub struct Speeds(Option<Arc<[Pool]>>);

const ALIKE: [Pool; 1] = [Pool { types: TypeSet::ALL, speed: 1.0 }];

impl Speeds {
    /// Any GPU will do, and all are equally fast.
    pub const ALIKE: Self = Self(None);

    /// Speeds by type, 0 where the job may not run; whether it mixes types. Only their ratios count.
    pub fn new(by_type: &[f64], mixes: bool) -> Self {
        let fastest = by_type.iter().copied().fold(0.0, f64::max);
        let usable = (0..by_type.len()).filter(|gpu_type| by_type[*gpu_type] > 0.0);
        let mut pools: Vec<Pool> = usable
            .map(|at| Pool { types: TypeSet::one(at), speed: by_type[at] / fastest })
            .collect();
        pools.sort_by(|a, b| b.speed.total_cmp(&a.speed).then(a.types.cmp(&b.types)));
        if mixes {
            let mut types = TypeSet::NONE;
            for pool in &mut pools {
                types = types.union(pool.types);
                pool.types = types;
            }
            // Of equal speeds the largest set.
            pools.reverse();
            pools.dedup_by(|finer, coarser| finer.speed.total_cmp(&coarser.speed).is_eq());
            pools.reverse();
        }
        let all: TypeSet = (0..by_type.len()).collect();
        pools.iter_mut().filter(|pool| pool.types == all).for_each(|p| p.types = TypeSet::ALL);
        if pools == ALIKE { Self::ALIKE } else { Self(Some(pools.into())) }
    }

    /// The same for a job that uses this share of each of its GPUs, above 0 and at most 1.
    #[must_use]
    pub fn of_share(&self, share: f64) -> Self {
        if share >= 1.0 {
            return self.clone();
        }
        let slower = |pool: &Pool| Pool { speed: pool.speed * share, ..*pool };
        Self(Some(self.pools().iter().map(slower).collect()))
    }

    /// Work that a GPU of the type that suits it best does a second: 1, or the share that the job
    /// uses of it.
    #[inline]
    pub fn fastest(&self) -> f64 {
        self.pools().first().map_or(1.0, |pool| pool.speed)
    }

    /// The pools, fastest first; none for a job that can't run anywhere.
    #[inline]
    pub fn pools(&self) -> &[Pool] {
        self.0.as_deref().unwrap_or(&ALIKE)
    }

    /// Whether any GPU will do, and all are equally fast.
    pub fn are_alike(&self) -> bool {
        self.0.is_none()
    }

    /// A pool by its place, the last one for all places after it.
    #[inline]
    pub fn pool(&self, at: usize) -> Pool {
        match self.pools() {
            [] => Pool { types: TypeSet::NONE, speed: 0.0 },
            pools => pools[at.min(pools.len() - 1)],
        }
    }

    /// The place of the first pool from `at` on that has these types, else of the fastest that has.
    pub fn place_for(&self, types: TypeSet, at: usize) -> Option<usize> {
        let has = |pool: &Pool| pool.types.includes(types);
        let pools = self.pools();
        let at = at.min(pools.len().saturating_sub(1));
        let later = pools[at..].iter().position(has).map(|after| at + after);
        later.or_else(|| pools.iter().position(has))
    }

    /// The speed of the slowest GPU of some types; 0 where the job may not run on them together.
    pub fn on(&self, types: TypeSet) -> f64 {
        self.place_for(types, 0).map_or(0.0, |at| self.pool(at).speed)
    }

    /// The types of which a bundle is no slower than one of these; themselves, where it may not run.
    pub fn no_slower(&self, types: TypeSet) -> TypeSet {
        self.place_for(types, 0).map_or(types, |at| self.pool(at).types)
    }

    /// Most GPUs that one bundle of the whole cluster has.
    pub fn most_gpus(&self, topology: &Topology) -> u32 {
        self.pools().iter().map(|pool| topology.gpus_of(pool.types)).max().unwrap_or(0)
    }
}

/// The cluster in an app's own GPUs: how many there are of each speed, fastest first.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnGpus(SmallVec<[(f64, f64); 2]>);

impl OwnGpus {
    /// Of an app with jobs of these speeds: each type counts as the job that it suits best says.
    pub fn of<'a>(topology: &Topology, jobs: impl Iterator<Item = &'a Speeds>) -> Self {
        let types = topology.types();
        if types == 1 {
            return Self(smallvec![(1.0, f64::from(topology.gpus()))]);
        }
        let mut steps: SmallVec<[(f64, f64); 2]> = (0..types)
            .map(|gpu_type| (0.0, f64::from(topology.gpus_of(TypeSet::one(gpu_type)))))
            .collect();
        for job in jobs {
            for (gpu_type, (speed, _)) in steps.iter_mut().enumerate() {
                *speed = speed.max(job.on(TypeSet::one(gpu_type)) / job.fastest());
            }
        }
        steps.sort_by(|a, b| b.0.total_cmp(&a.0));
        Self(steps)
    }

    /// Work a second of the fastest `gpus` GPUs in 1 / `n` of every type.
    pub fn rate(&self, gpus: f64, n: f64) -> f64 {
        let mut left = gpus;
        let mut rate = 0.0;
        for (speed, there) in &self.0 {
            let taken = left.min(there / n);
            rate += speed * taken;
            left -= taken;
        }
        rate
    }

    /// The same with a part of every type's GPUs.
    #[must_use]
    pub fn scaled(&self, part: f64) -> Self {
        Self(self.0.iter().map(|(speed, there)| (*speed, there * part)).collect())
    }

    /// Work a second of all GPUs: `R_C` in units of the app's own speed.
    pub fn all(&self) -> f64 {
        self.rate(f64::INFINITY, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::MachineSpec;

    #[test]
    fn a_bundle_runs_at_its_slowest_member() {
        let types = |all: &[usize]| all.iter().copied().collect::<TypeSet>();
        let mixes = Speeds::new(&[1.0, 4.0, 0.0, 2.0], true);
        let sets: Vec<_> = mixes.pools().iter().map(|pool| (pool.types, pool.speed)).collect();
        assert_eq!(sets, [(types(&[1]), 1.0), (types(&[1, 3]), 0.5), (types(&[0, 1, 3]), 0.25)]);
        let on: Vec<f64> = [&[1, 3], &[0, 3], &[1, 2]].map(|set| mixes.on(types(set))).to_vec();
        assert_eq!(on, vec![0.5, 0.25, 0.0]);
        let single = Speeds::new(&[1.0, 4.0], false);
        assert_eq!((single.on(types(&[0])), single.on(types(&[0, 1]))), (0.25, 0.0));
        assert_eq!(Speeds::new(&[3.0, 3.0], true), Speeds::ALIKE);
        assert_eq!(Speeds::new(&[3.0], false), Speeds::ALIKE);
        assert_eq!(Speeds::new(&[0.0, 0.0], true).pools(), []);
    }

    #[test]
    fn a_share_of_a_gpu_does_a_share_of_its_work() {
        let whole = Speeds::new(&[1.0, 4.0], true);
        let half = whole.of_share(0.5);
        let pace = |speeds: &Speeds, at: usize| speeds.on(TypeSet::one(at));
        assert_eq!([0, 1].map(|at| pace(&half, at)).to_vec(), vec![0.125, 0.5]);
        assert_eq!((half.fastest(), Speeds::ALIKE.of_share(0.25).fastest()), (0.5, 0.25));
        assert_eq!(whole.of_share(1.0), whole);
        // The cluster has as many GPUs for it as for a whole job.
        let machine = MachineSpec { rack: 0, gpus: 4, slot_gpus: 4 };
        let topology = Topology::new(&[machine; 2]).expect("valid");
        let topology = topology.with_gpu_types(&[0, 1]).expect("valid");
        let own = |speeds| OwnGpus::of(&topology, std::iter::once(speeds));
        assert_eq!(own(&half), own(&whole));
    }

    #[test]
    fn own_gpus_count_the_fastest_first() {
        let machine = |gpus| MachineSpec { rack: 0, gpus, slot_gpus: gpus };
        let topology = Topology::new(&[machine(4), machine(8)]).expect("valid");
        let topology = topology.with_gpu_types(&[0, 1]).expect("valid");
        let speeds = Speeds::new(&[1.0, 0.5], true);
        let own = OwnGpus::of(&topology, std::iter::once(&speeds));
        let rates =
            |own: &OwnGpus, n, counts: [f64; 3]| counts.map(|gpus| own.rate(gpus, n)).to_vec();
        assert_eq!(rates(&own, 1.0, [2.0, 6.0, 99.0]), vec![2.0, 5.0, 8.0]);
        assert_eq!(rates(&own, 2.0, [2.0, 4.0, 9.0]), vec![2.0, 3.0, 4.0]);
        let alike = OwnGpus::of(&topology, std::iter::once(&Speeds::ALIKE));
        assert_eq!(rates(&alike, 1.0, [5.0, 12.0, 99.0]), vec![5.0, 12.0, 12.0]);
        assert_eq!(Some(own.all()), Some(8.0));
    }
}
