//! Policies: one interface, one engine.
//!
//! A policy looks at a [`View`] and answers with grants; only the engine changes anything, after
//! checking the answer. Adding a policy is one file and one line of [`POLICIES`].
//!
//! Most are a key and one of three ways to serve: `in_order` where keys stand beforehand, `greedy`
//! where what is left for an app decides its key, `in_line` where jobs keep their GPUs.
//! Apps that wait and ask for the same are alike to most rules of the second kind: they are valued
//! as one line ([`View::lines`]), so that a decision costs what differs, not what waits.

mod backfill;
mod drf;
mod fifo;
mod fsp;
mod gandiva;
mod greedy;
mod head_start;
mod in_line;
mod in_order;
mod las;
mod max_rho;
mod optimus;
mod partition;
mod shared_cluster;
mod slack;
mod slaq;
mod srsf;
mod srtf;
mod themis;
mod watch;

pub use watch::{BidColumns, Watch};

use crate::plan::{Plan, Wishes};
use crate::settings::Settings;
use crate::view::View;
use themis_core::schedulers::Failed;

/// A scheduling policy.
pub trait Policy {
    /// Its name.
    fn name(&self) -> &str;

    /// Whether grants end with a lease. Without, a job keeps its GPUs until it ends.
    fn leases(&self) -> bool {
        true
    }

    /// Whether it looks at apps that wait by [`View::lines`], which are only kept then.
    fn asks_by_lines(&self) -> bool {
        false
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
