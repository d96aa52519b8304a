//! A plan as the bytes of SyncGroup.

use crate::planning::group::{Group, NONE};
use crate::planning::plan::Plan;
use crate::protocol::assignment::VERSION;
use crate::protocol::writer::WriteError;

/// The assignments of all members, in byte order of their ids, one after the other in one slab.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assignments {
    slab: Vec<u8>,
    ends: Vec<usize>,
}

impl Assignments {
    /// Assignments that are known. For benchmarks.
    #[cfg(feature = "bench")]
    #[must_use]
    pub fn of<'a>(known: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut assignments = Self::default();
        for bytes in known {
            assignments.slab.extend_from_slice(bytes);
            assignments.ends.push(assignments.slab.len());
        }
        assignments
    }

    /// The number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The ConsumerProtocolAssignment of one member.
    #[must_use]
    pub fn get(&self, member: u32) -> &[u8] {
        let start = if member == 0 { 0 } else { self.ends[member as usize - 1] };
        &self.slab[start..self.ends[member as usize]]
    }

    /// The assignments in order of the members.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len() as u32).map(|member| self.get(member))
    }

    /// Passes the assignments to `take`, from the last member to the first, and frees their memory step by step. So a caller that
    /// copies them does not hold all of them twice.
    pub fn consume_backwards(mut self, mut take: impl FnMut(&[u8])) {
        let step = self.slab.len() / 16 + 1;
        while self.ends.pop().is_some() {
            let start = self.ends.last().copied().unwrap_or(0);
            take(&self.slab[start..]);
            self.slab.truncate(start);
            if self.slab.capacity() - start > step {
                self.slab.shrink_to_fit();
            }
        }
    }

    /// The bytes of all assignments.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.slab.len()
    }
}

/// The size of one member's partitions as an ARRAY of topics with partition numbers.
#[derive(Clone, Copy)]
pub(super) struct ListSize {
    /// The bytes of the array without its count.
    pub(super) bytes: usize,
    /// The number of its partitions.
    pub(super) partitions: u64,
    topics: u32,
    last: u32,
}

/// The bytes of an element without its name and its numbers: the name's length and the numbers' count.
const ELEMENT: usize = 6;

/// Measures every member's list. O(partitions).
pub(super) fn list_sizes(group: &Group, plan: &Plan) -> Vec<ListSize> {
    let mut sizes = vec![ListSize { bytes: 0, partitions: 0, topics: 0, last: NONE }; group.members()];
    for (topic, name) in (0u32..).zip(group.topics().names().iter()) {
        let range = group.topics().range(topic);
        for &owner in &plan.owner[range.start as usize..range.end as usize] {
            if let Some(size) = sizes.get_mut(owner as usize) {
                if size.last != topic {
                    size.last = topic;
                    size.topics += 1;
                    size.bytes += ELEMENT + name.len();
                }
                size.bytes += 4;
                size.partitions += 1;
            }
        }
    }
    sizes
}

/// A member's assignment while it is written.
#[derive(Clone, Copy)]
struct Pen {
    /// The place of the next byte.
    at: usize,
    /// The place of the current topic's count of numbers; 0 before the first topic.
    count_at: usize,
    topic: u32,
}

impl Pen {
    fn put<const N: usize>(&mut self, slab: &mut [u8], bytes: [u8; N]) {
        slab[self.at..self.at + N].copy_from_slice(&bytes);
        self.at += N;
    }

    fn close_topic(&self, slab: &mut [u8]) {
        if self.count_at > 0 {
            let numbers = (self.at - self.count_at - 4) / 4;
            slab[self.count_at..self.count_at + 4].copy_from_slice(&(numbers as u32).to_be_bytes());
        }
    }
}

/// Writes every member's assignment, an empty one included, in canonical form (version 3, topics and numbers ascending).
/// `generation` is written into the user data; without a generation, the user data is null. O(partitions + bytes).
///
/// # Errors
/// An assigned topic's name has more than 32,767 bytes.
pub fn write_assignments(group: &Group, plan: &Plan, generation: Option<i32>) -> Result<Assignments, WriteError> {
    let sizes = list_sizes(group, plan);
    let user_data = if generation.is_some() { 8 } else { 4 };
    let mut ends = Vec::with_capacity(sizes.len());
    let mut end = 0;
    for size in &sizes {
        end += 6 + size.bytes + user_data;
        ends.push(end);
    }
    let mut slab = vec![0; end];
    let mut pens = Vec::with_capacity(sizes.len());
    let mut start = 0;
    for (size, &end) in sizes.iter().zip(&ends) {
        let mut pen = Pen { at: start, count_at: 0, topic: NONE };
        pen.put(&mut slab, VERSION.to_be_bytes());
        pen.put(&mut slab, size.topics.to_be_bytes());
        pens.push(pen);
        start = end;
    }
    drop(sizes);
    for (topic, name) in (0u32..).zip(group.topics().names().iter()) {
        let length = i16::try_from(name.len());
        let range = group.topics().range(topic);
        for (number, &owner) in (0u32..).zip(&plan.owner[range.start as usize..range.end as usize]) {
            let Some(pen) = pens.get_mut(owner as usize) else { continue };
            if pen.topic != topic {
                let length = length.or(Err(WriteError::LongString { what: "topic", length: name.len() }))?;
                pen.close_topic(&mut slab);
                pen.put(&mut slab, length.to_be_bytes());
                slab[pen.at..pen.at + name.len()].copy_from_slice(name.as_bytes());
                pen.at += name.len();
                pen.count_at = pen.at;
                pen.at += 4;
                pen.topic = topic;
            }
            pen.put(&mut slab, number.to_be_bytes());
        }
    }
    for mut pen in pens {
        pen.close_topic(&mut slab);
        match generation {
            Some(generation) => {
                pen.put(&mut slab, 4i32.to_be_bytes());
                pen.put(&mut slab, generation.to_be_bytes());
            }
            None => pen.put(&mut slab, (-1i32).to_be_bytes()),
        }
    }
    Ok(Assignments { slab, ends })
}
