//! The paper's policy: the worst off bid for what is free (sections 3 and 4).

use super::{AuctionRecord, Cause, Grant, Plan, Policy};
use crate::draws::SeededDraws;
use crate::view::{Candidate, View};
use themis_core::app::Part;
use themis_core::auction::{Bidder, Entrant, Entry, Outcome, run_round};

/// One partial-allocation auction at every resource-available event.
#[derive(Clone, Debug)]
pub(super) struct Themis {
    draws: SeededDraws,
}

impl Themis {
    pub(super) fn new(seed: u64) -> Self {
        Self { draws: SeededDraws::new(seed) }
    }
}

/// One auction, and who took part: apps with the numbers of their jobs, in the order of entries.
pub(super) struct Round {
    pub(super) outcome: Outcome,
    pub(super) entrants: Vec<(u32, Vec<u32>)>,
}

impl Themis {
    /// Holds one auction.
    pub(super) fn round(&mut self, view: &View<'_>) -> Round {
        let (mut bids, mut entrants) = (Vec::new(), Vec::new());
        for candidate in view.reports() {
            let rank = view.rank(&candidate);
            let Candidate { app, jobs, state } = candidate;
            bids.push(Entrant { bidder: Bidder::App(state), rank });
            entrants.push((app, jobs));
        }
        let outcome = run_round(view.offer(), bids, view.rules(), &mut self.draws);
        Round { outcome, entrants }
    }
}

impl Round {
    /// The grants that follow from it.
    pub(super) fn into_plan(self, view: &View<'_>) -> Plan {
        let auction = Some(record(&self.outcome, view.offer().total()));
        let mut grants = Vec::new();
        for (entry, (app, jobs)) in self.outcome.entries.into_iter().zip(self.entrants) {
            let mut grant = |parts: Vec<Part>, cause, lease_fraction| {
                grants.extend(parts.into_iter().map(|Part { job, bundle }| Grant {
                    app,
                    job: jobs[job],
                    bundle,
                    cause,
                    lease_fraction,
                }));
            };
            grant(entry.kept, Cause::Auction, entry.lease_fraction);
            grant(entry.leftover, Cause::Leftover, 1.0);
        }
        Plan { grants, auction }
    }
}

impl Policy for Themis {
    fn name(&self) -> &'static str {
        "themis"
    }

    fn decide(&mut self, view: &View<'_>) -> Plan {
        self.round(view).into_plan(view)
    }
}

fn record(outcome: &Outcome, offered: u32) -> AuctionRecord {
    let won = || outcome.entries.iter().filter(|entry| !entry.won.is_empty());
    let winners = won().count();
    let kept: u32 = outcome.entries.iter().map(Entry::kept_gpus).sum();
    AuctionRecord {
        bidders: outcome.bidders() as u32,
        winners: winners as u32,
        leftover_gpus: offered - kept,
        min_c: won().map(|entry| entry.c).fold(1.0, f64::min),
        mean_c: if winners == 0 { 1.0 } else { won().map(|e| e.c).sum::<f64>() / winners as f64 },
        objective: outcome.objective,
        upper_bound: outcome.upper_bound,
        gap: outcome.gap(),
    }
}
