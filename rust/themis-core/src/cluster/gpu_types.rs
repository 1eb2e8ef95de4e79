//! GPU types, and sets of them.

use super::Locality;

/// Most GPU types of a cluster.
pub const MAX_TYPES: usize = 64;

/// Some of the GPU types of a cluster, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeSet(u64);

impl TypeSet {
    /// Every type, whatever the cluster has.
    pub const ALL: Self = Self(u64::MAX);
    /// No type.
    pub const NONE: Self = Self(0);

    /// The set of one type.
    pub const fn one(gpu_type: usize) -> Self {
        Self(1 << gpu_type)
    }

    /// The types of both.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether it has every type of the other.
    #[inline]
    pub const fn includes(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// Whether it has a type.
    #[inline]
    pub const fn has(self, gpu_type: usize) -> bool {
        self.0 >> gpu_type & 1 == 1
    }

    /// How many it has.
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether it has no type.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those of the first `count` types that it has, in order.
    pub fn iter(self, count: usize) -> impl Iterator<Item = usize> {
        (0..count).filter(move |gpu_type| self.has(*gpu_type))
    }
}

impl FromIterator<usize> for TypeSet {
    fn from_iter<I: IntoIterator<Item = usize>>(types: I) -> Self {
        types.into_iter().fold(Self::NONE, |all, one| all.union(Self::one(one)))
    }
}

/// Where a bundle may lie: within one part of a locality, on GPUs of some types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within {
    /// The locality that it does not exceed.
    pub level: Locality,
    /// The types of its GPUs.
    pub types: TypeSet,
}

impl From<Locality> for Within {
    fn from(level: Locality) -> Self {
        Self { level, types: TypeSet::ALL }
    }
}
