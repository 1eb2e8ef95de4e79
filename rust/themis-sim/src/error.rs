//! What the simulator refuses.

/// Why a simulation could not start or go on.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// The workload breaks its schema; nothing was run.
    #[error("workload: {what} {index}: {field} is {value}, expected {expected}")]
    Workload {
        /// "app" or "job".
        what: &'static str,
        /// Its number.
        index: usize,
        /// The offending field.
        field: &'static str,
        /// The value found.
        value: String,
        /// What the field accepts.
        expected: &'static str,
    },
    /// A setting is out of range; nothing was run.
    #[error("settings: {field} is {value}, expected {expected}")]
    Settings {
        /// The setting.
        field: &'static str,
        /// The value found.
        value: String,
        /// What it accepts.
        expected: &'static str,
    },
    /// A change of the cluster's capacity is out of range; nothing was run.
    #[error("capacity: row {row}: {field} is {value}, expected {expected}")]
    Capacity {
        /// Its row.
        row: usize,
        /// The offending field.
        field: &'static str,
        /// The value found.
        value: String,
        /// What the field accepts.
        expected: String,
    },
    /// There is no policy of this name.
    #[error("policy: {0:?} is unknown")]
    UnknownPolicy(String),
    /// A policy's answer can't be carried out; the state is unchanged.
    #[error("policy {policy}: app {app}, job {job}: {problem}")]
    Policy {
        /// The policy.
        policy: String,
        /// The app's number.
        app: u32,
        /// The job's number.
        job: u32,
        /// What is wrong, and the slot or count concerned.
        problem: String,
    },
    /// A policy from outside could give no answer; whoever made it knows why.
    #[error("policy {0}: no answer")]
    Undecided(String),
    /// A policy asks to be woken before time goes on.
    #[error("policy {policy}: asks to be woken at {wake_us} us, expected later than {now_us} us")]
    Wake {
        /// The policy.
        policy: String,
        /// When it would be woken.
        wake_us: i64,
        /// Now.
        now_us: i64,
    },
    /// An app scheduler's verdict can't be carried out.
    #[error("scheduler of app {app}: job {job}: {problem}")]
    Scheduler {
        /// The app's number.
        app: u32,
        /// The job's number within its app.
        job: usize,
        /// What is wrong.
        problem: String,
    },
    /// A scheduler from outside could give no answer; whoever made it knows why.
    #[error("scheduler of app {app}: no answer")]
    Unanswered {
        /// The app's number.
        app: u32,
    },
    /// The run goes on for longer than the clock can tell.
    #[error(
        "the run goes on beyond 4.6e12 seconds (140,000 years): set horizon_s, or check the units of the trace"
    )]
    Endless,
    /// Machines fail so often that nothing ends any more.
    #[error(
        "no job has ended for {0} events, the last at {1} s: machines fail faster than jobs get on; set horizon_s, or a longer mtbf_s or shorter checkpoint_every_s"
    )]
    Stalled(u64, i64),
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}
