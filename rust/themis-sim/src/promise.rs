//! What a gang that has waited too long is promised.

/// What a waiting job is promised: these GPUs (sorted) at that instant.
#[derive(Clone, Debug)]
pub(crate) struct Reservation {
    pub(crate) job: u32,
    pub(crate) gpus: Vec<u32>,
    pub(crate) at_us: i64,
}
