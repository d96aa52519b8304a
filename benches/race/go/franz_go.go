package main

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// franz-go's balancers, through kgo.GroupBalancer, as its client calls them when it leads a group. A balancer reads racks only
// from a client with brokers; therefore racks have no effect here.
func franzGo(strategy string, group *point) (func() (plan, error), error) {
	balancer, known := map[string]kgo.GroupBalancer{
		"sticky":             kgo.StickyBalancer(),
		"cooperative-sticky": kgo.CooperativeStickyBalancer(),
	}[strategy]
	if !known {
		return nil, fmt.Errorf("no strategy %q", strategy)
	}
	// In order of their ids, as the client sorts them.
	members := make([]kmsg.JoinGroupResponseMember, len(group.members))
	for i, member := range group.members {
		members[i] = kmsg.NewJoinGroupResponseMember()
		members[i].MemberID, members[i].ProtocolMetadata = member.id, member.metadata
	}
	return func() (plan, error) { return balanced(balancer, members, group.topics) }, nil
}

func balanced(balancer kgo.GroupBalancer, members []kmsg.JoinGroupResponseMember, counts map[string]int32) (plan, error) {
	memberBalancer, names, err := balancer.MemberBalancer(members)
	if err != nil {
		return nil, err
	}
	topics := make(map[string]int32, len(names))
	for name := range names {
		topics[name] = counts[name]
	}
	var into kgo.IntoSyncAssignment
	if orError, ok := memberBalancer.(kgo.GroupMemberBalancerOrError); ok {
		if into, err = orError.BalanceOrError(topics); err != nil {
			return nil, err
		}
	} else {
		into = memberBalancer.Balance(topics)
	}
	assignments := into.IntoSyncAssignment()
	encoded := make(plan, len(assignments))
	for _, assignment := range assignments {
		encoded[assignment.MemberID] = assignment.MemberAssignment
	}
	return encoded, nil
}
