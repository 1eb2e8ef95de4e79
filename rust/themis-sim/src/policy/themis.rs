//! The paper's policy: the worst off bid for what is free (sections 3 and 4).

use super::Policy;
use crate::cause::Cause;
use crate::draws::SeededDraws;
use crate::plan::{AuctionRecord, Grant, Plan};
use crate::view::View;
use themis_core::app::Part;
use themis_core::auction::{Bidder, Entry, Outcome, run_round_asking};

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

/// One auction, and who could take part: apps in the order of entrants.
pub(super) struct Round {
    pub(super) outcome: Outcome,
    pub(super) apps: Vec<u32>,
}

impl Themis {
    /// Holds one auction.
    pub(super) fn round(&mut self, view: &View<'_>) -> Round {
        let apps: Vec<u32> = view.wanting().collect();
        let standings: Vec<_> = apps.iter().map(|app| view.standing(*app)).collect();
        let mut ask = |at: usize| bidder(view, apps[at]);
        let (offer, rules) = (view.offer(), view.rules());
        let outcome = run_round_asking(offer, &standings, &mut ask, rules, &mut self.draws);
        Round { outcome, apps }
    }
}

/// An app's agent.
pub(super) fn bidder(view: &View<'_>, app: u32) -> Bidder {
    Bidder::App(view.reported(app).state)
}

impl Round {
    /// The grants that follow from it.
    pub(super) fn into_plan(self, view: &View<'_>) -> Plan {
        let auction = Some(record(&self.outcome, view.offer().total()));
        let mut grants = Vec::new();
        for entry in self.outcome.entries {
            let app = self.apps[entry.entrant];
            let jobs = view.open_jobs(app);
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
