//! The cluster: racks > machines > slots > GPUs, what is free in it, and where a gang fits.

mod buckets;
mod bundle;
mod chunks;
mod fit;
mod free;
mod gpu_types;
mod host;
mod topology;

pub use bundle::Bundle;
pub use chunks::{Chunks, MAX_ROWS, Use};
pub use fit::{Fill, Near, fit, fit_by, fit_in};
pub use free::FreeSet;
pub use gpu_types::{MAX_TYPES, TypeSet, Within};
pub use host::{Host, Openings};
pub use topology::{Locality, MachineSpec, Topology};
