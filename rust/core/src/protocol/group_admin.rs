//! DescribeGroups, ConsumerGroupDescribe, ListGroups and DeleteGroups: requests of the admin client.

use super::ErrorCode;
use super::field::{bodies, message};

message! {
    /// The request for descriptions.
    pub struct DescribeGroupsRequest {
        /// The groups.
        groups: Vec<String> [0..],
        /// Whether to list the authorized operations of the caller.
        include_authorized_operations: bool [3..],
    }

    /// The description of a member.
    pub struct DescribedGroupMember {
        /// The member.
        member_id: String [0..],
        /// The `group.instance.id` of a static member.
        group_instance_id: Option<String> [4..],
        /// The client id.
        client_id: String [0..],
        /// The host from which the client connects.
        client_host: String [0..],
        /// Its metadata for the selected protocol; empty unless the group is Stable.
        member_metadata: Vec<u8> [0..],
        /// Its assignment; empty unless the group is Stable.
        member_assignment: Vec<u8> [0..],
    }

    /// The description of a group.
    pub struct DescribedGroup {
        /// `NONE`, or the error.
        error_code: ErrorCode [0..],
        /// The group.
        group_id: String [0..],
        /// `Empty`, `PreparingRebalance`, `CompletingRebalance`, `Stable` or `Dead`.
        group_state: String [0..],
        /// `consumer` for consumers.
        protocol_type: String [0..],
        /// The selected protocol; empty unless the group is Stable.
        protocol_data: String [0..],
        /// All members.
        members: Vec<DescribedGroupMember> [0..],
        /// A bit set; the smallest integer if it was not requested.
        authorized_operations: i32 [3..] = i32::MIN,
    }

    /// The descriptions.
    pub struct DescribeGroupsResponse {
        /// The time for which the broker throttled the client, in milliseconds.
        throttle_time_ms: i32 [1..],
        /// One for each group of the request.
        groups: Vec<DescribedGroup> [0..],
    }

    /// The request for descriptions of KIP-848 groups, in which the broker assigns.
    pub struct ConsumerGroupDescribeRequest {
        /// The groups.
        group_ids: Vec<String> [0..],
        /// Whether to list the authorized operations of the caller.
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
        /// The partitions, by topic.
        topic_partitions: Vec<DescribedTopicPartitions> [0..],
    }

    /// A member of a KIP-848 group.
    pub struct DescribedConsumer {
        /// The member.
        member_id: String [0..],
        /// The `group.instance.id` of a static member.
        instance_id: Option<String> [0..],
        /// The rack of the client.
        rack_id: Option<String> [0..],
        /// The member's epoch.
        member_epoch: i32 [0..],
        /// The client id.
        client_id: String [0..],
        /// The host from which the client connects.
        client_host: String [0..],
        /// The names of the topics to which it subscribes.
        subscribed_topic_names: Vec<String> [0..],
        /// The regular expression to which it subscribes.
        subscribed_topic_regex: Option<String> [0..],
        /// The current assignment.
        assignment: DescribedAssignment [0..],
        /// The target assignment.
        target_assignment: DescribedAssignment [0..],
        /// 0 for a member with the classic protocol, 1 with KIP-848's, -1 if unknown (KIP-1099).
        member_type: i8 [1..] = -1,
    }

    /// A KIP-848 group.
    pub struct DescribedConsumerGroup {
        /// `NONE`, or the error; GROUP_ID_NOT_FOUND also for a group of the classic protocol.
        error_code: ErrorCode [0..],
        /// The error message.
        error_message: Option<String> [0..],
        /// The group.
        group_id: String [0..],
        /// `Empty`, `Assigning`, `Reconciling`, `Stable` or `Dead`.
        group_state: String [0..],
        /// The group epoch. It increases with every change of members or topics.
        group_epoch: i32 [0..],
        /// The group epoch of the target assignment.
        assignment_epoch: i32 [0..],
        /// The broker's assignor.
        assignor_name: String [0..],
        /// All members.
        members: Vec<DescribedConsumer> [0..],
        /// A bit set; the smallest integer if it was not requested.
        authorized_operations: i32 [0..] = i32::MIN,
    }

    /// The descriptions.
    pub struct ConsumerGroupDescribeResponse {
        /// The time for which the broker throttled the client, in milliseconds.
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
        /// The time for which the broker throttled the client, in milliseconds.
        throttle_time_ms: i32 [1..],
        /// `NONE`, or the error.
        error_code: ErrorCode [0..],
        /// The groups.
        groups: Vec<ListedGroup> [0..],
    }

    /// The request to delete groups and their offsets.
    pub struct DeleteGroupsRequest {
        /// The groups.
        groups_names: Vec<String> [0..],
    }

    /// The result for one group.
    pub struct DeleteGroupResult {
        /// The group.
        group_id: String [0..],
        /// `NONE`, or the error.
        error_code: ErrorCode [0..],
    }

    /// The response.
    pub struct DeleteGroupsResponse {
        /// The time for which the broker throttled the client, in milliseconds.
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
