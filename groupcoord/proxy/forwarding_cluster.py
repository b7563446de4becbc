"""What stands in the place of a cluster's core in a proxy: requests are sent on, and answers come back later.

Layers stand around it as around a core, so that faults and tracing are the same here and there.
"""

from collections.abc import Callable
from typing import Any

from groupcoord.config.broker_config import BrokerConfig, load
from groupcoord.core.background_work import SubmitWork
from groupcoord.core.effects import Call, Effect, EmitEvent, NoReply, Reply
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.api_versions import ApiVersion
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import ApiVersionsResponse
from groupcoord.proxy.group_observer import GroupObserver
from groupcoord.proxy.node_addresses import NEWEST_READ

_UNSUPPORTED = ApiVersionsResponse(
    error_code=ErrorCode.UNSUPPORTED_VERSION,
    api_keys=(ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=NEWEST_READ[ApiKey.API_VERSIONS]),),
)


class ForwardingCluster:
    """Gives each request to ``send``; ``answered`` is called with what comes back."""

    def __init__(self, send: Callable[[Call], None], observer: GroupObserver) -> None:
        self._send = send
        self._observer = observer
        self.config: BrokerConfig = load()
        """The defaults: nothing here asks for anything in it but the layers."""

    def handle(self, call: Call, request: Any, now_ms: int) -> list[Effect]:
        """Send ``request`` on. One that wants no answer is done then.

        ApiVersions of a version that is not known here is refused, as by a broker: its answer could not be rewritten.
        """
        if request is None:
            return [Reply(call._replace(version=0), _UNSUPPORTED)]
        self._send(call)
        effects: list[Effect] = [EmitEvent.of(event) for event in self._observer.asked(call, request, now_ms)]
        return effects if expects_answer(call, request) else [*effects, NoReply(call)]

    def answered(self, call: Call, request: Any, response: Any, now_ms: int) -> list[Effect]:
        """``response`` came back: what it tells of groups, and the answer itself."""
        events = self._observer.answered(call, request, response, now_ms)
        return [*(EmitEvent.of(event) for event in events), Reply(call, response)]

    def listening_at(self, host: str, port: int, listener: int = 0) -> None:
        """The proxy keeps its addresses itself."""

    def expire(self, now_ms: int) -> list[Effect]:  # noqa: ARG002 - there are no timers
        """Nothing is due."""
        return []

    def flush(self, now_ms: int) -> list[Effect]:  # noqa: ARG002 - nothing is put off
        """Nothing is put off."""
        return []

    def batch_rounds(self, *, batches: bool) -> None:
        """Nothing is put off."""

    def next_deadline(self) -> int | None:
        """There are no timers."""
        return None

    def deadline_lower_bound(self) -> int | None:
        """There are no timers."""
        return None

    def use_worker(self, submit: SubmitWork | None) -> None:
        """Nothing takes long."""


def expects_answer(call: Call, request: Any) -> bool:
    """Does the client wait for an answer? Not to a Produce with acks 0."""
    return not (call.api.key == ApiKey.PRODUCE and request.acks == 0)
