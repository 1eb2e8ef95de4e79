//! Finish-time fairness: ideal times, what an app without GPUs is worth, and who is worst off.

mod filter;
mod ideal;
mod outside;
mod phases;

pub use filter::{FilterKey, participants, worst_first};
pub use ideal::{Demand, TIdReading, ideal_time, ideal_time_first};
pub use outside::{OutsideContext, OutsideOption};
pub use phases::{HalvingPhase, PhaseCap, halving_phases, halving_time};
