//! The Python module `kafka_assignors._core`: conversions only, no logic.

mod arrow;
mod callback;
mod coordinator;
mod embedded;
mod errors;
mod expression;
mod group;
mod leader;
mod membership;
mod options;
mod partitioner;
mod plan;
mod protocol;
mod watch;
mod wire;

use pyo3::prelude::*;

/// Bindings of the Rust core. Private: the public names live in `kafka_assignors`.
#[pymodule]
mod _core {
    use kafka_assignors_core::leader::DEFAULT_RECORD_LIMIT;
    use kafka_assignors_core::score;
    use pyo3::prelude::*;
    use pyo3::pybacked::PyBackedStr;
    use pyo3::types::PyDict;

    #[pymodule_export]
    use crate::arrow::{Assignments, DecodedBatches, OffsetsTopic, Replay};
    #[pymodule_export]
    use crate::callback::Uninterrupted;
    #[pymodule_export]
    use crate::coordinator::Coordinator;
    #[pymodule_export]
    use crate::embedded::EmbeddedBroker;
    #[pymodule_export]
    use crate::expression::Expression;
    use crate::group::read_group;
    use crate::leader;
    #[pymodule_export]
    use crate::membership::Membership;
    use crate::options::{lag_strategy, strategy};
    #[pymodule_export]
    use crate::partitioner::{
        AdaptivePartitioner, DefaultPartitioner, RoundRobinPartitioner, UniformStickyPartitioner, murmur2,
        murmur2_column, partition_floor, partitions_of, partitions_of_column,
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
    use crate::protocol::topics::{decode_describe_topic_configs, encode_describe_topic_configs};
    #[pymodule_export]
    use crate::protocol::{error_name, protocol_versions};
    #[pymodule_export]
    use crate::wire::{
        decode_assignment, decode_cooperative_user_data, decode_sticky_user_data, decode_stream_join_user_data,
        decode_subscription,
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

    /// Plans a rebalance, bytes to bytes. `handed_out` is the leader's memory, `seconds` how long the search for the best plan may
    /// take.
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
        let (strategy, forming) = (strategy(name, mode, racks)?, (generation, seconds));
        leader::perform_assignment(py, strategy, members, partitions, None, forming, handed_out)
    }

    /// Plans a group of Python objects by lag; `options` are scope, skew and, to keep owners, threshold. Without lags owners keep what they have.
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

    /// Plans a rebalance by lag, bytes to bytes; `options` as for `assign_by_lag`, `seconds` as for `perform_assignment`. Without
    /// lags owners keep what they have.
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
        let (strategy, forming) = (lag_strategy(&options.0, options.1, options.2)?, (generation, seconds));
        leader::perform_assignment(py, strategy, members, partitions, lags, forming, handed_out)
    }

    /// Reads what `perform_assignment` reads and writes as much as it writes, without balancing anything: what the bytes
    /// alone cost.
    #[pyfunction]
    #[pyo3(signature = (name, mode, racks, members, partitions, generation))]
    fn codec_floor<'py>(
        py: Python<'py>,
        name: &str,
        mode: &str,
        racks: &str,
        members: &Bound<'py, PyAny>,
        partitions: &Bound<'py, PyDict>,
        generation: Option<i32>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let _ = generation;
        leader::codec_floor(py, strategy(name, mode, racks)?, members, partitions)
    }

    /// The KIP-54 balance score of loads.
    #[pyfunction]
    #[expect(clippy::needless_pass_by_value, reason = "extracted from Python as a value")]
    fn balance_score(loads: Vec<u64>) -> u128 {
        score::balance_score(&loads)
    }
}
