"""Heartbeats, and the two limits beside them: the session's and the user's. Source: ``Heartbeat`` and ``HeartbeatThread``.

A member beats from the moment it is in a generation. While JoinGroup is under way it does not: the coordinator waits for the
others then and does not count.
"""

from groupcoord.client import actions as a
from groupcoord.client import events as e
from groupcoord.client import verdicts
from groupcoord.client.errors import BrokerError, DisconnectedError
from groupcoord.client.member import Generation, Member, MemberState
from groupcoord.client.verdicts import Verdict
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


class Heart:
    """Beats, and notices when nobody answers or nobody polls."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._ticket: int | None = None
        self._attempts = 0
        self._beat_at_ms = 0
        self._session_ends_ms = 0
        self._poll_due_ms = 0

    @property
    def _beating(self) -> bool:
        return self._member.state in (MemberState.COMPLETING_REBALANCE, MemberState.STABLE)

    def start(self) -> None:
        """The member is in a generation: all limits start anew (``resetTimeouts``)."""
        settings = self._member.settings
        self._beat_at_ms = self._member.now_ms + settings.heartbeat_interval_ms
        self.user_seen()
        self.session_renewed()

    def session_renewed(self) -> None:
        """The coordinator has answered, or a new one was found."""
        self._session_ends_ms = self._member.now_ms + self._member.settings.session_timeout_ms

    def user_seen(self) -> None:
        """The user asks for records, or takes some."""
        self._poll_due_ms = self._member.now_ms + self._member.settings.max_poll_interval_ms

    def next_deadline(self) -> int | None:
        """When something is due (ms)."""
        member = self._member
        if not self._beating:
            return None
        due = []
        if member.coordinator is not None:
            due.append(self._session_ends_ms)
            if self._ticket is None:
                due.append(self._beat_at_ms)
        if not member.user_present:
            due.append(self._poll_due_ms)
        return min(due, default=None)

    def expire(self) -> bool:
        """Do what is due. Has the user been away for too long?"""
        member = self._member
        if not self._beating:
            return False
        if member.coordinator is not None and self._session_ends_ms <= member.now_ms:
            member.lose_coordinator("the session timed out without an answer to a heartbeat")
        if not member.user_present and self._poll_due_ms <= member.now_ms:
            return True
        if member.coordinator is not None and self._ticket is None and self._beat_at_ms <= member.now_ms:
            self._beat(member.coordinator)
        return False

    def _beat(self, coordinator: a.Coordinator) -> None:
        member = self._member
        sent = member.generation
        self._beat_at_ms = member.now_ms + member.settings.heartbeat_interval_ms
        request = HeartbeatRequest(
            group_id=member.settings.group_id,
            generation_id=sent.generation_id,
            member_id=sent.member_id,
            group_instance_id=member.settings.instance_id,
        )
        self._ticket = member.ask(
            lambda ticket: a.Send(ticket, coordinator, request, member.settings.request_timeout_ms),
            lambda response: self._answered(response, sent),
            lambda error: self._failed(error, coordinator),
        )

    def _answered(self, response: HeartbeatResponse, sent: Generation) -> None:
        member = self._member
        self._ticket = None
        code = ErrorCode(response.error_code)
        verdict = verdicts.of_heartbeat(code)
        if verdict in (Verdict.GO_ON, Verdict.AGAIN):
            self._attempts = 0
            self.session_renewed()
            if verdict is Verdict.AGAIN and member.state is MemberState.STABLE and not member.rejoin_needed:
                member.request_rejoin("group is already rebalancing")
            return
        if verdict is Verdict.SEARCH:
            member.lose_coordinator(f"it answered a heartbeat with {code.name}")
        elif verdict is Verdict.RETRY:
            member.note(e.RequestRefused, request="Heartbeat", error=code.name, then=verdict.value)
        elif sent == member.generation:
            if verdict is Verdict.FAIL:
                member.fail(BrokerError(code, "heartbeat"))
                return
            member.reset(f"a heartbeat was answered {code.name}", forget_id=verdict is Verdict.NEW_MEMBER)
        self._missed()

    def _failed(self, error: Exception, coordinator: a.Coordinator) -> None:
        self._ticket = None
        if not isinstance(error, DisconnectedError):
            self._member.fail(error)
            return
        if self._member.coordinator == coordinator:
            self._member.lose_coordinator(str(error))
        self._missed()

    def _missed(self) -> None:
        self._beat_at_ms = self._member.now_ms + self._member.backoff.delay_ms(self._attempts)
        self._attempts += 1
