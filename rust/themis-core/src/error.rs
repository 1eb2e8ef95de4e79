//! What the core refuses.

/// An input that the core cannot work with. None is fatal: nothing was changed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CoreError {
    /// The cluster has no machine, or a machine has no GPU.
    #[error("cluster: {0}")]
    Cluster(String),
    /// A bid or an app state holds a value out of range.
    #[error("bid of app {app}: {field} is {value}, expected {expected}")]
    Bid {
        /// Position of the app in the request.
        app: usize,
        /// Name of the offending field.
        field: &'static str,
        /// The value found.
        value: String,
        /// What the field accepts.
        expected: &'static str,
    },
}
