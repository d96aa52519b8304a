//! The states of topics, by name.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

/// A map from a topic's name to its state, shared by threads. A look-up takes one lock and does not allocate.
///
/// `read` and `write` run under that lock. They must not wait for another lock, such as Python's interpreter lock: a
/// thread that owns the other lock and waits for this one would cause a deadlock.
#[derive(Debug)]
pub struct ByTopic<T> {
    by_name: RwLock<HashMap<Box<str>, T>>,
}

impl<T> Default for ByTopic<T> {
    fn default() -> Self {
        Self { by_name: RwLock::default() }
    }
}

impl<T> ByTopic<T> {
    /// The result of `read` on the state of a topic; `None` without a state.
    pub fn read<R>(&self, name: &str, read: impl FnOnce(&T) -> R) -> Option<R> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner).get(name).map(read)
    }

    /// Applies `write` to the state of a topic, or to `new()` without a state.
    pub fn write<R>(&self, name: &str, new: impl FnOnce() -> T, write: impl FnOnce(&mut T) -> R) -> R {
        let mut topics = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = topics.get_mut(name) {
            return write(known);
        }
        write(topics.entry(name.into()).or_insert_with(new))
    }
}
