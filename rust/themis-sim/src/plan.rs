//! What a policy answers: grants, and wishes beside them.

use crate::cause::Cause;
use themis_core::cluster::Bundle;

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
