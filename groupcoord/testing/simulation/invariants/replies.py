"""Every answer is to one request."""

from typing import Any

from groupcoord.core.effects import Call
from groupcoord.testing.simulation.invariants.base import Invariant


class Replies(Invariant):
    """See ``promise``."""

    name = "one-reply"
    promise = (
        "An answer goes to one request, which was asked and has no answer yet. At the end nobody waits for one: what Kafka "
        "never answers, a JoinGroup that another one has replaced and the SyncGroup of a member that is thrown out, its client "
        "has given up by then."
    )

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._open: dict[tuple[int, int], Call] = {}

    def asked(self, call: Call, request: Any) -> None:
        """One more."""
        del request
        self._open[call.connection_id, call.correlation_id] = call

    def replied(self, call: Call, response: Any) -> None:
        """Raises Broken for an answer to nothing."""
        del response
        if self._open.pop((call.connection_id, call.correlation_id), None) is None:
            what = f"request {call.correlation_id} on connection {call.connection_id}"
            raise self.broken(f"{call.api.name} of {call.client_id} ({what}) is answered once more")

    def finish(self) -> None:
        """Raises Broken for a request that a living member still waits for."""
        waiting = {
            key: call
            for process in self.scene.processes()
            for key in process.waits_for()
            if (call := self._open.get(key))
        }
        for call in waiting.values():
            raise self.broken(f"{call.api.name} of {call.client_id} was not answered")
