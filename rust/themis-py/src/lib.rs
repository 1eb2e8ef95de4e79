//! Python bindings: columns in, columns out. Nothing here decides anything.

// Values that Python hands over arrive owned.
#![allow(clippy::needless_pass_by_value)]

mod agent;
mod auction;
mod cluster;
mod columns;
mod errors;
mod memory;
mod names;
mod policy;
mod simulate;
mod slots;
mod watch;
mod workload;

use pyo3::prelude::*;

/// The compiled core of Themis.
#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use crate::auction::{clear_auction, open_auction};
    #[pymodule_export]
    use crate::cluster::Cluster;
    #[pymodule_export]
    use crate::memory::give_back;
    #[pymodule_export]
    use crate::policy::PolicyOffer;
    #[pymodule_export]
    use crate::simulate::{build_info, simulate};
    #[pymodule_export]
    use crate::slots::number_slots;
    #[pymodule_export]
    use crate::watch::watch_auctions;
    #[pymodule_export]
    use crate::workload::Workload;
    use pyo3::exceptions::PyRuntimeWarning;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        if cfg!(debug_assertions) {
            let kind = module.py().get_type::<PyRuntimeWarning>();
            let message = c"themis._core is a debug build: many times slower, not for measuring";
            PyErr::warn(module.py(), &kind, message, 1)?;
        }
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
