//! The auctions of a run as one app saw them.

use super::Policy;
use super::themis::{Themis, bidder};
use crate::plan::Plan;
use crate::settings::Settings;
use crate::view::View;
use themis_core::app::Pattern;
use themis_core::auction::{Entry, Outcome};

/// One app's part in the auctions of a run, one row each.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)] // one vector a column; the names say it
pub struct BidColumns {
    pub at_us: Vec<i64>,
    pub visible: Vec<bool>,
    pub log_v_empty: Vec<f64>,
    /// Its best bid and the GPUs of it; NaN and 0 where it made none.
    pub best_log_v: Vec<f64>,
    pub best_gpus: Vec<u32>,
    pub won_gpus: Vec<u32>,
    pub c: Vec<f64>,
    pub kept_gpus: Vec<u32>,
    pub lease_fraction: Vec<f64>,
    pub leftover_gpus: Vec<u32>,
    pub reason: Vec<&'static str>,
}

impl BidColumns {
    fn push(&mut self, at_us: i64, entry: &Entry) {
        let best = entry.patterns.iter().max_by(|a, b| a.log_v.total_cmp(&b.log_v));
        self.at_us.push(at_us);
        self.visible.push(entry.visible);
        self.log_v_empty.push(entry.log_v_empty);
        self.best_log_v.push(best.map_or(f64::NAN, |pattern| pattern.log_v));
        self.best_gpus.push(best.map_or(0, Pattern::gpus));
        self.won_gpus.push(entry.won_gpus());
        self.c.push(entry.c);
        self.kept_gpus.push(entry.kept_gpus());
        self.lease_fraction.push(entry.lease_fraction);
        self.leftover_gpus.push(entry.granted_gpus() - entry.kept_gpus());
        self.reason.push(entry.reason.as_str());
    }
}

/// The policy `themis`, with notes: how one app fares in every auction, and one auction whole.
#[derive(Clone, Debug)]
pub struct Watch {
    themis: Themis,
    app: u32,
    at_us: Option<i64>,
    /// How the app fared.
    pub bids: BidColumns,
    /// The auction at the instant that was asked for, if there was one: who took part, and what
    /// came of it.
    pub auction: Option<(Vec<u32>, Outcome)>,
}

impl Watch {
    /// Watches an app, and the auction at an instant.
    pub fn new(settings: &Settings, app: u32, at_us: Option<i64>) -> Self {
        let themis = Themis::new(settings.seed);
        Self { themis, app, at_us, bids: BidColumns::default(), auction: None }
    }
}

impl Policy for Watch {
    fn name(&self) -> &str {
        self.themis.name()
    }

    fn decide(&mut self, view: &View<'_>) -> Plan {
        let mut round = self.themis.round(view);
        let apps = &round.apps;
        round.outcome.ask_rest(apps.len(), &mut |at| bidder(view, apps[at]));
        if let Some(at) = apps.iter().position(|app| *app == self.app) {
            self.bids.push(view.now_us(), &round.outcome.entries[at]);
        }
        if self.at_us == Some(view.now_us()) {
            self.auction = Some((apps.clone(), round.outcome.clone()));
        }
        round.into_plan(view)
    }
}
