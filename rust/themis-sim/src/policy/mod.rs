//! Policies: one interface, one engine.
//!
//! A policy looks at a [`View`] and answers with grants; only the engine changes anything, after
//! checking the answer. Adding a policy is one file and one line of [`POLICIES`].
//!
//! Most are a key and one of three ways to serve: `in_order` where keys stand beforehand, `greedy`
//! where what is left for an app decides its key, `in_line` where jobs keep their GPUs.

mod backfill;
mod drf;
mod fifo;
mod fsp;
mod gandiva;
mod greedy;
mod in_line;
mod in_order;
mod las;
mod max_rho;
mod optimus;
mod partition;
mod slack;
mod slaq;
mod srsf;
mod srtf;
mod themis;
mod watch;

pub use watch::{BidColumns, Watch};

use crate::settings::Settings;
use crate::view::View;
use themis_core::cluster::Bundle;
use themis_core::schedulers::Failed;

/// Where a lease came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cause {
    /// Won in an auction.
    Auction = 0,
    /// Left over from an auction.
    Leftover = 1,
    /// Granted by another policy.
    Policy = 2,
    /// The same GPUs for another lease.
    Renewal = 3,
    /// Set aside for a gang that had waited too long.
    Reservation = 4,
    /// Room on a GPU that is held for another fraction of it.
    Shared = 5,
}

/// GPUs for one job of one app.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    /// The app's number.
    pub app: u32,
    /// The job's number.
    pub job: u32,
    /// The GPUs, beyond those that it keeps.
    pub bundle: Bundle,
    /// Where they come from.
    pub cause: Cause,
    /// The share of a lease for which they are granted.
    pub lease_fraction: f64,
}

impl Grant {
    /// A whole lease, without an auction.
    pub fn new(app: u32, job: u32, bundle: Bundle) -> Self {
        Self { app, job, bundle, cause: Cause::Policy, lease_fraction: 1.0 }
    }
}

/// The figures of one auction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AuctionRecord {
    /// Bidders that saw the offer.
    pub bidders: u32,
    /// Bidders that won something.
    pub winners: u32,
    /// GPUs of the offer that no winner kept.
    pub leftover_gpus: u32,
    /// Least hidden payment c.
    pub min_c: f64,
    /// Mean hidden payment c over the winners.
    pub mean_c: f64,
    /// Sum of log V over the bidders.
    pub objective: f64,
    /// Certified bound on it.
    pub upper_bound: f64,
    /// Certified gap, as a ratio of geometric means.
    pub gap: f64,
}

/// A policy's answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The grants; whatever is offered and not granted stays free.
    pub grants: Vec<Grant>,
    /// The auction behind them, if there was one.
    pub auction: Option<AuctionRecord>,
}

/// What a policy asks for beside grants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wishes {
    /// An instant at which to be asked again, at the latest.
    pub wake_us: Option<i64>,
    /// Jobs without GPUs that it will never serve: app, job, why.
    pub rejects: Vec<(u32, u32, String)>,
}

/// A scheduling policy.
pub trait Policy {
    /// Its name.
    fn name(&self) -> &str;

    /// Whether grants end with a lease. Without, a job keeps its GPUs until it ends.
    fn leases(&self) -> bool {
        true
    }

    /// Who gets which of the offered GPUs.
    fn decide(&mut self, view: &View<'_>) -> Plan;

    /// What it asks for beside the plan that it has just made.
    ///
    /// # Errors
    /// It could make no plan; whoever made the policy knows why.
    fn wishes(&mut self) -> Result<Wishes, Failed> {
        Ok(Wishes::default())
    }
}

type Constructor = fn(&Settings) -> Box<dyn Policy>;

/// Every built-in policy by name.
pub const POLICIES: [(&str, Constructor); 14] = [
    ("themis", |settings| Box::new(themis::Themis::new(settings.seed))),
    ("fifo", |_| Box::new(fifo::Fifo)),
    ("tiresias", |_| Box::new(las::Las)),
    ("fifo_backfill", |_| Box::new(backfill::FifoBackfill)),
    ("gandiva", |_| Box::new(gandiva::Gandiva)),
    ("optimus", |_| Box::new(optimus::Optimus)),
    ("slaq", |_| Box::new(slaq::Slaq)),
    ("srtf", |_| Box::new(srtf::Srtf)),
    ("srsf", |_| Box::new(srsf::Srsf)),
    ("drf", |_| Box::new(drf::Drf)),
    ("static", |_| Box::new(partition::Partition)),
    ("fsp", |_| Box::<fsp::Fsp>::default()),
    ("slack", |_| Box::new(slack::Slack)),
    ("max_rho", |_| Box::new(max_rho::MaxRho)),
];

/// A built-in policy.
pub fn policy_by_name(name: &str, settings: &Settings) -> Option<Box<dyn Policy>> {
    let (_, new) = POLICIES.iter().find(|(known, _)| *known == name)?;
    Some(new(settings))
}
