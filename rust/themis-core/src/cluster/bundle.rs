//! A bundle: how many GPUs of which slots.

use crate::ids::SlotId;
use smallvec::SmallVec;

/// GPU counts a slot, sorted by slot, each count at least 1. GPUs of a slot are interchangeable,
/// so that counts say everything a bid depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bundle(SmallVec<[(SlotId, u32); 2]>);

impl Bundle {
    /// The bundle of no GPUs.
    pub const EMPTY: Self = Self(SmallVec::new_const());

    /// The bundle of no GPUs.
    pub const fn new() -> Self {
        Self::EMPTY
    }

    /// GPUs in all.
    pub fn gpus(&self) -> u32 {
        self.0.iter().map(|(_, gpus)| gpus).sum()
    }

    /// True when it holds no GPU.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// (slot, GPUs) in slot order.
    pub fn iter(&self) -> impl Iterator<Item = (SlotId, u32)> + '_ {
        self.0.iter().copied()
    }

    /// GPUs in one slot.
    pub fn in_slot(&self, slot: SlotId) -> u32 {
        self.0.binary_search_by_key(&slot, |(s, _)| *s).map_or(0, |at| self.0[at].1)
    }

    /// Adds GPUs of one slot.
    pub fn add(&mut self, slot: SlotId, gpus: u32) {
        if gpus == 0 {
            return;
        }
        match self.0.binary_search_by_key(&slot, |(s, _)| *s) {
            Ok(at) => self.0[at].1 += gpus,
            Err(at) => self.0.insert(at, (slot, gpus)),
        }
    }

    /// Adds every GPU of another bundle.
    pub fn merge(&mut self, other: &Self) {
        for (slot, gpus) in other.iter() {
            self.add(slot, gpus);
        }
    }

    /// This bundle with another added.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.merge(other);
        all
    }
}

impl FromIterator<(SlotId, u32)> for Bundle {
    fn from_iter<I: IntoIterator<Item = (SlotId, u32)>>(parts: I) -> Self {
        let mut bundle = Self::new();
        for (slot, gpus) in parts {
            bundle.add(slot, gpus);
        }
        bundle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundles_are_sorted_counts() {
        let mut b: Bundle = [(SlotId(3), 1), (SlotId(1), 2), (SlotId(3), 4)].into_iter().collect();
        b.add(SlotId(9), 0);
        assert_eq!(b.iter().collect::<Vec<_>>(), vec![(SlotId(1), 2), (SlotId(3), 5)]);
        assert_eq!((b.gpus(), b.in_slot(SlotId(3)), b.in_slot(SlotId(2))), (7, 5, 0));
    }
}
