//! JoinGroup's members as a group of dense ids.

use thiserror::Error;

use crate::group::{Group, GroupBuilder, NO_GENERATION, Topics, sorted_members};
use crate::ownership::NEVER;
use crate::strategy::Strategy;
use crate::wire::reader::ReadError;
use crate::wire::subscription::{Subscription, TopicNames};
use crate::wire::user_data::{StickyUserData, StreamJoinUserData, UnknownForm, read_cooperative_generation};

/// A member as the coordinator lists it to the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JoinedMember<'a> {
    /// The member id.
    pub id: &'a str,
    /// Its `group.instance.id`, if it is a static member.
    pub instance_id: Option<&'a str>,
    /// Its ConsumerProtocolSubscription. Another client wrote it: nothing about it is certain.
    pub metadata: &'a [u8],
}

/// Where an assignor looks for what a member held, and since which generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimSource {
    /// Partitions and generation from the user data, whatever `owned_partitions` says (KIP-54).
    Sticky,
    /// Partitions from `owned_partitions`; the generation from its field, else from the user data (KIP-429, KIP-792).
    Cooperative,
    /// Partition numbers and epoch from the user data; where that is missing or unreadable, `owned_partitions` and the
    /// generation stand in (KIP-315).
    StreamJoin {
        /// Whether `owned_partitions` says besides what must be revoked first.
        cooperative: bool,
    },
    /// Nowhere: the assignor has no memory.
    None,
}

impl ClaimSource {
    /// The source that a strategy trusts.
    #[must_use]
    pub fn of(strategy: Strategy) -> Self {
        match strategy {
            Strategy::Sticky(_) | Strategy::Lag(_) => Self::Sticky,
            Strategy::CooperativeSticky(_) => Self::Cooperative,
            Strategy::StreamJoin { cooperative } => Self::StreamJoin { cooperative },
            Strategy::Range | Strategy::RoundRobin => Self::None,
        }
    }

    /// The generation to write into the assignments; for a stream join the epoch, which has nothing to do with the group's
    /// generation. Behind the last one that may be claimed, counting begins anew: if [`NEVER`] were written, every honest claim
    /// would be false.
    pub(super) fn generation(self, forming: Option<i32>, max_generation: i32) -> Option<i32> {
        let after = |newest: i32, first| newest.checked_add(1).filter(|&next| next < NEVER).unwrap_or(first);
        match self {
            Self::None => None,
            Self::StreamJoin { .. } => Some(after(max_generation.max(0), 1)),
            Self::Sticky | Self::Cooperative => Some(forming.unwrap_or_else(|| after(max_generation, 0))),
        }
    }
}

/// What could not be read of one member, or not be used. It costs that member, nobody else.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("member {member_id:?}: {reason}")]
pub struct Fault {
    /// The member's position in the input.
    pub position: u32,
    /// The member's id.
    pub member_id: String,
    /// What is wrong.
    pub reason: Reason,
}

/// The kinds of [`Fault`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Reason {
    /// An earlier entry has the same id.
    #[error("it is listed twice; the first entry counts")]
    DuplicateId,
    /// The version or the topics cannot be read.
    #[error("its subscription is unreadable, so it gets no partitions: {0}")]
    Topics(ReadError),
    /// A later field of the subscription cannot be read.
    #[error("its subscription is damaged, so the damaged field and all after it are ignored: {0}")]
    Field(ReadError),
    /// The user data has no form that the assignor knows.
    #[error("it counts as without history: {0}")]
    UserData(UnknownForm),
    /// The number of claims on partitions, or numbers, that the leader knows not to have handed out to the member.
    #[error(
        "{0} of its claims are false and do not count: the leader knows that it did not hand these partitions to it"
    )]
    NotHandedOut(u32),
}

/// What the members sent.
#[derive(Debug, Clone)]
pub struct Joined {
    /// The group.
    pub group: Group,
    /// By member of the group, its position in the input.
    pub order: Vec<u32>,
    /// What could not be read, by position in the input.
    pub faults: Vec<Fault>,
    /// The newest generation, for a stream join the highest epoch, that any member claims, [`NEVER`] left out;
    /// [`NO_GENERATION`] if there is none.
    pub max_generation: i32,
}

/// Reads a group. Time and memory are linear in the bytes.
///
/// A member whose topics cannot be read is a member without topics and claims; one whose history cannot be read is a member
/// without history; both are reported. Topics that `topics` does not have, and claims on partitions that do not exist, are
/// left out silently: to be behind the times is no fault.
#[must_use]
pub fn read_group(members: &[JoinedMember<'_>], topics: Topics, source: ClaimSource) -> Joined {
    let ids: Vec<&str> = members.iter().map(|member| member.id).collect();
    let (order, repeats) = sorted_members(&ids);
    let mut reading = Reading::new(topics, source);
    for &position in &repeats {
        reading.report(position, ids[position as usize], Reason::DuplicateId);
    }
    if source != ClaimSource::None {
        // Four bytes a claim, and in a healthy group one claim a partition. More of either grows as it comes.
        let bytes: usize = order.iter().map(|&position| members[position as usize].metadata.len()).sum();
        reading.builder.reserve_claims((bytes / 4).min(reading.builder.topics().partitions()));
    }
    for &position in &order {
        reading.read_member(position, &members[position as usize]);
    }
    let Reading { builder, mut faults, max_generation, .. } = reading;
    faults.sort_by_key(|fault| fault.position);
    Joined { group: builder.finish(), order, faults, max_generation }
}

/// How many different lists of topics are remembered, to recognise the next member's. Most groups have one; a group in the
/// middle of a deployment has two.
const REMEMBERED: usize = 4;

struct Reading<'a> {
    source: ClaimSource,
    builder: GroupBuilder,
    faults: Vec<Fault>,
    max_generation: i32,
    /// The latest different lists of topics and their patterns.
    lists: Vec<TopicNames<'a>>,
    patterns: Vec<u32>,
    oldest: usize,
    scratch: Vec<u32>,
}

