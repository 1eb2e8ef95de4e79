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

impl Policy for Themis {
    fn name(&self) -> &'static str {
        "themis"
    }

    fn decide(&mut self, view: &View<'_>) -> Plan {
        let mut entrants = Vec::new();
        let mut jobs: Vec<(u32, Vec<u32>)> = Vec::new();
        for candidate in view.reports() {
            let rank = view.rank(&candidate);
            let Candidate { app, jobs: numbers, state } = candidate;
            entrants.push(Entrant { bidder: Bidder::App(state), rank });
            jobs.push((app, numbers));
        }
        let outcome = run_round(view.offer(), entrants, view.rules(), &mut self.draws);
        let auction = Some(record(&outcome, view.offer().total()));
        let mut grants = Vec::new();
        for (entry, (app, numbers)) in outcome.entries.into_iter().zip(jobs) {
            let mut grant = |parts: Vec<Part>, cause, lease_fraction| {
                grants.extend(parts.into_iter().map(|Part { job, bundle }| Grant {
                    app,
                    job: numbers[job],
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
