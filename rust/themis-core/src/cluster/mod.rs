//! The cluster: racks > machines > slots > GPUs, what is free in it, and where a gang fits.

mod bundle;
mod chunks;
mod fit;
mod free;
mod topology;

pub use bundle::Bundle;
pub use chunks::{Chunks, MAX_ROWS, Use};
pub use fit::{Near, fit};
pub use free::FreeSet;
pub use topology::{Locality, MachineSpec, Topology};
