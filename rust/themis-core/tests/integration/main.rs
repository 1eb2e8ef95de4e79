//! The core from outside, against naive rules, on random clusters.

mod bids;
mod cluster;
mod placing;
mod rounds;
