//! Scripted faults: errors that answer the next requests of an API.

use crate::protocol::{ApiKey, ErrorCode};
use std::collections::{BTreeMap, VecDeque};

/// The injected errors of each API. Each answers a number of requests.
#[derive(Debug, Default)]
pub(super) struct Faults {
    queues: BTreeMap<ApiKey, VecDeque<(ErrorCode, u32)>>,
}

impl Faults {
    /// Answers the next `times` requests with `code`, after those that were injected before.
    pub(super) fn inject(&mut self, api: ApiKey, code: ErrorCode, times: u32) {
        if times > 0 {
            self.queues.entry(api).or_default().push_back((code, times));
        }
    }

    /// The error for the current request.
    pub(super) fn take(&mut self, api: ApiKey) -> Option<ErrorCode> {
        let queue = self.queues.get_mut(&api)?;
        let (code, times) = queue.front_mut()?;
        let code = *code;
        *times -= 1;
        if *times == 0 {
            queue.pop_front();
        }
        Some(code)
    }
}
