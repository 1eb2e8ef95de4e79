//! One map from core errors to the Python exceptions of `themis.errors`.

use pyo3::PyErr;
use pyo3::exceptions::PyKeyboardInterrupt;
use themis_core::CoreError;
use themis_sim::SimError;

pyo3::import_exception!(themis.errors, ClusterError);
pyo3::import_exception!(themis.errors, PolicyAnswerError);
pyo3::import_exception!(themis.errors, PolicyError);
pyo3::import_exception!(themis.errors, ScenarioError);
pyo3::import_exception!(themis.errors, ThemisError);
pyo3::import_exception!(themis.errors, TraceError);

/// Maps a core error.
pub(crate) fn core_error(error: &CoreError) -> PyErr {
    let message = error.to_string();
    match error {
        CoreError::Cluster(_) => ClusterError::new_err(message),
        CoreError::Bid { .. } => ScenarioError::new_err(message),
        _ => ThemisError::new_err(message),
    }
}

/// Maps a simulator error.
pub(crate) fn sim_error(error: &SimError) -> PyErr {
    let message = error.to_string();
    match error {
        SimError::Workload { .. } => TraceError::new_err(message),
        SimError::Capacity { .. } => ClusterError::new_err(message),
        SimError::Settings { .. } => ScenarioError::new_err(message),
        SimError::UnknownPolicy(_) => PolicyError::new_err(message),
        SimError::Policy { .. } | SimError::Wake { .. } => PolicyAnswerError::new_err(message),
        SimError::Interrupted => PyKeyboardInterrupt::new_err(message),
        _ => ThemisError::new_err(message),
    }
}

/// A value that is not one of the listed names.
pub(crate) fn unknown_name(field: &str, value: &str, expected: &[&str]) -> PyErr {
    let expected = expected.join(", ");
    ScenarioError::new_err(format!("{field} is {value:?}, expected one of {expected}"))
}
