//! JoinGroup's members as a group of dense ids.

use thiserror::Error;

use crate::planning::group::{Group, GroupBuilder, MemberBuilder, Topics, sorted_members};
use crate::planning::ownership::NEVER;
use crate::planning::strategy::Strategy;
use crate::protocol::reader::ReadError;
use crate::protocol::subscription::{NO_GENERATION, Subscription, TopicNames};
use crate::protocol::user_data::{
    CustomUserData, MOST_MEMBER_DATA, StickyUserData, StreamJoinUserData, UnknownForm, cooperative_generation,
};

/// A member as the coordinator lists it to the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JoinedMember<'a> {
    /// The member id.
    pub id: &'a str,
    /// Its `group.instance.id`, if it is a static member.
    pub instance_id: Option<&'a str>,
    /// Its ConsumerProtocolSubscription. Another client wrote it, so it may be anything.
    pub metadata: &'a [u8],
}

/// The fields of a subscription that contain a member's claims and their generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimSource {
    /// Partitions and generation from the user data; `owned_partitions` does not count (KIP-54).
    Sticky,
    /// Partitions from `owned_partitions`; the generation from its field, else from the user data (KIP-429, KIP-792).
    Cooperative,
    /// Partition numbers and epoch from the user data; where that is missing or unreadable, `owned_partitions` and the
    /// generation stand in (KIP-315).
    StreamJoin {
        /// Whether partitions in `owned_partitions` must be revoked first (KIP-429).
        cooperative: bool,
    },
    /// The user's own assignor: partitions and generation from [`CustomUserData`]; in a cooperative group, where members keep
    /// their partitions (KIP-429), from the subscription's fields.
    Custom {
        /// Whether partitions in `owned_partitions` must be revoked first (KIP-429).
        cooperative: bool,
    },
    /// No field: the assignor does not use claims.
    None,
}

impl ClaimSource {
    /// The source of a strategy's claims.
    #[must_use]
    pub fn of(strategy: Strategy) -> Self {
        match strategy {
            // No leader runs an assignor of the broker. A benchmark compares such an assignor with a leader's strategy, from the
            // same bytes.
            Strategy::Sticky(_) | Strategy::Lag(_) | Strategy::ServerSide(..) => Self::Sticky,
            Strategy::CooperativeSticky(_) => Self::Cooperative,
            Strategy::StreamJoin { cooperative } => Self::StreamJoin { cooperative },
            Strategy::Custom { cooperative } => Self::Custom { cooperative },
            Strategy::Range | Strategy::RoundRobin => Self::None,
        }
    }

    /// The generation to write into the assignments; for a stream join the epoch, which does not depend on the group's
    /// generation. After the last generation that may be claimed, counting begins anew: if [`NEVER`] were written, every true
    /// claim would count as false.
    pub(super) fn generation(self, forming: Option<i32>, max_generation: i32) -> Option<i32> {
        let after = |newest: i32, first| newest.checked_add(1).filter(|&next| next < NEVER).unwrap_or(first);
        match self {
            Self::None => None,
            Self::StreamJoin { .. } => Some(after(max_generation.max(0), 1)),
            Self::Sticky | Self::Cooperative | Self::Custom { .. } => {
                Some(forming.unwrap_or_else(|| after(max_generation, 0)))
            }
        }
    }
}

/// A part of a member's subscription that could not be read, or not be used. No other member is affected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("member {member_id:?}: {reason}")]
pub struct Fault {
    /// The member's position in the input.
    pub position: u32,
    /// The member's id.
    pub member_id: String,
    /// The kind of the fault, with its details.
    pub reason: FaultReason,
}

/// The kinds of [`Fault`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FaultReason {
    /// An earlier entry has the same id.
    #[error("it is listed twice; the first entry counts")]
    DuplicateId,
    /// The version or the topics cannot be read.
    #[error("its subscription is unreadable, so it gets no partitions: {0}")]
    Topics(ReadError),
    /// A later field of the subscription cannot be read.
    #[error("its subscription is damaged, so the damaged field and all after it are ignored: {0}")]
    Field(ReadError),
    /// The user data has no form that the assignor can read.
    #[error("it counts as without history: {0}")]
    UserData(UnknownForm),
    /// The user's own assignor adds more data about the member than is allowed: the number of bytes.
    #[error(
        "its assignor added {0} bytes of member data, more than the limit of {MOST_MEMBER_DATA}; the data are ignored"
    )]
    MemberData(usize),
    /// The number of claims on partitions, or numbers, that the leader did not hand out to the member, by the plans that it
    /// remembers.
    #[error(
        "{0} of its claims are false and do not count: the leader knows that it did not hand these partitions to it"
    )]
    NotHandedOut(u32),
}

