//! What was freed, and the C library keeps.

use pyo3::prelude::*;

/// Gives the system back what was freed.
///
/// glibc keeps the gaps between blocks that are in use: after a log of a million jobs has become tables,
/// column by column, 140 MiB. Other C libraries give them back by themselves, or never.
#[pyfunction]
pub(crate) fn give_back(py: Python<'_>) {
    py.detach(c_library::give_back);
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod c_library {
    unsafe extern "C" {
        fn malloc_trim(pad: usize) -> i32;
    }

    pub(super) fn give_back() {
        // SAFETY: it touches nothing that is in use, and other threads may allocate meanwhile.
        unsafe { malloc_trim(0) };
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod c_library {
    pub(super) fn give_back() {}
}
