//! Work conservation: what nobody won, and what payments freed, goes to who can use it.
//!
//! In job-sized claims: first apps outside the auction, then bidders by need, last of all those
//! whose payment freed GPUs, or a payment would cost nothing. Cost: O(1) a claim granted and one
//! failed claim an app: free GPUs only shrink, so that a claim which fails once is not tried again.

use super::entrants::Entries;
use super::{Bidder, Draws};
use crate::app::Part;
use crate::cluster::FreeSet;

/// Who among the apps outside the auction is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Leftover {
    /// One claim at a time, to an app drawn at random (the paper's words).
    Random,
    /// One job of each app whose leases just ended goes on with its GPUs, where they are left; then
    /// as [`Leftover::Random`]. No app loses all that it has to a draw.
    #[default]
    HoldersFirst,
    /// Worst first, each with all that it can use.
    WorstFirst,
}

/// Who may claim, all worst first.
pub(super) struct Claimants<'a> {
    /// Those who saw the offer and paid no GPUs, and those who did.
    pub(super) unpaid: &'a [usize],
    pub(super) paid: &'a [usize],
    /// The others.
    pub(super) outside: &'a [usize],
    /// Those of the others whose leases just ended.
    pub(super) resuming: &'a [usize],
}

/// Gives out what is free.
pub(super) fn hand_out(
    entries: &mut Entries<'_>,
    claimants: &Claimants<'_>,
    free: &mut FreeSet,
    rule: Leftover,
    draws: &mut dyn Draws,
) {
    let Claimants { unpaid, paid, outside, resuming } = claimants;
    match rule {
        Leftover::WorstFirst => serve(entries, outside, free),
        Leftover::Random => serve_drawn(entries, outside, free, draws),
        Leftover::HoldersFirst => {
            for at in *resuming {
                take(entries, *at, free, Bidder::resume_one);
            }
            serve_drawn(entries, outside, free, draws);
        }
    }
    serve(entries, unpaid, free);
    serve(entries, paid, free);
}

/// What a bidder takes of free GPUs next.
type Next = fn(&Bidder, &FreeSet) -> Option<Part>;

/// One app after the other, each with all that helps it.
fn serve(entries: &mut Entries<'_>, order: &[usize], free: &mut FreeSet) {
    for at in order {
        if free.total() == 0 {
            return; // nobody need be asked
        }
        let entry = entries.of(*at);
        entry.leftover.extend(entry.bidder.claim_all(free));
    }
}

/// One claim at a time, to an app drawn at random.
fn serve_drawn(
    entries: &mut Entries<'_>,
    apps: &[usize],
    free: &mut FreeSet,
    draws: &mut dyn Draws,
) {
    let mut pool = apps.to_vec();
    while free.total() > 0 && !pool.is_empty() {
        let drawn = ((draws.leftover() * pool.len() as f64) as usize).min(pool.len() - 1);
        if !take(entries, pool[drawn], free, Bidder::claim_one) {
            pool.swap_remove(drawn);
        }
    }
}

/// One claim; false when nothing that is free helps the app.
fn take(entries: &mut Entries<'_>, at: usize, free: &mut FreeSet, next: Next) -> bool {
    if free.total() == 0 {
        return false; // nobody need be asked
    }
    let entry = entries.of(at);
    let Some(part) = next(&entry.bidder, free) else { return false };
    entry.bidder.take(free, &part);
    entry.bidder.hold(&part);
    entry.leftover.push(part);
    true
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::SlotId;
    use crate::app::{AppState, Job, Profile, Stopping};
    use crate::auction::{Entrant, Entry, Rules, run_round};
    use crate::cluster::{Bundle, MachineSpec, Topology};

    /// Always draws the last in the pool.
    struct Last;

    impl Draws for Last {
        fn lottery(&mut self) -> f64 {
            0.0
        }

        fn leftover(&mut self) -> f64 {
            0.99
        }
    }

    /// GPUs left over for each of three apps: the only bidder has no use for the two on offer; the
    /// second had both with two jobs, the third waits with two.
    fn left(rule: Leftover) -> Vec<u32> {
        let machine = MachineSpec { rack: 0, gpus: 1, slot_gpus: 1 };
        let offer = FreeSet::full(Arc::new(Topology::new(&[machine; 2]).expect("valid")));
        let job = |gang, previous: Bundle| Job {
            previous,
            ..Job::waiting(gang, gang, 100.0, Profile::PERFECT)
        };
        let had = |slot| [(SlotId(slot), 1)].into_iter().collect();
        let apps = [
            vec![job(5, Bundle::new())],
            vec![job(1, had(0)), job(1, had(1))],
            vec![job(1, Bundle::new()), job(1, Bundle::new())],
        ];
        let entrants = apps.into_iter().enumerate().map(|(at, jobs)| Entrant {
            bidder: Bidder::App(AppState::new(0.0, 100.0, Stopping::All, jobs)),
            rank: (-(at as f64), 0.0),
        });
        let rules = Rules { leftover: rule, ..Rules::default() };
        let outcome = run_round(&offer, entrants.collect(), &rules, &mut Last);
        outcome.entries.iter().map(Entry::granted_gpus).collect()
    }

    #[test]
    fn one_job_of_each_holder_goes_on_before_the_draw() {
        assert_eq!(left(Leftover::Random), vec![0, 0, 2]);
        assert_eq!(left(Leftover::HoldersFirst), vec![0, 1, 1]);
        assert_eq!(left(Leftover::WorstFirst), vec![0, 2, 0]);
    }
}