/// The group as the members describe it.
#[derive(Debug, Clone)]
pub struct Joined {
    /// The group.
    pub group: Group,
    /// By member of the group, its position in the input.
    pub order: Vec<u32>,
    /// The parts that could not be read, by position in the input.
    pub faults: Vec<Fault>,
    /// The newest generation, for a stream join the highest epoch, that any member claims, without [`NEVER`]; [`NO_GENERATION`]
    /// if there is none.
    pub max_generation: i32,
}

/// Reads a group. Time and memory are linear in the bytes.
///
/// A member whose topics cannot be read counts as one without topics and claims. A member whose claims cannot be read counts as
/// one without claims. Both are reported. Topics that `topics` does not have, and claims of partitions that do not exist, are
/// left out without a report: the member's metadata may just be older.
#[must_use]
pub fn read_group(members: &[JoinedMember<'_>], topics: Topics, source: ClaimSource) -> Joined {
    let ids: Vec<&str> = members.iter().map(|member| member.id).collect();
    let (order, repeats) = sorted_members(&ids);
    let mut reading = Reading::new(topics, source);
    for &position in &repeats {
        reading.add_fault(position, ids[position as usize], FaultReason::DuplicateId);
    }
    if source != ClaimSource::None {
        // A claim is four bytes, and in a healthy group there is one claim for each partition. The list grows if there are
        // more.
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

/// How many different lists of topics are remembered, so that an equal list of the next member is not read again. Most groups
/// have one list; during a deployment a group has two.
const REMEMBERED: usize = 4;

struct Reading<'a> {
    source: ClaimSource,
    builder: GroupBuilder,
    faults: Vec<Fault>,
    max_generation: i32,
    /// The latest different lists of topics and their subscriptions.
    lists: Vec<TopicNames<'a>>,
    subscriptions: Vec<u32>,
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
            subscriptions: Vec::with_capacity(REMEMBERED),
            oldest: 0,
            scratch: Vec::new(),
        }
    }

    fn add_fault(&mut self, position: u32, member_id: &str, reason: FaultReason) {
        self.faults.push(Fault { position, member_id: member_id.to_owned(), reason });
    }

    fn read_member(&mut self, position: u32, member: &JoinedMember<'a>) {
        let instance_id = member.instance_id.unwrap_or_default();
        let (subscription, known) = match Subscription::read_known(member.metadata, &self.lists) {
            Ok(read) => read,
            Err(error) => {
                self.add_fault(position, member.id, FaultReason::Topics(error));
                let nothing = self.builder.subscription(&[]);
                self.builder.member(member.id, nothing).instance_id(instance_id).finish();
                return;
            }
        };
        if let Some(error) = subscription.fault {
            self.add_fault(position, member.id, FaultReason::Field(error));
        }
        let subscribed = match known {
            Some(index) => self.subscriptions[index],
            None => self.number(subscription.topics),
        };
        let mut joining = self.builder.member(member.id, subscribed).instance_id(instance_id);
        let (claims, fault) = match self.source {
            ClaimSource::None => (ClaimsGeneration::default(), None),
            ClaimSource::Sticky => read_sticky(&mut joining, &subscription),
            ClaimSource::Cooperative => read_cooperative(&mut joining, &subscription),
            ClaimSource::StreamJoin { cooperative } => read_numbers(&mut joining, &subscription, cooperative),
            ClaimSource::Custom { cooperative } => read_custom(&mut joining, &subscription, cooperative),
        };
        let rack = String::from_utf8_lossy(subscription.rack.unwrap_or_default());
        joining.generation(claims.generation).rack(&rack).finish();
        if let Some(error) = fault {
            self.add_fault(position, member.id, FaultReason::UserData(error));
        }
        if matches!(self.source, ClaimSource::Custom { .. })
            && let Ok(CustomUserData { data, .. }) = CustomUserData::read(subscription.user_data)
            && data.len() > MOST_MEMBER_DATA
        {
            self.add_fault(position, member.id, FaultReason::MemberData(data.len()));
        }
        // A claim of [`NEVER`] is false. If it counted as the newest, the first generation, or epoch, would be written in every
        // rebalance.
        if !claims.stands_in && claims.generation < NEVER {
            self.max_generation = self.max_generation.max(claims.generation);
        }
    }

    fn number(&mut self, list: TopicNames<'a>) -> u32 {
        self.scratch.clear();
        // In a list of all topics, each topic follows the one before it, so the guess is the next id. In a list of few topics
        // this guess is nearly always wrong: after a wrong guess, names are looked up without a guess, until a topic follows
        // the one before it again.
        let (mut next, mut follows) = (0, true);
        for name in list.iter() {
            let topics = self.builder.topics();
            let topic = if follows { topics.find_near(name, next) } else { topics.find(name) };
            if let Some(topic) = topic {
                self.scratch.push(topic);
                follows = topic == next;
                next = topic + 1;
            } else if matches!(self.source, ClaimSource::StreamJoin { .. }) {
                self.builder.note_missing(&String::from_utf8_lossy(name));
            }
        }
        let subscription = self.builder.subscription(&self.scratch);
        if self.lists.len() < REMEMBERED {
            self.lists.push(list);
            self.subscriptions.push(subscription);
        } else {
            self.lists[self.oldest] = list;
            self.subscriptions[self.oldest] = subscription;
            self.oldest = (self.oldest + 1) % REMEMBERED;
        }
        subscription
    }
}

