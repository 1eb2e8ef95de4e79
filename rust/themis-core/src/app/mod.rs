//! An app as the arbiter sees it: its jobs, what GPUs are worth to it, and how it divides them.

mod bid;
mod claim;
mod profile;
mod state;

pub use bid::{Part, Pattern, Placed};
pub use profile::Profile;
pub use state::{AppState, Job, Stopping, log_v};
