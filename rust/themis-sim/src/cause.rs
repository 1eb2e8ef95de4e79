//! Why leases begin and end.

/// Where a lease came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cause {
    /// Won in an auction.
    Auction = 0,
    /// Left over from an auction.
    Leftover = 1,
    /// Granted by another policy.
    Policy = 2,
    /// The same GPUs for another lease.
    Renewal = 3,
    /// Set aside for a gang that had waited too long.
    Reservation = 4,
    /// Room on a GPU that is held for another fraction of it.
    Shared = 5,
}

/// Why a lease ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum EndedBy {
    JobEnd = 0,
    AppEnd = 1,
    Expired = 2,
    Horizon = 3,
    Renewal = 4,
    /// The GPU left the cluster as planned.
    Withdrawn = 5,
    /// Its machine failed.
    Failure = 6,
}
