//! How Python interrupts work of the core: by a signal, or when its time is up.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use kafka_assignors_core::budget::Limit;
use pyo3::intern;
use pyo3::prelude::*;

/// How often the interpreter is asked for signals. A check attaches to the interpreter, which other threads may hold.
const EVERY: Duration = Duration::from_millis(50);

/// Whether work has to end.
struct Watch {
    until: Option<Instant>,
    /// When to ask for signals next; `None` outside the main thread, where Python handles no signals.
    next: Cell<Option<Instant>>,
    raised: RefCell<Option<PyErr>>,
}

impl Watch {
    fn is_over(&self) -> bool {
        let now = Instant::now();
        if self.until.is_some_and(|until| now >= until) {
            return true;
        }
        if self.next.get().is_none_or(|next| now < next) {
            return false;
        }
        self.next.set(Some(now + EVERY));
        let Err(error) = Python::attach(|py| py.check_signals()) else { return false };
        self.next.set(None);
        self.raised.replace(Some(error));
        true
    }
}

fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import(intern!(py, "threading"))?;
    let main = threading.call_method0(intern!(py, "main_thread"))?.getattr(intern!(py, "ident"))?;
    threading.call_method0(intern!(py, "get_ident"))?.eq(main)
}

/// Does work while other Python threads run. After `seconds` the work ends with the result it has by then. A signal ends it, too.
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
        // A time too long for the clock is no limit.
        let until = seconds
            .and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok())
            .and_then(|seconds| now.checked_add(seconds));
        let watch = Watch { until, next: Cell::new(signals.then_some(now + EVERY)), raised: RefCell::new(None) };
        let is_over = || watch.is_over();
        let done = work(&Limit::default().interrupted_by(&is_over));
        watch.raised.into_inner().map_or(Ok(done), Err)
    })
}
