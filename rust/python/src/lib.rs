//! The Python module `kafka_assignors._core`: conversions only, no logic.
use pyo3::prelude::*;

/// Bindings of the Rust core. Private: the public names live in `kafka_assignors`.
#[pymodule]
mod _core {
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("build_profile", if cfg!(debug_assertions) { "debug" } else { "release" })?;
        Ok(())
    }
}
