//! Interrupts work of the core: on a signal, or at the time limit.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use kafka_assignors_core::planning::budget::Limit;
use pyo3::intern;
use pyo3::prelude::*;

/// The interval between two checks for signals. A check attaches to the interpreter and may wait for other threads.
const EVERY: Duration = Duration::from_millis(50);

/// Decides whether the work must end.
struct Watch {
    until: Option<Instant>,
    /// The time of the next check for signals. `None` outside the main thread: Python handles signals only there.
    next: Cell<Option<Instant>>,
    /// The error of the signal handler. Work with several searches checks again in each search, and all of them must end.
    raised: RefCell<Option<PyErr>>,
}

impl Watch {
    fn is_over(&self) -> bool {
        let now = Instant::now();
        if self.raised.borrow().is_some() || self.until.is_some_and(|until| now >= until) {
            return true;
        }
        if self.next.get().is_none_or(|next| now < next) {
            return false;
        }
        self.next.set(Some(now + EVERY));
        let Err(error) = Python::attach(|py| py.check_signals()) else { return false };
        self.raised.replace(Some(error));
        true
    }
}

fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import(intern!(py, "threading"))?;
    let main = threading.call_method0(intern!(py, "main_thread"))?.getattr(intern!(py, "ident"))?;
    threading.call_method0(intern!(py, "get_ident"))?.eq(main)
}

/// Runs the work while other Python threads run. After `seconds` the work returns the best result up to then. A signal
/// ends it with an error.
///
/// # Errors
/// The exception that the handler of a signal raised: `KeyboardInterrupt` for Ctrl-C.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    seconds: Option<f64>,
    work: impl FnOnce(&Limit<'_>) -> T + Send,
) -> PyResult<T> {
    let signals = is_main_thread(py)?;
    py.detach(|| {
        let now = Instant::now();
        // A duration that the clock cannot represent is no limit.
        let until = seconds
            .and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok())
            .and_then(|seconds| now.checked_add(seconds));
        let watch = Watch { until, next: Cell::new(signals.then_some(now + EVERY)), raised: RefCell::new(None) };
        let is_over = || watch.is_over();
        let done = work(&Limit::default().interrupted_by(&is_over));
        watch.raised.into_inner().map_or(Ok(done), Err)
    })
}
