//! An app as the arbiter sees it: its jobs, what GPUs are worth to it, and how it divides them.

mod bid;
mod claim;
mod demand;
mod ladder;
mod mixture;
mod profile;
mod relaxed;
mod scaling;
mod speeds;
mod stake;
mod state;
mod value;

pub(crate) use bid::shares;
pub use bid::{Part, Pattern, Placed};
pub use demand::Demand;
pub(crate) use demand::divide;
pub use ladder::Reach;
pub(crate) use ladder::Step;
pub use profile::Profile;
pub use relaxed::Relaxed;
pub use scaling::Scaling;
pub use speeds::{OwnGpus, Pool, Speeds};
pub use stake::Stake;
pub use state::{Alone, AppState, Job, Stopping, log_v, rho_of};
pub use value::Value;
