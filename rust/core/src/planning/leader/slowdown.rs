//! A leader that is slower by a third. Only with the feature `slowdown`, with which `make gate-proof` shows that the gate notices
//! such a leader. Nothing else enables it.

use std::cell::Cell;

thread_local! {
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// Whether this call is to do its work twice: true for every third call in a thread.
pub(super) fn is_due() -> bool {
    CALLS.replace((CALLS.get() + 1) % 3) == 2
}
