//! Better selections by way of those without a winner.
//!
//! A winner is left out for a while: the others take what is best without it, and it comes back to what
//! they then leave or give up. Those that win most go first. What is better stands.
//!
//! Cost: the steps given at most, counted, never timed. Guarantee: not worse than the start, and it packs.

use std::cmp::Reverse;

use super::few::{CLOSE, Few};
use super::nearby::First;
use super::packed::Packed;
use super::search::LEAST_GAIN;

impl Few {
    /// The better of a selection and what detours lead to, by the steps of searches nearby that are left.
    pub(super) fn take_detours(&mut self, mut best: Packed, left: &mut u32) -> Packed {
        let mut log_v = best.log_v(&self.menus, None);
        let gpus = |bidder: &usize| best.choice(&self.menus, *bidder).gpus;
        let all = 0..best.choices.len();
        let mut winners: Vec<usize> = all.filter(|bidder| gpus(bidder) > 0).collect();
        winners.sort_by_key(|bidder| (Reverse(gpus(bidder)), *bidder));
        for winner in winners {
            if *left == 0 || self.is_within(CLOSE, log_v) {
                break;
            }
            let without = self.go(best.clone(), (Some(winner), None), First::Sets, left);
            let found = self.go(without, (None, None), First::Gains, left);
            let better = found.log_v(&self.menus, None);
            if better > log_v + LEAST_GAIN {
                (best, log_v) = (found, better);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::super::large::tests::better_and_best;
    use super::*;

    #[test]
    fn detours_come_to_the_best_mostly() {
        let (better, best) = better_and_best(Few::take_detours);
        assert!(best > 55 && better > 10, "{best} {better}");
    }
}
