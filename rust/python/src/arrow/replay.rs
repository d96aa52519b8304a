//! Replays histories of groups. The output is a row of figures for each rebalance and strategy, or the assignments.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use kafka_assignors_core::planning::group::Group;
use kafka_assignors_core::planning::ownerless::Intervals;
use kafka_assignors_core::planning::ownership::Ownership;
use kafka_assignors_core::planning::replay::{Assigned, History, PlanSource, Planned, RebalanceOutcome, Replayer};
use kafka_assignors_core::planning::strategy::Strategy;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3_arrow::PyRecordBatch;

use super::check_schema;
use super::histories::{self, Histories, Keys};
use super::outcomes::{AssignmentRows, Rebalances};
use crate::custom::plan_with;
use crate::errors::{OptionError, TableError};
use crate::options::{IntervalsInMs, lag_strategy, read_intervals, strategy};

/// The value of the column `strategy` for the assignments that the group really used.
const OBSERVED: &str = "observed";

/// The size of a batch of assignments: rows plus partitions.
const MOST_BATCHED: usize = 1 << 18;

/// A strategy in the form that Python passes: a label for the rows, and the options of an assignor.
#[derive(FromPyObject)]
enum Options {
    /// Name, mode and racks.
    Named(String, (String, String, String)),
    /// Scope, skew and threshold of the lag-based strategy.
    Lag(String, (String, Option<u32>, Option<u64>)),
    /// Whether a user's own assignor is cooperative, and its function that plans.
    Custom(String, (bool, Py<PyAny>)),
}

/// The strategies and, at the same index, their labels.
struct Strategies {
    labels: Vec<String>,
    strategies: Vec<Strategy>,
    /// The functions of users' own assignors that plan; `None` for other strategies.
    planners: Vec<Option<Py<PyAny>>>,
    intervals: Intervals,
}

impl Strategies {
    /// Plans with a user's own assignor. Its exception becomes the error.
    fn plan(&self, index: usize, group: &Group, ownership: &Ownership) -> Result<Planned, String> {
        Python::attach(|py| {
            let planner = self.planners[index].as_ref().ok_or("it has no function that plans")?;
            plan_with(py, planner.bind(py), group, ownership).map_err(|error| error.to_string())
        })
    }

    fn label(&self, row: &RebalanceOutcome) -> &str {
        match row.source {
            PlanSource::Strategy(index) => &self.labels[index],
            PlanSource::Observed => OBSERVED,
        }
    }
}

/// Replays the histories of groups. Input and output are record batches.
#[pyclass(frozen, module = "kafka_assignors._core")]
pub(crate) struct Replay {
    strategies: Arc<Strategies>,
    input: Schema,
    rebalances: SchemaRef,
    assignments: SchemaRef,
}

#[pymethods]
impl Replay {
    /// `intervals` in milliseconds, as `ownerless_ms` takes them.
    #[new]
    #[pyo3(signature = (strategies, intervals=None))]
    fn new(strategies: Vec<Options>, intervals: Option<IntervalsInMs>) -> PyResult<Self> {
        let intervals = intervals.map_or_else(Intervals::default, read_intervals);
        let mut known = Strategies { labels: Vec::new(), strategies: Vec::new(), planners: Vec::new(), intervals };
        for options in strategies {
            let mut planner = None;
            let (label, strategy) = match options {
                Options::Named(label, (name, mode, racks)) => (label, strategy(&name, &mode, &racks)?),
                Options::Lag(label, (scope, max_skew, threshold)) => {
                    (label, lag_strategy(&scope, max_skew, threshold)?)
                }
                Options::Custom(label, (cooperative, plans)) => {
                    planner = Some(plans);
                    (label, Strategy::Custom { cooperative })
                }
            };
            if label == OBSERVED {
                let message = format!("strategy {label:?} is reserved for the observed assignments; give another name");
                return Err(OptionError::new_err(message));
            }
            if known.labels.contains(&label) {
                return Err(OptionError::new_err(format!("strategy {label:?} is given twice; name each once")));
            }
            known.labels.push(label);
            known.strategies.push(strategy);
            known.planners.push(planner);
        }
        Ok(Self {
            strategies: Arc::new(known),
            input: histories::schema(),
            rebalances: Arc::new(Rebalances::schema()),
            assignments: Arc::new(AssignmentRows::schema()),
        })
    }

