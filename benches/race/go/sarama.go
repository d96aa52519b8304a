package main

import (
	"fmt"

	"github.com/IBM/sarama"
)

// The generation that the leader's assignments would name.
const generation = 6

// Sarama's strategies, through sarama.BalanceStrategy. The steps are those of consumerGroup.joinSync, which is not public:
// GetMembers, Plan with the numbers of the subscribed topics' partitions, AssignmentData, AddGroupAssignmentMember. Its
// strategies do not use racks.
func saramaClient(strategy string, group *point) (func() (plan, error), error) {
	build, known := map[string]func() sarama.BalanceStrategy{
		"sticky":             sarama.NewBalanceStrategySticky,
		"cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky,
	}[strategy]
	if !known {
		return nil, fmt.Errorf("no strategy %q", strategy)
	}
	response := &sarama.JoinGroupResponse{Members: make([]sarama.GroupMember, len(group.members))}
	for i, member := range group.members {
		response.Members[i] = sarama.GroupMember{MemberId: member.id, Metadata: member.metadata}
	}
	// The client keeps the partitions of a topic as such a list, and hands that to the strategy.
	partitions := make(map[string][]int32, len(group.topics))
	for topic, count := range group.topics {
		numbers := make([]int32, count)
		for number := range numbers {
			numbers[number] = int32(number)
		}
		partitions[topic] = numbers
	}
	balancer := build()
	return func() (plan, error) { return planned(balancer, response, partitions) }, nil
}

func planned(balancer sarama.BalanceStrategy, response *sarama.JoinGroupResponse, partitions map[string][]int32) (plan, error) {
	members, err := response.GetMembers()
	if err != nil {
		return nil, err
	}
	topics := make(map[string][]int32)
	for _, member := range members {
		for _, topic := range member.Topics {
			topics[topic] = partitions[topic]
		}
	}
	given, err := balancer.Plan(members, topics)
	if err != nil {
		return nil, err
	}
	var sync sarama.SyncGroupRequest
	for member, assigned := range given {
		data, err := balancer.AssignmentData(member, assigned, generation)
		if err != nil {
			return nil, err
		}
		assignment := &sarama.ConsumerGroupMemberAssignment{Topics: assigned, UserData: data}
		if err := sync.AddGroupAssignmentMember(member, assignment); err != nil {
			return nil, err
		}
	}
	encoded := make(plan, len(members))
	for _, assignment := range sync.GroupAssignments {
		encoded[assignment.MemberId] = assignment.Assignment
	}
	return encoded, nil
}
