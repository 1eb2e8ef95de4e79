//! Phases 3 and 4 of a round: who wins what, the bound, and the hidden payments, from a solver of
//! this crate or from outside.

use super::solution::Solution;
use super::winners::Solved;
use super::{Bid, Solver, dual, payments};
use crate::app::{Part, Placed};
use crate::cluster::{Chunks, FreeSet};

/// What a solver decides.
#[derive(Debug)]
pub(super) struct Decision {
    pub(super) solution: Solution,
    /// No allocation has a larger sum of log V.
    pub(super) upper_bound: f64,
    /// c of every bidder.
    pub(super) payments: Vec<f64>,
}

impl Decision {
    /// A solver's allocation, with its certified bound, and what each winner costs the others.
    pub(super) fn by(solver: Solver, offer: &FreeSet, chunks: &Chunks, bids: &[Bid<'_>]) -> Self {
        let Solved { solution, dual, without } = solver.solve(offer, chunks, bids);
        let upper_bound = dual::upper_bound(offer, chunks, bids, &solution, &dual);
        let found = (&solution, &dual);
        let payments = payments::hidden_payments(solver, offer, chunks, bids, found, without);
        Self { solution, upper_bound, payments }
    }
}

/// An allocation found outside, entrant by entrant; entrants that do not see the offer win nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    /// GPUs won, job by job: disjoint, and on offer.
    pub wins: Vec<Vec<Part>>,
    /// Hidden payments c, in (0, 1].
    pub payments: Vec<f64>,
    /// No allocation has a larger sum of log V.
    pub upper_bound: f64,
}

impl Given {
    /// True when there is a win and a payment an entrant, and no GPU is given twice or from outside
    /// the offer.
    pub fn fits(&self, offer: &FreeSet, entrants: usize) -> bool {
        let mut free = offer.clone();
        let mut take = |part: &Part| {
            let has = free.has(&part.bundle);
            if has {
                free.take(&part.bundle);
            }
            has
        };
        let disjoint = self.wins.iter().flatten().all(&mut take);
        disjoint && self.wins.len() == entrants && self.payments.len() == entrants
    }

    /// The decision for the entrants that see the offer; the core values what they win.
    pub(super) fn decide(&self, offer: &FreeSet, seen: &[usize], bids: &[Bid<'_>]) -> Decision {
        let mut solution = Solution::nothing(bids);
        for (at, (entrant, bid)) in seen.iter().zip(bids).enumerate() {
            let parts = self.wins[*entrant].clone();
            if !parts.is_empty() {
                let log_v = bid.bidder.log_v_with(offer.topology(), &parts);
                solution.log_v[at] = log_v;
                solution.wins[at] = Some(Placed { parts, log_v });
            }
        }
        let upper_bound = self.upper_bound.max(solution.objective());
        let payments = seen.iter().map(|entrant| self.payments[*entrant]).collect();
        Decision { solution, upper_bound, payments }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{Bidder, Entrant, NoDraws, Reason, Rules, run_round, run_round_given};
    use super::super::{Payment, Table, TableRow};
    use super::*;
    use crate::cluster::{Bundle, MachineSpec, Topology};
    use crate::ids::SlotId;

    fn offer() -> FreeSet {
        let machine = MachineSpec { rack: 0, gpus: 4, slot_gpus: 4 };
        FreeSet::full(Arc::new(Topology::new(&[machine; 2]).expect("valid")))
    }

    fn wants(slot: u32, gpus: u32) -> Entrant {
        let bundle: Bundle = std::iter::once((SlotId(slot), gpus)).collect();
        let rows = vec![TableRow { bundle, log_v: 1.0 }];
        let bidder = Bidder::Table(Table { log_v_empty: 0.0, rows, held: Bundle::new() });
        Entrant { bidder, rank: (0.0, 0.0) }
    }

    fn given(entrants: &[Entrant], wins: &[(u32, u32)]) -> Given {
        let part = |(slot, gpus): &(u32, u32)| {
            let bundle = std::iter::once((SlotId(*slot), *gpus)).collect();
            vec![Part { job: 0, bundle }]
        };
        Given {
            wins: wins.iter().map(part).collect(),
            payments: vec![1.0; entrants.len()],
            upper_bound: f64::NEG_INFINITY,
        }
    }

    #[test]
    fn an_allocation_from_outside_is_charged_as_one_of_ours() {
        let entrants = vec![wants(0, 3), wants(1, 2)];
        let rules = Rules { fairness_knob: 0.0, payment: Payment::None, ..Rules::default() };
        let ours = run_round(&offer(), entrants.clone(), &rules, &mut NoDraws);
        let given = given(&entrants, &[(0, 3), (1, 2)]);
        let theirs = run_round_given(&offer(), entrants, &rules, &given, &mut NoDraws);
        assert!((theirs.objective - 2.0).abs() < 1e-12);
        for (one, other) in ours.entries.iter().zip(&theirs.entries) {
            assert_eq!(one.reason, Reason::Won);
            assert_eq!(one.kept, other.kept);
        }
        assert_eq!(ours.unused, theirs.unused);
    }

    #[test]
    fn a_gpu_given_twice_or_not_on_offer_does_not_fit() {
        let entrants = vec![wants(0, 3), wants(1, 2)];
        let fits = |wins: &[(u32, u32)]| given(&entrants, wins).fits(&offer(), entrants.len());
        assert!(fits(&[(0, 3), (0, 1)]));
        assert!(!fits(&[(0, 3), (0, 2)]));
        assert!(!fits(&[(0, 5), (1, 1)]));
        assert!(!fits(&[(0, 3)]));
    }
}
