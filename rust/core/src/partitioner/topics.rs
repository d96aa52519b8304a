//! What a partitioner knows of each topic, by name.

use std::sync::{Arc, PoisonError, RwLock};

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// A map from a topic's name to what is known of it, shared by threads. Looking up does not allocate.
#[derive(Debug)]
pub struct Topics<T> {
    by_name: RwLock<HashMap<Box<str>, Arc<T>, FxBuildHasher>>,
}

impl<T> Default for Topics<T> {
    fn default() -> Self {
        Self { by_name: RwLock::default() }
    }
}

impl<T> Topics<T> {
    /// What is known of a topic.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<T>> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// What is known of a topic, `new` if nothing is. Threads that race get the same.
    pub fn get_or_insert(&self, name: &str, new: T) -> Arc<T> {
        let mut topics = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        topics.entry(name.into()).or_insert_with(|| Arc::new(new)).clone()
    }

    /// Forgets a topic and returns what was known of it.
    pub fn remove(&self, name: &str) -> Option<Arc<T>> {
        self.by_name.write().unwrap_or_else(PoisonError::into_inner).remove(name)
    }
}
