//! Python bindings: columns in, columns out. Nothing here decides anything.

// Values that Python hands over arrive owned.
#![allow(clippy::needless_pass_by_value)]

mod auction;
mod columns;
mod errors;
mod names;
mod simulate;

use pyo3::prelude::*;

/// The compiled core of Themis.
#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use crate::auction::clear_auction;
    #[pymodule_export]
    use crate::simulate::{Cluster, Workload, build_info, simulate};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
