//! The Python module `kafka_assignors._core`: conversions only, no logic.

mod arrow;
mod callback;
mod custom;
mod embedded;
mod errors;
mod expression;
mod group;
mod interrupt;
mod leader;
mod membership;
mod options;
mod partitioner;
mod plan;
mod protocol;
mod server_side;
mod wire;

use pyo3::prelude::*;

/// Bindings of the Rust core. Private: the public names live in `kafka_assignors`.
#[pymodule]
mod _core {
    use kafka_assignors_core::planning::score;
    use kafka_assignors_core::protocol::record_batch::DEFAULT_RECORD_LIMIT;
    use pyo3::prelude::*;
    use pyo3::pybacked::PyBackedStr;
    use pyo3::types::PyDict;

    #[pymodule_export]
    use crate::arrow::{Assignments, DecodedBatches, OffsetsTopic, Replay};
    #[pymodule_export]
    use crate::callback::Uninterrupted;
    #[pymodule_export]
    use crate::custom::{CustomGroup, assign_restricted, open_group, open_joined};
    #[pymodule_export]
    use crate::embedded::EmbeddedBroker;
    #[pymodule_export]
    use crate::expression::Expression;
    use crate::group::read_group;
    use crate::leader;
    #[pymodule_export]
    use crate::membership::Membership;
    #[pymodule_export]
    use crate::options::ownerless_ms;
    use crate::options::{lag_strategy, strategy};
    #[cfg(feature = "bench")]
    #[pymodule_export]
    use crate::partitioner::partition_floor;
    #[pymodule_export]
    use crate::partitioner::{
        AdaptivePartitioner, DefaultPartitioner, RoundRobinPartitioner, UniformStickyPartitioner, murmur2,
        murmur2_column, partitions_of, partitions_of_column, register_cluster_type,
    };
    #[pymodule_export]
    use crate::plan::Plan;
    #[pymodule_export]
    use crate::protocol::cluster::{
        decode_api_versions, decode_find_coordinator, decode_metadata, encode_api_versions, encode_find_coordinator,
        encode_metadata,
    };
    #[pymodule_export]
    use crate::protocol::group_admin::{
        decode_consumer_group_describe, decode_describe_groups, decode_list_groups, encode_consumer_group_describe,
        encode_describe_groups, encode_list_groups,
    };
    #[pymodule_export]
    use crate::protocol::offsets::{
        decode_list_offsets, decode_offset_fetch, encode_list_offsets, encode_offset_fetch,
    };
    #[pymodule_export]
    use crate::protocol::sasl::{
        decode_sasl_authenticate, decode_sasl_handshake, encode_sasl_authenticate, encode_sasl_handshake,
    };
    #[pymodule_export]
    use crate::protocol::topics::{decode_describe_configs, encode_describe_configs};
    #[pymodule_export]
    use crate::protocol::{error_name, protocol_versions};
    #[pymodule_export]
    use crate::server_side::ServerSideGroup;
    #[pymodule_export]
    use crate::wire::{
        decode_assignment, decode_cooperative_user_data, decode_custom_user_data, decode_sticky_user_data,
        decode_stream_join_user_data, decode_subscription,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("DEFAULT_RECORD_LIMIT", DEFAULT_RECORD_LIMIT)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("build_profile", if cfg!(debug_assertions) { "debug" } else { "release" })?;
        Ok(())
    }

    /// Plans a group of Python objects.
    #[pyfunction]
    #[pyo3(signature = (name, mode, racks, topics, members, generation))]
    fn assign(
        py: Python<'_>,
        name: &str,
        mode: &str,
        racks: &str,
        topics: &Bound<'_, PyDict>,
        members: &Bound<'_, PyAny>,
        generation: Option<i32>,
    ) -> PyResult<Plan> {
        let strategy = strategy(name, mode, racks)?;
        Plan::solve(py, read_group(topics, members, None)?, strategy, generation)
    }

