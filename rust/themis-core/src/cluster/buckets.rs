//! Parts of a cluster by how much of each is free, so that the best fit is one look-up.
//!
//! Cost: a change is O(1) and, when the lowest of its group leaves, O(positions / 64); a look-up is
//! O(largest size).

use crate::cluster::TypeSet;

/// Positions grouped by their GPU type and free count.
#[derive(Clone, Debug)]
pub(super) struct Buckets {
    pub(super) free: Vec<u32>,
    /// Groups of a type: by free count from 0 on.
    width: usize,
    groups: Vec<Group>,
    /// A bit a position, group by group: one piece of memory, since sets are copied often.
    bits: Vec<u64>,
    /// Words of a group.
    words: usize,
}

/// Positions of one type with as many free GPUs.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    members: u32,
    /// No position is lower.
    lowest: u32,
}

impl Buckets {
    /// Nothing is free. A position is in a group while something of it is.
    pub(super) fn new(positions: usize, largest: u32, types: usize) -> Self {
        let width = largest as usize + 1;
        let words = positions.div_ceil(u64::BITS as usize);
        let groups = vec![Group::default(); types * width];
        let bits = vec![0; groups.len() * words];
        Self { free: vec![0; positions], width, groups, bits, words }
    }

    /// Says how much of a position is free now.
    pub(super) fn set(&mut self, position: usize, gpu_type: usize, free: u32) {
        let (before, after) = (self.free[position] as usize, free as usize);
        if before == after {
            return;
        }
        let first = gpu_type * self.width;
        if before > 0 {
            self.leave(first + before, position);
        }
        if after > 0 {
            self.join(first + after, position);
        }
        self.free[position] = free;
    }

    fn leave(&mut self, at: usize, position: usize) {
        let bits = &mut self.bits[at * self.words..][..self.words];
        bits[position / 64] &= !(1 << (position % 64));
        let group = &mut self.groups[at];
        group.members -= 1;
        if group.members > 0 && group.lowest as usize == position {
            group.lowest = next_one(bits, position);
        }
    }

    fn join(&mut self, at: usize, position: usize) {
        self.bits[at * self.words + position / 64] |= 1 << (position % 64);
        let (group, position) = (&mut self.groups[at], position as u32);
        group.lowest = if group.members == 0 { position } else { group.lowest.min(position) };
        group.members += 1;
    }

    /// The groups of each of these types, by free count from 0 on.
    fn of(&self, types: TypeSet) -> impl Iterator<Item = &[Group]> {
        let all = self.groups.chunks_exact(self.width).enumerate();
        all.filter(move |(gpu_type, _)| types.has(*gpu_type)).map(|(_, groups)| groups)
    }

    /// The position with the least free that still has so much; ties: the lowest.
    pub(super) fn tightest(&self, gpus: u32, types: TypeSet) -> Option<usize> {
        let from = gpus.max(1) as usize;
        let of_type = |groups: &[Group]| {
            let after = groups.get(from..)?.iter().position(|group| group.members > 0)?;
            Some((after, groups[from + after].lowest))
        };
        self.of(types).filter_map(of_type).min().map(|(_, position)| position as usize)
    }

    /// Positions of the first type that have so much free, the tightest first; then those that have less,
    /// the fullest first; ties: lowest position.
    pub(super) fn tighter_first(&self, need: u32) -> impl Iterator<Item = usize> {
        let need = (need.max(1) as usize).min(self.width);
        let groups = (need..self.width).chain((1..need).rev());
        groups.filter(|at| self.groups[*at].members > 0).flat_map(|at| self.members(at))
    }

    /// The positions of a group, lowest first.
    fn members(&self, at: usize) -> impl Iterator<Item = usize> {
        let first = self.groups[at].lowest as usize / 64;
        let words = &self.bits[at * self.words..][first..self.words];
        (first..).zip(words).flat_map(|(at, word)| {
            let rest = std::iter::successors(Some(*word), |rest| Some(rest & rest.wrapping_sub(1)));
            let ones = rest.take_while(|rest| *rest != 0);
            ones.map(move |rest| at * 64 + rest.trailing_zeros() as usize)
        })
    }

    /// The most that a position has free.
    pub(super) fn largest(&self, types: TypeSet) -> u32 {
        let most = |groups: &[Group]| groups.iter().rposition(|group| group.members > 0);
        self.of(types).filter_map(most).max().unwrap_or(0) as u32
    }
}

/// The first position of a set from this one on; 0 if there is none.
fn next_one(bits: &[u64], from: usize) -> u32 {
    let mut words = (0..).zip(bits).skip(from / 64);
    let found = words.find(|(_, word)| **word != 0);
    found.map_or(0, |(at, word): (u32, _)| at * u64::BITS + word.trailing_zeros())
}

/// The smaller, the better to fill next: parts that serve the whole need by best fit, else the
/// fullest part.
pub(super) fn fullest_then_tightest(free: u32, need: u32) -> (bool, u32) {
    if free >= need { (false, free) } else { (true, u32::MAX - free) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_looking_at_all_one_by_one() {
        let sizes = [3, 0, 7, 1, 3, 7, 2, 0, 3, 5];
        // Positions in several words.
        let mut buckets = Buckets::new(200, 8, 1);
        let at = |place: usize| place * 21;
        for (place, free) in sizes.into_iter().enumerate() {
            buckets.set(at(place), 0, 8);
            buckets.set(at(place), 0, free);
        }
        for need in 0..10 {
            let mut open: Vec<usize> = (0..sizes.len()).filter(|p| sizes[*p] > 0).collect();
            open.sort_by_key(|place| (fullest_then_tightest(sizes[*place], need.max(1)), *place));
            let found: Vec<usize> = buckets.tighter_first(need).collect();
            assert_eq!(found, open.into_iter().map(at).collect::<Vec<_>>(), "{need}");
        }
    }
}