    /// Input: one row for each group. Output: one row for each rebalance and strategy. Other Python threads run
    /// meanwhile.
    fn run<'py>(&self, py: Python<'py>, batch: PyRecordBatch) -> PyResult<Bound<'py, PyAny>> {
        let batch = self.checked(batch)?;
        let rows = py.detach(|| run(&self.strategies, &batch, &self.rebalances));
        PyRecordBatch::new(rows.map_err(TableError::new_err)?).into_pyarrow(py)
    }

    /// As `run`, but without planning: one row without figures for each group. Its time is the cost of import and
    /// export.
    fn floor<'py>(&self, py: Python<'py>, batch: PyRecordBatch) -> PyResult<Bound<'py, PyAny>> {
        let batch = self.checked(batch)?;
        let (keys, mut rows) = (Keys::new(&batch), Rebalances::default());
        for row in 0..batch.num_rows() {
            rows.push_error(keys.of(row).0, None);
        }
        PyRecordBatch::new(rows.finish(&self.rebalances).map_err(TableError::new_err)?).into_pyarrow(py)
    }

    /// The assignments after each rebalance: an iterator of batches of bounded size, computed during the iteration. With
    /// `counts_wait`, a new partition count makes no rebalance of its own and holds from the next event on.
    #[pyo3(signature = (batch, counts_wait=false))]
    fn assignments(&self, batch: PyRecordBatch, counts_wait: bool) -> PyResult<Assignments> {
        let batch = self.checked(batch)?;
        // The channel keeps one finished batch while the thread computes the next one.
        let (sender, batches) = sync_channel(1);
        let (strategies, schema) = (Arc::clone(&self.strategies), Arc::clone(&self.assignments));
        let worker = std::thread::Builder::new()
            .name("kafka-assignors-replay".to_owned())
            .spawn(move || assignments(&strategies, &batch, counts_wait, &schema, &sender))
            .map_err(|error| PyRuntimeError::new_err(format!("no thread can be started: {error}")))?;
        Ok(Assignments { work: Mutex::new(Work { batches, worker: Some(worker) }) })
    }
}

impl Replay {
    fn checked(&self, batch: PyRecordBatch) -> PyResult<RecordBatch> {
        let batch = batch.into_inner();
        check_schema(&batch.schema(), &self.input)?;
        Ok(batch)
    }
}

/// An iterator of batches of assignments. Dropping it stops the thread that computes them.
#[pyclass(frozen, module = "kafka_assignors._core")]
pub(crate) struct Assignments {
    work: Mutex<Work>,
}

struct Work {
    batches: Receiver<Result<RecordBatch, String>>,
    /// The thread; `None` after it was joined.
    worker: Option<JoinHandle<()>>,
}

impl Work {
    /// The next batch; `None` after the last one.
    fn next(&mut self) -> Option<Result<RecordBatch, String>> {
        if let Ok(batch) = self.batches.recv() {
            return Some(batch);
        }
        // The sender is gone: the thread has finished or panicked. A panic must be an error; as an end of the iteration
        // it would silently drop assignments.
        let ended = self.worker.take()?.join();
        ended.is_err().then(|| Err("the replay has panicked; please report it".to_owned()))
    }
}

#[pymethods]
impl Assignments {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let next = py.detach(|| self.work.lock().unwrap_or_else(PoisonError::into_inner).next());
        let Some(batch) = next else { return Ok(None) };
        PyRecordBatch::new(batch.map_err(TableError::new_err)?).into_pyarrow(py).map(Some)
    }
}

fn nanoseconds() -> impl FnMut() -> u64 {
    let start = Instant::now();
    move || u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn run(known: &Strategies, batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, String> {
    let mut rows = Rebalances::default();
    let (keys, histories) = (Keys::new(batch), Histories::new(batch));
    let mut topics = Vec::new();
    let mut replayer = Replayer::new(&known.strategies, &known.intervals);
    for row in 0..batch.num_rows() {
        let (key, named) = keys.of(row);
        let history = match named {
            Ok(()) => histories.read(row, &mut topics),
            Err(error) => Err(error),
        };
        let replayed = history.and_then(|history| {
            let mut planner = |index, group: &Group, ownership: &Ownership| known.plan(index, group, ownership);
            let each = |row: RebalanceOutcome, _: Assigned<'_>| {
                rows.push(key, known.label(&row), &row);
                ControlFlow::Continue(())
            };
            replayer.replay(history, nanoseconds(), &mut planner, each).map_err(|error| error.to_string())
        });
        if let Err(error) = replayed {
            rows.push_error(key, Some(&error));
        }
    }
    rows.finish(schema)
}

/// Sends the assignments of each group. A group that cannot be replayed has no rows here; [`run`] reports its error.
fn assignments(
    known: &Strategies,
    batch: &RecordBatch,
    counts_wait: bool,
    schema: &SchemaRef,
    sender: &SyncSender<Result<RecordBatch, String>>,
) {
    let mut rows = AssignmentRows::default();
    let (keys, histories) = (Keys::new(batch), Histories::new(batch));
    let mut topics = Vec::new();
    let mut replayer = Replayer::new(&known.strategies, &known.intervals);
    for row in 0..batch.num_rows() {
        let (key, named) = keys.of(row);
        if named.is_err() {
            continue;
        }
        let Ok(history) = histories.read(row, &mut topics) else { continue };
        let history = History { counts_wait, ..history };
        let mut wanted = true;
        let each = |row: RebalanceOutcome, assigned: Assigned<'_>| {
            let label = known.label(&row);
            assigned.each(|member, topic, numbers| {
                rows.push(key, label, &row, member, topic, numbers);
                if wanted && rows.size() >= MOST_BATCHED {
                    wanted = sender.send(std::mem::take(&mut rows).finish(schema)).is_ok();
                }
            });
            if wanted { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        // After an error, the rebalances before it stay in the output.
        let mut planner = |index, group: &Group, ownership: &Ownership| known.plan(index, group, ownership);
        let _ = replayer.replay(history, || 0, &mut planner, each);
        if !wanted {
            return;
        }
    }
    if rows.size() > 0 {
        // This fails only if the receiver was dropped; then the batch is not needed.
        let _ = sender.send(rows.finish(schema));
    }
}
