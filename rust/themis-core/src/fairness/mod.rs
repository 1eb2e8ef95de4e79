//! Finish-time fairness: ideal times, what an app without GPUs is worth, and who is worst off.

mod filter;
mod ideal;
mod outside;

pub use filter::{FilterKey, participants, worst_first};
pub use ideal::{TIdReading, ideal_time, ideal_time_first};
pub use outside::{OutsideContext, OutsideOption};
