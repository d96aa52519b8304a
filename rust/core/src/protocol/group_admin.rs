//! DescribeGroups, ConsumerGroupDescribe, ListGroups and DeleteGroups: groups seen from outside.

use super::ErrorCode;
use super::field::{bodies, message};

message! {
    /// The request for descriptions.
    pub struct DescribeGroupsRequest {
        /// The groups.
        groups: Vec<String> [0..],
        /// Whether to tell what the caller may do.
        include_authorized_operations: bool [3..],
    }

    /// A member seen from outside.
    pub struct DescribedGroupMember {
        /// The member.
        member_id: String [0..],
        /// Set for static members.
        group_instance_id: Option<String> [4..],
        /// The client's name for itself.
        client_id: String [0..],
        /// Where it connects from.
        client_host: String [0..],
        /// Its metadata for the chosen protocol; empty unless the group is Stable.
        member_metadata: Vec<u8> [0..],
        /// Its share; empty unless the group is Stable.
        member_assignment: Vec<u8> [0..],
    }

    /// A group seen from outside.
    pub struct DescribedGroup {
        /// Success or why not.
        error_code: ErrorCode [0..],
        /// The group.
        group_id: String [0..],
        /// `Empty`, `PreparingRebalance`, `CompletingRebalance`, `Stable` or `Dead`.
        group_state: String [0..],
        /// `consumer` for consumers.
        protocol_type: String [0..],
        /// The chosen protocol; empty unless the group is Stable.
        protocol_data: String [0..],
        /// Everyone.
        members: Vec<DescribedGroupMember> [0..],
        /// A bit set, or the smallest number when it was not asked for.
        authorized_operations: i32 [3..] = i32::MIN,
    }

    /// The descriptions.
    pub struct DescribeGroupsResponse {
        /// How long the broker throttled the client.
        throttle_time_ms: i32 [1..],
        /// One for each group of the request.
        groups: Vec<DescribedGroup> [0..],
    }

    /// The request for descriptions of groups that the broker assigns (KIP-848).
    pub struct ConsumerGroupDescribeRequest {
        /// The groups.
        group_ids: Vec<String> [0..],
        /// Whether to tell what the caller may do.
        include_authorized_operations: bool [0..],
    }

    /// Partitions of one topic.
    pub struct DescribedTopicPartitions {
        /// The topic's id (KIP-516).
        topic_id: [u8; 16] [0..],
        /// Its name.
        topic_name: String [0..],
        /// The partitions.
        partitions: Vec<i32> [0..],
    }

    /// Partitions of several topics.
    pub struct DescribedAssignment {
        /// By topic.
        topic_partitions: Vec<DescribedTopicPartitions> [0..],
    }

    /// A member of a group that the broker assigns.
    pub struct DescribedConsumer {
        /// The member.
        member_id: String [0..],
        /// Set for static members.
        instance_id: Option<String> [0..],
        /// Where it runs.
        rack_id: Option<String> [0..],
        /// How far it has followed the group.
        member_epoch: i32 [0..],
        /// The client's name for itself.
        client_id: String [0..],
        /// Where it connects from.
        client_host: String [0..],
        /// The topics it subscribes to by name.
        subscribed_topic_names: Vec<String> [0..],
        /// The pattern it subscribes to.
        subscribed_topic_regex: Option<String> [0..],
        /// What it has now.
        assignment: DescribedAssignment [0..],
        /// What it is to have.
        target_assignment: DescribedAssignment [0..],
        /// 0 a member of the classic protocol, 1 of the new one, -1 not told (KIP-1099).
        member_type: i8 [1..] = -1,
    }

    /// A group that the broker assigns.
    pub struct DescribedConsumerGroup {
        /// Success or why not; GROUP_ID_NOT_FOUND also for a group of the classic protocol.
        error_code: ErrorCode [0..],
        /// More about it.
        error_message: Option<String> [0..],
        /// The group.
        group_id: String [0..],
        /// `Empty`, `Assigning`, `Reconciling`, `Stable` or `Dead`.
        group_state: String [0..],
        /// Rises with every change of members and topics.
        group_epoch: i32 [0..],
        /// The group epoch that the targets are for.
        assignment_epoch: i32 [0..],
        /// The broker's assignor.
        assignor_name: String [0..],
        /// Everyone.
        members: Vec<DescribedConsumer> [0..],
        /// A bit set, or the smallest number when it was not asked for.
        authorized_operations: i32 [0..] = i32::MIN,
    }

    /// The descriptions.
    pub struct ConsumerGroupDescribeResponse {
        /// How long the broker throttled the client.
        throttle_time_ms: i32 [0..],
        /// One for each group of the request.
        groups: Vec<DescribedConsumerGroup> [0..],
    }

    /// The request for the list.
    pub struct ListGroupsRequest {
        /// Only groups in one of these states; empty for all.
        states_filter: Vec<String> [4..],
        /// Only groups of one of these types; empty for all.
        types_filter: Vec<String> [5..],
    }

    /// A group in the list.
    pub struct ListedGroup {
        /// The group.
        group_id: String [0..],
        /// `consumer` for consumers.
        protocol_type: String [0..],
        /// As in [`DescribedGroup::group_state`].
        group_state: String [4..],
        /// `classic`, `consumer` (KIP-848), `share` or another of Kafka's types of group.
        group_type: String [5..],
    }

    /// The list.
    pub struct ListGroupsResponse {
        /// How long the broker throttled the client.
        throttle_time_ms: i32 [1..],
        /// Success or why not.
        error_code: ErrorCode [0..],
        /// The groups.
        groups: Vec<ListedGroup> [0..],
    }

    /// The request to forget groups and their offsets.
    pub struct DeleteGroupsRequest {
        /// The groups.
        groups_names: Vec<String> [0..],
    }

    /// What became of one group.
    pub struct DeleteGroupResult {
        /// The group.
        group_id: String [0..],
        /// Success or why not.
        error_code: ErrorCode [0..],
    }

    /// What became of the groups.
    pub struct DeleteGroupsResponse {
        /// How long the broker throttled the client.
        throttle_time_ms: i32 [0..],
        /// One for each group of the request.
        results: Vec<DeleteGroupResult> [0..],
    }
}

bodies! {
    DescribeGroups: DescribeGroupsRequest, DescribeGroupsResponse;
    ConsumerGroupDescribe: ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse;
    ListGroups: ListGroupsRequest, ListGroupsResponse;
    DeleteGroups: DeleteGroupsRequest, DeleteGroupsResponse;
}
