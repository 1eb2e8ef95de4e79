//! Finish-time fairness, bids and the partial-allocation auction of *Themis: Fair and Efficient
//! GPU Cluster Scheduling* (Mahajan et al., NSDI 2020), as a pure library.
//!
//! Values in, an [`auction::Outcome`] out. The crate has no clock, no input or output, no threads
//! and no source of randomness: draws come from the caller ([`auction::Draws`]).
//!
//! # Determinism
//! Entrants are numbered by the caller in the order that decides ties (arrival, then app id).
//! Nothing iterates over a hash container, floats are compared with `total_cmp`, and sums run in
//! a fixed order: the same input gives the same outcome, to the last bit, on any thread.
//!
//! # One auction
//! Two apps contend for one machine of two GPUs. The first has waited long and wants both; the
//! product of their values is largest when it gets them.
//!
//! ```
//! use std::sync::Arc;
//! use themis_core::app::{AppState, Job, Profile, Stopping};
//! use themis_core::auction::{Bidder, Entrant, NoDraws, Rules, run_round};
//! use themis_core::cluster::{FreeSet, MachineSpec, Topology};
//!
//! let machine = MachineSpec { rack: 0, gpus: 2, slot_gpus: 2 };
//! let offer = FreeSet::full(Arc::new(Topology::new(&[machine])?));
//! let app = |elapsed_s| {
//!     let job = Job::waiting(2, 2, 100.0, Profile::PERFECT);
//!     let state = AppState::new(elapsed_s, 50.0, Stopping::All, vec![job]);
//!     let rho_empty = Some((elapsed_s + 600.0 + 50.0) / 50.0);
//!     Entrant { bidder: Bidder::App(state.with_rho_empty(rho_empty)), rank: (1.0 + elapsed_s / 50.0, 0.0) }
//! };
//! let rules = Rules { fairness_knob: 0.0, ..Rules::default() };
//! let outcome = run_round(&offer, vec![app(0.0), app(5_000.0)], &rules, &mut NoDraws);
//! assert_eq!(outcome.entries[1].granted_gpus() + outcome.entries[0].granted_gpus(), 2);
//! assert_eq!(outcome.unused.gpus(), 0);
//! # Ok::<(), themis_core::CoreError>(())
//! ```

#![forbid(unsafe_code)]

pub mod app;
pub mod auction;
pub mod cluster;
mod error;
pub mod fairness;
mod ids;
pub mod schedulers;

pub use error::CoreError;
pub use ids::{AppId, MachineId, RackId, SlotId};