impl<'a> Reading<'a> {
    fn new(topics: Topics, source: ClaimSource) -> Self {
        Self {
            source,
            builder: GroupBuilder::new(topics),
            faults: Vec::new(),
            max_generation: NO_GENERATION,
            lists: Vec::with_capacity(REMEMBERED),
            patterns: Vec::with_capacity(REMEMBERED),
            oldest: 0,
            scratch: Vec::new(),
        }
    }

    fn report(&mut self, position: u32, member_id: &str, reason: Reason) {
        self.faults.push(Fault { position, member_id: member_id.to_owned(), reason });
    }

    fn read_member(&mut self, position: u32, member: &JoinedMember<'a>) {
        let instance_id = member.instance_id.unwrap_or_default();
        let (subscription, known) = match Subscription::read_known(member.metadata, &self.lists) {
            Ok(read) => read,
            Err(error) => {
                self.report(position, member.id, Reason::Topics(error));
                let nothing = self.builder.pattern(&[]);
                self.builder.push_member(member.id, instance_id, nothing, NO_GENERATION, "");
                return;
            }
        };
        if let Some(error) = subscription.fault {
            self.report(position, member.id, Reason::Field(error));
        }
        let pattern = match known {
            Some(index) => self.patterns[index],
            None => self.pattern(subscription.topics),
        };
        let generation = if let ClaimSource::StreamJoin { cooperative } = self.source {
            self.read_numbers(position, member.id, &subscription, pattern, cooperative)
        } else {
            let generation = self.read_claims(&subscription, pattern).unwrap_or_else(|error| {
                self.report(position, member.id, Reason::UserData(error));
                NO_GENERATION
            });
            self.note_generation(generation);
            generation
        };
        let rack = String::from_utf8_lossy(subscription.rack.unwrap_or_default());
        self.builder.push_member(member.id, instance_id, pattern, generation, &rack);
    }

    /// Counts a claimed generation, or epoch, towards the newest. A false one would fix the next one for good.
    fn note_generation(&mut self, generation: i32) {
        if generation < NEVER {
            self.max_generation = self.max_generation.max(generation);
        }
    }

    fn pattern(&mut self, list: TopicNames<'a>) -> u32 {
        self.scratch.clear();
        let mut next = 0;
        for name in list.iter() {
            if let Some(topic) = self.builder.topics().find_near(name, next) {
                self.scratch.push(topic);
                next = topic + 1;
            } else if matches!(self.source, ClaimSource::StreamJoin { .. }) {
                self.builder.note_missing(&String::from_utf8_lossy(name));
            }
        }
        let pattern = self.builder.pattern(&self.scratch);
        if self.lists.len() < REMEMBERED {
            self.lists.push(list);
            self.patterns.push(pattern);
        } else {
            self.lists[self.oldest] = list;
            self.patterns[self.oldest] = pattern;
            self.oldest = (self.oldest + 1) % REMEMBERED;
        }
        pattern
    }

    /// Adds the numbers that the member of a stream join says it held; the epoch, or the generation where partitions stand in.
    fn read_numbers(
        &mut self,
        position: u32,
        member_id: &str,
        subscription: &Subscription<'_>,
        pattern: u32,
        cooperative: bool,
    ) -> i32 {
        let told = match StreamJoinUserData::read(subscription.user_data) {
            Ok(told) => Some(told).filter(|_| subscription.user_data.is_some_and(|data| !data.is_empty())),
            Err(error) => {
                self.report(position, member_id, Reason::UserData(error));
                None
            }
        };
        if told.is_none() || cooperative {
            let owned = || subscription.owned.iter().map(|(name, numbers)| (name, numbers.iter()));
            for (name, numbers) in owned() {
                if let Some(topic) = self.builder.topics().find(name)
                    && numbers
                        .max()
                        .is_some_and(|number| i64::from(number) >= self.builder.topics().count(topic).into())
                {
                    self.builder.note_shrunk(topic);
                }
            }
            self.builder.push_claims(owned(), pattern);
        }
        let Some(told) = told else {
            self.builder.mark_stand_in();
            return subscription.generation;
        };
        self.builder.push_numbers(told.numbers.iter());
        self.note_generation(told.epoch);
        told.epoch
    }

    /// Adds what the member says it held; the generation in which it did.
    fn read_claims(&mut self, subscription: &Subscription<'_>, pattern: u32) -> Result<i32, UnknownForm> {
        match self.source {
            ClaimSource::None | ClaimSource::StreamJoin { .. } => Ok(NO_GENERATION),
            ClaimSource::Sticky => {
                let Some(bytes) = subscription.user_data else { return Ok(NO_GENERATION) };
                let builder = &mut self.builder;
                if let Some(generation) =
                    StickyUserData::visit_bare(bytes, |claims| builder.push_claims(claims, pattern))
                {
                    return Ok(generation);
                }
                builder.drop_claims();
                let StickyUserData { partitions, generation } = StickyUserData::read(Some(bytes))?;
                builder.push_claims(partitions.iter(), pattern);
                Ok(generation)
            }
            ClaimSource::Cooperative => {
                self.builder
                    .push_claims(subscription.owned.iter().map(|(name, numbers)| (name, numbers.iter())), pattern);
                match subscription.generation {
                    NO_GENERATION => read_cooperative_generation(subscription.user_data),
                    generation => Ok(generation),
                }
            }
        }
    }
}
