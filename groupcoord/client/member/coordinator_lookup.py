"""Finds the coordinator of a member's group with FindCoordinator (``CoordinatorRequestManager``)."""

from collections.abc import Callable

from groupcoord.client import error_reactions
from groupcoord.client.client_errors import BrokerError, DisconnectedError
from groupcoord.client.error_reactions import ErrorReaction
from groupcoord.client.member import actions as a
from groupcoord.client.member import member_events as e
from groupcoord.client.member.context import MemberActions
from groupcoord.protocol.apis.find_coordinator import GROUP, FindCoordinatorRequest, FindCoordinatorResponse
from groupcoord.protocol.errors import ErrorCode


class CoordinatorLookup:
    """Sends FindCoordinator, with back-off, until a broker names the coordinator.

    Source: ``AbstractCoordinator.ensureCoordinatorReady``.
    """

    def __init__(self, member: MemberActions, on_found: Callable[[], None] = lambda: None) -> None:
        self._member = member
        self._on_found = on_found
        self._ticket: int | None = None
        self._attempts = 0
        self.retry_at_ms: int | None = None

    def begin(self) -> None:
        """Send FindCoordinator, unless there is no group, the coordinator is known, or a lookup or back-off is in progress."""
        member = self._member
        group = member.settings.group_id
        if not group or member.coordinator is not None or self._ticket is not None or self.retry_at_ms is not None:
            return
        request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=(group,))
        self._ticket = member.start_action(
            lambda ticket: a.SendRequest(ticket, None, request, member.settings.request_timeout_ms),
            self._answered,
            self._failed,
        )

    def expire(self) -> None:
        """End the back-off if its time is over."""
        if self.retry_at_ms is not None and self.retry_at_ms <= self._member.now_ms:
            self.retry_at_ms = None

    def _answered(self, response: FindCoordinatorResponse) -> None:
        member = self._member
        self._ticket = None
        found = next((each for each in response.coordinators if each.key == member.settings.group_id), None)
        if found is None:
            member.fail(BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "FindCoordinator answered for another group"))
            return
        code = ErrorCode(found.error_code)
        match error_reactions.to_find_coordinator(code):
            case ErrorReaction.GO_ON:
                self._attempts = 0
                member.coordinator = a.CoordinatorNode(found.node_id, found.host, found.port)
                self._on_found()
                member.emit(e.CoordinatorFound, coordinator=str(member.coordinator))
            case ErrorReaction.RETRY:
                self._retry(code.name)
            case _:
                member.fail(BrokerError(code, "no coordinator"))

    def _failed(self, error: Exception) -> None:
        self._ticket = None
        if isinstance(error, DisconnectedError):
            self._retry(str(error))
        else:
            self._member.fail(error)

    def _retry(self, why: str) -> None:
        member = self._member
        self.retry_at_ms = member.now_ms + member.backoff.delay_ms(self._attempts)
        self._attempts += 1
        member.emit(e.RequestFailed, request="FindCoordinator", error=why, then=ErrorReaction.RETRY.value)