    /// Plans a rebalance, from metadata bytes to assignment bytes. `handed_out` is the leader's memory, `seconds` the
    /// time limit of the search for the best plan.
    #[pyfunction]
    #[pyo3(signature = (name, mode, racks, members, partitions, generation, handed_out=None, seconds=None))]
    #[expect(clippy::too_many_arguments, reason = "what Python gives, one by one")]
    fn perform_assignment<'py>(
        py: Python<'py>,
        name: &str,
        mode: &str,
        racks: &str,
        members: &Bound<'py, PyAny>,
        partitions: &Bound<'py, PyDict>,
        generation: Option<i32>,
        handed_out: Option<leader::Remembered>,
        seconds: Option<f64>,
    ) -> PyResult<(Bound<'py, PyDict>, Plan)> {
        let rebalance = leader::Rebalance { generation, seconds, remembered: handed_out };
        leader::perform_assignment(py, strategy(name, mode, racks)?, members, partitions, None, rebalance)
    }

    /// Plans a group of Python objects by lag. `options` are scope, skew and threshold; a threshold keeps owners.
    /// Without lags the owners keep their partitions.
    #[pyfunction]
    #[pyo3(signature = (options, topics, members, lags, generation))]
    fn assign_by_lag(
        py: Python<'_>,
        options: (PyBackedStr, Option<u32>, Option<u64>),
        topics: &Bound<'_, PyDict>,
        members: &Bound<'_, PyAny>,
        lags: Option<&Bound<'_, PyDict>>,
        generation: Option<i32>,
    ) -> PyResult<Plan> {
        let strategy = lag_strategy(&options.0, options.1, options.2)?;
        Plan::solve(py, read_group(topics, members, lags)?, strategy, generation)
    }

    /// Plans a rebalance by lag, from metadata bytes to assignment bytes. `options` as for `assign_by_lag`, `seconds`
    /// as for `perform_assignment`. Without lags the owners keep their partitions.
    #[pyfunction]
    #[pyo3(signature = (options, members, partitions, lags, generation, handed_out=None, seconds=None))]
    #[expect(clippy::too_many_arguments, reason = "what Python gives, one by one")]
    fn perform_assignment_by_lag<'py>(
        py: Python<'py>,
        options: (PyBackedStr, Option<u32>, Option<u64>),
        members: &Bound<'py, PyAny>,
        partitions: &Bound<'py, PyDict>,
        lags: Option<&Bound<'py, PyDict>>,
        generation: Option<i32>,
        handed_out: Option<leader::Remembered>,
        seconds: Option<f64>,
    ) -> PyResult<(Bound<'py, PyDict>, Plan)> {
        let rebalance = leader::Rebalance { generation, seconds, remembered: handed_out };
        let strategy = lag_strategy(&options.0, options.1, options.2)?;
        leader::perform_assignment(py, strategy, members, partitions, lags, rebalance)
    }

    /// Reads and writes as many bytes as `perform_assignment`, without planning: the cost of decoding and encoding
    /// alone.
    #[cfg(feature = "bench")]
    #[pyfunction]
    fn codec_floor<'py>(
        py: Python<'py>,
        name: &str,
        mode: &str,
        racks: &str,
        members: &Bound<'py, PyAny>,
        partitions: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyDict>> {
        leader::codec_floor(py, strategy(name, mode, racks)?, members, partitions)
    }

    /// Takes the members of `perform_assignment` and gives each its own metadata: the cost of Python's objects alone.
    #[cfg(feature = "bench")]
    #[pyfunction]
    fn boundary_floor<'py>(
        py: Python<'py>,
        members: &Bound<'py, PyAny>,
        partitions: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyDict>> {
        leader::boundary_floor(py, members, partitions)
    }

    /// The KIP-54 balance score of loads.
    #[pyfunction]
    #[expect(clippy::needless_pass_by_value, reason = "extracted from Python as a value")]
    fn balance_score(loads: Vec<u64>) -> u128 {
        score::balance_score(&loads)
    }
}