/// The generation of a member's claims.
struct ClaimsGeneration {
    /// The generation; for a stream join the epoch, unless the generation stands in for it.
    generation: i32,
    stands_in: bool,
}

impl Default for ClaimsGeneration {
    fn default() -> Self {
        Self { generation: NO_GENERATION, stands_in: false }
    }
}

impl ClaimsGeneration {
    fn of(generation: i32) -> Self {
        Self { generation, stands_in: false }
    }
}

/// Adds the partitions of the user data as claims. The second value is the error if it could not be read.
fn read_sticky(
    member: &mut MemberBuilder<'_>,
    subscription: &Subscription<'_>,
) -> (ClaimsGeneration, Option<UnknownForm>) {
    let Some(bytes) = subscription.user_data else { return (ClaimsGeneration::default(), None) };
    if let Some(generation) = StickyUserData::visit_bare(bytes, |claims| member.claim_named(claims)) {
        return (ClaimsGeneration::of(generation), None);
    }
    member.forget_claims();
    match StickyUserData::read(Some(bytes)) {
        Ok(StickyUserData { partitions, generation }) => {
            member.claim_named(partitions.iter());
            (ClaimsGeneration::of(generation), None)
        }
        Err(error) => (ClaimsGeneration::default(), Some(error)),
    }
}

/// Adds `owned_partitions` as claims. The second value is the error if the generation could not be read.
fn read_cooperative(
    member: &mut MemberBuilder<'_>,
    subscription: &Subscription<'_>,
) -> (ClaimsGeneration, Option<UnknownForm>) {
    member.claim_named(subscription.owned.iter().map(|(name, numbers)| (name, numbers.iter())));
    match cooperative_generation(subscription) {
        Ok(generation) => (ClaimsGeneration::of(generation), None),
        Err(error) => (ClaimsGeneration::default(), Some(error)),
    }
}

/// Adds the claims of a member whose assignor is the user's own. The second value is the error if its user data could not be
/// read.
fn read_custom(
    member: &mut MemberBuilder<'_>,
    subscription: &Subscription<'_>,
    cooperative: bool,
) -> (ClaimsGeneration, Option<UnknownForm>) {
    let (custom, fault) = match CustomUserData::read(subscription.user_data) {
        Ok(custom) => (Some(custom), None),
        Err(error) => (None, Some(error)),
    };
    let generation = custom.map_or(NO_GENERATION, |custom| custom.generation);
    if cooperative {
        member.claim_named(subscription.owned.iter().map(|(name, numbers)| (name, numbers.iter())));
        let own = subscription.generation;
        return (ClaimsGeneration::of(if own == NO_GENERATION { generation } else { own }), fault);
    }
    if let Some(custom) = custom {
        member.claim_named(custom.partitions.iter());
    }
    (ClaimsGeneration::of(generation), fault)
}

/// The data that the user's own assignor adds about a member, from the member's metadata; empty if it cannot be read or is too
/// long.
#[must_use]
pub fn member_data(metadata: &[u8]) -> &[u8] {
    let subscription = Subscription::read(metadata).ok();
    let custom = subscription.and_then(|subscription| CustomUserData::read(subscription.user_data).ok());
    custom.map(|custom| custom.data).filter(|data| data.len() <= MOST_MEMBER_DATA).unwrap_or_default()
}

/// Adds the numbers that a member of a stream join claims. The second value is the error if its user data could not be read.
fn read_numbers(
    member: &mut MemberBuilder<'_>,
    subscription: &Subscription<'_>,
    cooperative: bool,
) -> (ClaimsGeneration, Option<UnknownForm>) {
    let (read, fault) = match StreamJoinUserData::read(subscription.user_data) {
        Ok(read) => (Some(read).filter(|_| subscription.user_data.is_some_and(|data| !data.is_empty())), None),
        Err(error) => (None, Some(error)),
    };
    if read.is_none() || cooperative {
        let owned = || subscription.owned.iter().map(|(name, numbers)| (name, numbers.iter()));
        for (name, numbers) in owned() {
            if let Some(topic) = member.topics().find(name)
                && numbers.max().is_some_and(|number| i64::from(number) >= member.topics().count(topic).into())
            {
                member.note_shrunk(topic);
            }
        }
        member.claim_named(owned());
    }
    let Some(read) = read else {
        member.stand_in();
        return (ClaimsGeneration { generation: subscription.generation, stands_in: true }, fault);
    };
    member.numbers(read.numbers.iter());
    (ClaimsGeneration::of(read.epoch), None)
}
