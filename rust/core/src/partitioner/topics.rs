//! What a partitioner knows of each topic, by name.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

/// A map from a topic's name to what is known of it, shared by threads. Looking up takes one lock and does not allocate.
///
/// The functions that it is given run under that lock. They must not wait for anything that another thread may hold while
/// it waits for the lock, such as Python's interpreter lock: that would be a deadlock.
#[derive(Debug)]
pub struct Topics<T> {
    by_name: RwLock<HashMap<Box<str>, T>>,
}

impl<T> Default for Topics<T> {
    fn default() -> Self {
        Self { by_name: RwLock::default() }
    }
}

impl<T> Topics<T> {
    /// What `read` makes of what is known of a topic; `None` if nothing is.
    pub fn read<R>(&self, name: &str, read: impl FnOnce(&T) -> R) -> Option<R> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner).get(name).map(read)
    }

    /// Changes what is known of a topic, `new` if nothing is.
    pub fn write<R>(&self, name: &str, new: impl FnOnce() -> T, write: impl FnOnce(&mut T) -> R) -> R {
        let mut topics = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = topics.get_mut(name) {
            return write(known);
        }
        write(topics.entry(name.into()).or_insert_with(new))
    }
}
