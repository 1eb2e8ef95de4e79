//! The simulator: a cluster, a workload and a policy in, an event log out.
//!
//! # Ordering contract
//! Time is integer microseconds. At one instant, in this order: changes of the cluster's capacity,
//! job ends (jobs on GPUs that go at that instant end first), arrivals, lease expiries, then one
//! scheduling decision over all GPUs that are free. Release comes before
//! allocation, so that no GPU is ever used twice. Equal events keep the order of their app and
//! job numbers, which the caller gives by (arrival, app id) and (submission, job id).
//!
//! # Cost
//! Events, not ticks: a lease that nobody competes for is extended without an event, so that an
//! idle gap or a long job alone costs nothing.
//!
//! The crate reads no clock and no files and holds no global state: the same input gives the same
//! log, to the last bit.

#![forbid(unsafe_code)]

mod apply;
mod capacity;
mod cause;
mod contention;
mod draws;
mod engine;
mod error;
mod eviction;
mod expiry;
mod failures;
mod grants;
mod lease_clock;
mod level;
mod living;
mod log;
mod plan;
mod plan_check;
mod policy;
mod promise;
mod quarantine;
mod queue;
mod quotas;
mod report;
mod reservation;
mod search;
mod seats;
mod settings;
mod settle;
mod sharing;
mod state;
mod sum;
mod tenure;
mod usage_log;
mod view;
mod workload;

pub use capacity::{Change, ChangeCause, Cluster};
pub use cause::Cause;
pub use draws::SeededDraws;
pub use engine::{Progress, simulate, simulate_with};
pub use error::SimError;
pub use log::{
    AppColumns, AuctionColumns, CapacityColumns, EventLog, JobColumns, LeaseColumns, UsageColumns,
};
pub use plan::{AuctionRecord, Grant, Plan, Wishes};
pub use policy::{BidColumns, POLICIES, Policy, Watch, policy_by_name};
pub use settings::{LeaseMode, Settings};
pub use state::Agents;
pub use themis_core::schedulers::{AppScheduler, Failed, SchedulerKind, SchedulerRules};
pub use view::{Candidate, View};
pub use workload::{AppSpec, Claim, JobSpec, Tenant, Workload};
