"""Heartbeat requests of a classic member, its session timeout and its ``max.poll.interval.ms``.

A member sends heartbeats while it is in a generation, but not while its JoinGroup is in flight, because the coordinator does
not expire its session then. Sources: ``Heartbeat``, ``HeartbeatThread``.
"""

from groupcoord.client import error_reactions
from groupcoord.client.client_errors import BrokerError, DisconnectedError
from groupcoord.client.error_reactions import ErrorReaction
from groupcoord.client.member import actions as a
from groupcoord.client.member import member_events as e
from groupcoord.client.member.context import Generation, MemberContext, MemberState
from groupcoord.protocol.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from groupcoord.protocol.errors import ErrorCode


class Heartbeater:
    """Sends heartbeats, and checks the session timeout and ``max.poll.interval.ms``."""

    def __init__(self, member: MemberContext) -> None:
        self._member = member
        self._ticket: int | None = None
        self._attempts = 0
        self._heartbeat_at_ms = 0
        self._session_ends_ms = 0
        self._poll_due_ms = 0

    @property
    def _in_generation(self) -> bool:
        return self._member.state in (MemberState.COMPLETING_REBALANCE, MemberState.STABLE)

    def start(self) -> None:
        """The member has joined a generation: restart all timeouts (``resetTimeouts``)."""
        settings = self._member.settings
        self._heartbeat_at_ms = self._member.now_ms + settings.heartbeat_interval_ms
        self.user_polled()
        self.session_renewed()

    def session_renewed(self) -> None:
        """The coordinator responded, or was found: restart the session timeout."""
        self._session_ends_ms = self._member.now_ms + self._member.settings.session_timeout_ms

    def user_polled(self) -> None:
        """The user has polled: restart ``max.poll.interval.ms``."""
        self._poll_due_ms = self._member.now_ms + self._member.settings.max_poll_interval_ms

    def next_deadline(self) -> int | None:
        """The next deadline (ms), or None."""
        member = self._member
        if not self._in_generation:
            return None
        due = []
        if member.coordinator is not None:
            due.append(self._session_ends_ms)
            if self._ticket is None:
                due.append(self._heartbeat_at_ms)
        if not member.user_present:
            due.append(self._poll_due_ms)
        return min(due, default=None)

    def expire(self) -> bool:
        """Handle expired timeouts. Returns whether ``max.poll.interval.ms`` is over."""
        member = self._member
        if not self._in_generation:
            return False
        if member.coordinator is not None and self._session_ends_ms <= member.now_ms:
            member.lose_coordinator("the session timed out without an answer to a heartbeat")
        if not member.user_present and self._poll_due_ms <= member.now_ms:
            return True
        if member.coordinator is not None and self._ticket is None and self._heartbeat_at_ms <= member.now_ms:
            self._send_heartbeat(member.coordinator)
        return False

    def _send_heartbeat(self, coordinator: a.CoordinatorNode) -> None:
        member = self._member
        sent = member.generation
        self._heartbeat_at_ms = member.now_ms + member.settings.heartbeat_interval_ms
        request = HeartbeatRequest(
            group_id=member.settings.group_id,
            generation_id=sent.generation_id,
            member_id=sent.member_id,
            group_instance_id=member.settings.instance_id,
        )
        self._ticket = member.start_action(
            lambda ticket: a.SendRequest(ticket, coordinator, request, member.settings.request_timeout_ms),
            lambda response: self._answered(response, sent),
            lambda error: self._failed(error, coordinator),
        )

    def _answered(self, response: HeartbeatResponse, sent: Generation) -> None:
        member = self._member
        self._ticket = None
        code = ErrorCode(response.error_code)
        reaction = error_reactions.to_heartbeat(code)
        if reaction in (ErrorReaction.GO_ON, ErrorReaction.REJOIN):
            self._attempts = 0
            self.session_renewed()
            if reaction is ErrorReaction.REJOIN and member.state is MemberState.STABLE and not member.rejoin_needed:
                member.request_rejoin("group is already rebalancing")
            return
        if reaction is ErrorReaction.FIND_COORDINATOR:
            member.lose_coordinator(f"it answered a heartbeat with {code.name}")
        elif reaction is ErrorReaction.RETRY:
            member.emit(e.RequestFailed, request="Heartbeat", error=code.name, then=reaction.value)
        elif sent == member.generation:
            if reaction is ErrorReaction.FAIL:
                member.fail(BrokerError(code, "heartbeat"))
                return
            member.reset(f"a heartbeat was answered {code.name}", forget_id=reaction is ErrorReaction.RESET_MEMBER)
        self._missed()

    def _failed(self, error: Exception, coordinator: a.CoordinatorNode) -> None:
        self._ticket = None
        if not isinstance(error, DisconnectedError):
            self._member.fail(error)
            return
        if self._member.coordinator == coordinator:
            self._member.lose_coordinator(str(error))
        self._missed()

    def _missed(self) -> None:
        self._heartbeat_at_ms = self._member.now_ms + self._member.backoff.delay_ms(self._attempts)
        self._attempts += 1
