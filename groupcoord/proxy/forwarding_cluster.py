"""ForwardingCluster, which takes the place of a cluster's core in the proxy: it forwards requests, and responses come later.

The same layers wrap it as wrap a core, so that faults and tracing work the same way.
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
from groupcoord.proxy.address_rewriting import NEWEST_READ
from groupcoord.proxy.group_observer import GroupObserver

_UNSUPPORTED = ApiVersionsResponse(
    error_code=ErrorCode.UNSUPPORTED_VERSION,
    api_keys=(ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=NEWEST_READ[ApiKey.API_VERSIONS]),),
)


class ForwardingCluster:
    """Passes each request to ``send``; ``answered`` is called with the response."""

    def __init__(self, send: Callable[[Call], None], observer: GroupObserver) -> None:
        self._send = send
        self._observer = observer
        self.config: BrokerConfig = load()
        """The default configs, which only the layers use."""

    def handle(self, call: Call, request: Any, now_ms: int) -> list[Effect]:
        """Forward ``request``. A request without a response is complete then.

        ApiVersions of a version that is unknown here gets UNSUPPORTED_VERSION, because its response could not be rewritten.
        """
        if request is None:
            return [Reply(call._replace(version=0), _UNSUPPORTED)]
        self._send(call)
        effects: list[Effect] = [EmitEvent.of(event) for event in self._observer.asked(call, request, now_ms)]
        return effects if expects_answer(call, request) else [*effects, NoReply(call)]

    def answered(self, call: Call, request: Any, response: Any, now_ms: int) -> list[Effect]:
        """The effects of a ``response`` that came back: events of groups, and the response itself."""
        events = self._observer.answered(call, request, response, now_ms)
        return [*(EmitEvent.of(event) for event in events), Reply(call, response)]

    def listening_at(self, host: str, port: int, listener: int = 0) -> None:
        """Do nothing: the proxy keeps its addresses itself."""

    def expire(self, now_ms: int) -> list[Effect]:  # noqa: ARG002 - there are no timers
        """No effects: there are no timers."""
        return []

    def flush(self, now_ms: int) -> list[Effect]:  # noqa: ARG002 - nothing is deferred
        """No effects: nothing is deferred."""
        return []

    def batch_rounds(self, *, batches: bool) -> None:
        """Do nothing: nothing is deferred."""

    def next_deadline(self) -> int | None:
        """None: there are no timers."""
        return None

    def deadline_lower_bound(self) -> int | None:
        """None: there are no timers."""
        return None

    def use_worker(self, submit: SubmitWork | None) -> None:
        """Do nothing: no work takes long."""


def expects_answer(call: Call, request: Any) -> bool:
    """Does the request get a response? A Produce with acks=0 gets none."""
    return not (call.api.key == ApiKey.PRODUCE and request.acks == 0)
