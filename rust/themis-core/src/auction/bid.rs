//! A bid: what an app can be given of an offer, and what that is worth to it.

use super::bidder::{Bidder, Table, TableRow};
use super::prices::Prices;
use crate::app::{AppState, Part, Pattern, Placed, Reach, Stake, Step, shares};
use crate::cluster::{Chunks, Fill, FreeSet, Locality, MAX_ROWS, Topology, Within};
use crate::ids::SlotId;

/// The reach of a row of a table.
const ANYWHERE: Reach = Reach { level: Locality::Cluster, pool: 0 };

/// A bidder with its bid on the offer.
#[derive(Clone, Debug)]
pub(super) struct Bid<'a> {
    pub(super) bidder: &'a Bidder,
    /// Rows worth more than nothing that the offer could serve.
    pub(super) patterns: Vec<Pattern>,
    /// log V of winning nothing, and of the best pattern or nothing.
    pub(super) nothing: f64,
    pub(super) most: f64,
    basis: Basis<'a>,
}

/// What the patterns of a bid rest on.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all bids are those of apps")]
enum Basis<'a> {
    App(&'a AppState, Stake),
    Table(&'a Table),
}

/// GPUs for one job, and where they may lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) job: usize,
    pub(super) gpus: u32,
    pub(super) within: Within,
    /// A slot in whose part they must lie.
    pub(super) near: Option<SlotId>,
}

impl Ask {
    /// So many GPUs for a job of an app, within a reach.
    pub(super) fn of(
        app: &AppState,
        topology: &Topology,
        (job, gpus): (usize, u32),
        reach: Reach,
    ) -> Self {
        let state = &app.jobs[job];
        let near = state.held.iter().next().map(|(slot, _)| slot);
        Self { job, gpus, within: state.within(topology, reach), near }
    }

    /// Whether it is the same, of whichever job.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let of = |ask: &Self| (ask.gpus, ask.within, ask.near);
        of(self) == of(other)
    }
}

/// A pattern of a bid, or nothing, at given prices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    /// log V above its price.
    pub(super) surplus: f64,
    pub(super) gpus: u32,
    pub(super) pattern: Option<usize>,
}

impl<'a> Bid<'a> {
    /// A bidder that has not bid yet.
    pub(super) fn none(bidder: &'a Bidder, topology: &Topology) -> Self {
        let (basis, nothing) = match bidder {
            Bidder::App(app) => {
                let stake = app.stake(topology);
                let nothing = stake.value.floor();
                (Basis::App(app, stake), nothing)
            }
            Bidder::Table(table) => (Basis::Table(table), table.log_v_empty),
        };
        Self { bidder, patterns: Vec::new(), nothing, most: nothing, basis }
    }

    /// Its bid on an offer; where bidders are few, an app of many jobs bids mixtures too.
    pub(super) fn on(mut self, offer: &FreeSet, chunks: &Chunks, few: bool) -> Self {
        self.patterns = match &self.basis {
            Basis::App(app, stake) => app.patterns_of(stake, offer, chunks),
            Basis::Table(table) => rows_of(table, offer, chunks),
        };
        if let (Basis::App(app, stake), true) = (&self.basis, few) {
            self.patterns.extend(app.mixtures(stake, offer, chunks));
        }
        self.most = self.patterns.iter().map(|pattern| pattern.log_v).fold(self.nothing, f64::max);
        self
    }

    /// Finds the GPUs of a pattern and takes them from `free`, or leaves it unchanged.
    pub(super) fn place(&self, pattern: usize, free: &mut FreeSet, fill: Fill) -> Option<Placed> {
        let pattern = &self.patterns[pattern];
        match &self.basis {
            Basis::App(app, stake) => app.place_of(pattern, stake, free, fill),
            Basis::Table(table) => {
                let row = &table.rows[pattern.steps as usize];
                if !free.has(&row.bundle) {
                    return None;
                }
                free.take(&row.bundle);
                let parts = vec![Part { job: 0, bundle: row.bundle.clone() }];
                Some(Placed { parts, log_v: row.log_v })
            }
        }
    }

    /// An app, and the steps that its patterns serve, from the first on; `None` for a table.
    pub(super) fn app_and_steps(&self) -> Option<(&AppState, &[Step])> {
        match &self.basis {
            Basis::App(app, stake) => Some((*app, &stake.steps)),
            Basis::Table(_) => None,
        }
    }

    /// What a pattern asks for, job by job.
    pub(super) fn for_each_ask(
        &self,
        topology: &Topology,
        pattern: usize,
        mut each: impl FnMut(Ask),
    ) {
        let pattern = &self.patterns[pattern];
        match &self.basis {
            Basis::App(app, stake) => {
                for (step, reach) in shares(pattern, &stake.steps) {
                    each(Ask::of(app, topology, (step.job(), step.gpus), reach));
                }
            }
            Basis::Table(table) => {
                let within = Within::from(Locality::Slot);
                for (slot, gpus) in table.rows[pattern.steps as usize].bundle.iter() {
                    each(Ask { job: 0, gpus, within, near: Some(slot) });
                }
            }
        }
    }

    /// GPUs of a pattern that must lie together.
    pub(super) fn largest_part(&self, pattern: &Pattern) -> u32 {
        match &self.basis {
            Basis::App(app, stake) if app.jobs.len() > 1 => stake.largest,
            _ => pattern.gpus(),
        }
    }

    /// What its patterns leave out is worth so much above these prices at most, if anything: an app of
    /// many jobs could be served in more ways.
    pub(super) fn beyond(
        &self,
        offer: &FreeSet,
        chunks: &Chunks,
        prices: &[f64; MAX_ROWS],
    ) -> Option<f64> {
        match &self.basis {
            Basis::App(app, stake) if app.jobs.len() > 1 && stake.could_mix(prices) => {
                Some(app.relaxed(stake, offer, chunks).most(prices))
            }
            _ => None,
        }
    }

    /// Nothing, then every pattern, at what they cost this bidder.
    pub(super) fn choices(&self, bidder: usize, prices: &Prices) -> impl Iterator<Item = Choice> {
        let nothing = Choice { surplus: self.nothing, gpus: 0, pattern: None };
        let patterns = self.patterns.iter().enumerate().map(move |(at, pattern)| Choice {
            surplus: pattern.log_v - prices.cost(bidder, pattern),
            gpus: pattern.gpus(),
            pattern: Some(at),
        });
        std::iter::once(nothing).chain(patterns)
    }
}

/// The rows of a table that are worth more than nothing, and that the offer could serve.
fn rows_of(table: &Table, offer: &FreeSet, chunks: &Chunks) -> Vec<Pattern> {
    let useful = |row: &TableRow| {
        !row.bundle.is_empty() && row.log_v > table.log_v_empty && offer.has(&row.bundle)
    };
    let rows = table.rows.iter().enumerate().filter(|(_, row)| useful(row));
    rows.map(|(at, row)| Pattern {
        steps: at as u32,
        near_steps: 0,
        near: ANYWHERE,
        reach: ANYWHERE,
        log_v: row.log_v,
        uses: chunks.of_bundle(offer.topology(), &row.bundle),
    })
    .collect()
}
