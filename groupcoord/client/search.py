"""Looking for the coordinator, until it is found (``AbstractCoordinator.ensureCoordinatorReady``)."""

from groupcoord.client import actions as a
from groupcoord.client import events as e
from groupcoord.client import verdicts
from groupcoord.client.errors import BrokerError, DisconnectedError
from groupcoord.client.heart import Heart
from groupcoord.client.member import Member
from groupcoord.client.verdicts import Verdict
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

GROUP = 0
"""The kind of key that a group is."""


class Search:
    """Asks one broker after the other."""

    def __init__(self, member: Member, heart: Heart) -> None:
        self._member = member
        self._heart = heart
        self._ticket: int | None = None
        self._attempts = 0
        self.retry_at_ms: int | None = None

    def begin(self) -> None:
        """Ask, unless the coordinator is known, a broker is asked already, or it is too early to ask again."""
        member = self._member
        if member.coordinator is not None or self._ticket is not None or self.retry_at_ms is not None:
            return
        group = member.settings.group_id
        request = FindCoordinatorRequest(key=group, key_type=GROUP, coordinator_keys=(group,))
        self._ticket = member.ask(
            lambda ticket: a.Send(ticket, None, request, member.settings.request_timeout_ms),
            self._answered,
            self._failed,
        )

    def expire(self) -> None:
        """It is time to ask again."""
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
        match verdicts.of_find(code):
            case Verdict.GO_ON:
                self._attempts = 0
                member.coordinator = a.Coordinator(found.node_id, found.host, found.port)
                self._heart.session_renewed()
                member.note(e.CoordinatorFound, coordinator=str(member.coordinator))
            case Verdict.RETRY:
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
        member.note(e.RequestRefused, request="FindCoordinator", error=why, then=Verdict.RETRY.value)
