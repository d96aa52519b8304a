//! The steps from one generation to the next: the wait for the members, the end of the join phase, and the removal of members
//! that do not join or sync.

use super::answers::{answer_join, refuse_sync};
use super::group::{ClassicGroup, ClassicGroupState, Context, InitialWait};
use super::timers::Timer;
use crate::protocol::ErrorCode;

impl ClassicGroup {
    /// Starts a rebalance. During a join phase, ends the join phase if all members have joined.
    pub(super) fn rebalance_or_complete_join(&mut self, context: &mut Context<'_>) {
        if self.state == ClassicGroupState::PreparingRebalance {
            self.maybe_complete_join(context);
        } else {
            self.prepare_rebalance(context);
        }
    }

    /// Ends the join phase if all members have joined. The initial wait is not shortened: it waits for members that are
    /// not known yet.
    pub(super) fn maybe_complete_join(&mut self, context: &mut Context<'_>) {
        if self.state == ClassicGroupState::PreparingRebalance && self.initial.is_none() && self.all_joined() {
            self.complete_join(context);
        }
    }

    /// Starts the join phase: every member must join again.
    pub(super) fn prepare_rebalance(&mut self, context: &mut Context<'_>) {
        if self.state == ClassicGroupState::CompletingRebalance {
            self.drop_plan(context, ErrorCode::REBALANCE_IN_PROGRESS);
        }
        self.pending_sync.clear();
        context.timers.cancel(Timer::Sync(self.id.clone()));

        let was_empty = self.state == ClassicGroupState::Empty;
        self.state = ClassicGroupState::PreparingRebalance;
        if was_empty {
            let delay_ms = context.config.initial_rebalance_delay_ms;
            let remaining_ms = self.rebalance_timeout_ms().saturating_sub(delay_ms);
            self.initial = Some(InitialWait { delay_ms, remaining_ms });
            self.wait_for_joins(context, delay_ms);
        } else if self.all_joined() {
            self.complete_join(context);
        } else {
            self.wait_for_joins(context, self.rebalance_timeout_ms());
        }
    }

    fn wait_for_joins(&self, context: &mut Context<'_>, wait_ms: u64) {
        context.timers.set(Timer::Join(self.id.clone()), context.now.saturating_add(wait_ms));
    }

    /// The timer of the join phase fired.
    pub(super) fn join_phase_expired(&mut self, context: &mut Context<'_>) {
        if self.state != ClassicGroupState::PreparingRebalance {
            return;
        }
        match self.initial {
            Some(InitialWait { delay_ms, remaining_ms }) if self.new_member_added && remaining_ms > 0 => {
                self.new_member_added = false;
                let next_ms = context.config.initial_rebalance_delay_ms.min(remaining_ms);
                let remaining_ms = remaining_ms.saturating_sub(delay_ms);
                self.initial = Some(InitialWait { delay_ms: next_ms, remaining_ms });
                self.wait_for_joins(context, next_ms);
            }
            _ => self.complete_join(context),
        }
    }

    /// Ends the join phase. Members with an unanswered JoinGroup are in the next generation. Of the others, dynamic
    /// members are removed, and static members stay until their session ends.
    fn complete_join(&mut self, context: &mut Context<'_>) {
        context.timers.cancel(Timer::Join(self.id.clone()));
        let missing = |member: &super::group::ClassicMember| member.joining.is_none() && member.instance_id.is_none();
        let gone: Vec<String> =
            self.members.iter().filter(|(_, member)| missing(member)).map(|(id, _)| id.clone()).collect();
        for id in gone {
            self.remove(context, &id);
        }
        if !self.elect_joined_leader() && !self.members.is_empty() {
            // Only absent static members are left: wait until one joins or their sessions end. At least 1 ms: with 0,
            // the loop over the due timers would never end.
            return self.wait_for_joins(context, self.rebalance_timeout_ms().max(1));
        }

        self.initial = None;
        self.new_member_added = false;
        self.pending_sync.clear();
        // The generation is an int32 on the wire. After the largest one comes 0.
        self.generation = self.generation.checked_add(1).unwrap_or(0);
        self.protocol = self.elect_protocol();
        if self.members.is_empty() {
            self.state = ClassicGroupState::Empty;
            return;
        }
        self.state = ClassicGroupState::CompletingRebalance;
        for id in self.members.keys().cloned().collect::<Vec<_>>() {
            let response = self.join_response(&id, self.is_leader(&id));
            if let Some(member) = self.members.get_mut(&id) {
                member.is_new = false;
                if let Some(ticket) = member.joining.take() {
                    answer_join(context.connections, ticket, response);
                }
            }
            self.renew_session(context, &id);
            self.pending_sync.insert(id);
        }
        let deadline = context.now.saturating_add(self.rebalance_timeout_ms());
        context.timers.set(Timer::Sync(self.id.clone()), deadline);
    }

    /// Makes a member that has joined the leader; false if no member has joined.
    fn elect_joined_leader(&mut self) -> bool {
        let joined = |id: &String| self.members.get(id).is_some_and(|member| member.joining.is_some());
        if self.leader.as_ref().is_some_and(joined) {
            return true;
        }
        match self.members.keys().find(|id| joined(id)).cloned() {
            Some(id) => {
                self.leader = Some(id);
                true
            }
            None => false,
        }
    }

    /// Drops the plan of a generation that did not become Stable, and answers each unanswered SyncGroup with `code`.
    pub(super) fn drop_plan(&mut self, context: &mut Context<'_>, code: ErrorCode) {
        for id in self.members.keys().cloned().collect::<Vec<_>>() {
            let Some(member) = self.members.get_mut(&id) else { continue };
            member.assignment.clear();
            if let Some(ticket) = member.syncing.take() {
                refuse_sync(context.connections, ticket, code);
                self.renew_session(context, &id);
            }
        }
    }

    /// The timer of the sync phase fired: members that have not sent SyncGroup are removed.
    pub(super) fn sync_phase_expired(&mut self, context: &mut Context<'_>) {
        if !matches!(self.state, ClassicGroupState::CompletingRebalance | ClassicGroupState::Stable)
            || self.pending_sync.is_empty()
        {
            return;
        }
        for id in std::mem::take(&mut self.pending_sync) {
            self.remove(context, &id);
        }
        self.prepare_rebalance(context);
    }

    /// The session of a member, or of a pending member id, has ended.
    pub(super) fn session_expired(&mut self, context: &mut Context<'_>, member_id: &str) {
        if self.pending.contains(member_id) {
            self.remove(context, member_id);
            if self.state == ClassicGroupState::PreparingRebalance && self.all_joined() {
                self.complete_join(context);
            }
            return;
        }
        let Some(member) = self.members.get(member_id) else { return };
        // A member with an unanswered request sends no heartbeats. Its session restarts with the answer. A new member
        // that waited for this timeout is removed.
        if !member.is_new && (member.joining.is_some() || member.syncing.is_some()) {
            return;
        }
        self.remove(context, member_id);
        match self.state {
            ClassicGroupState::Stable | ClassicGroupState::CompletingRebalance => self.prepare_rebalance(context),
            ClassicGroupState::PreparingRebalance if self.all_joined() => self.complete_join(context),
            ClassicGroupState::PreparingRebalance | ClassicGroupState::Empty => {}
        }
    }
}
