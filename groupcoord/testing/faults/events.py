"""The events of rules, for the log and the trace."""

from dataclasses import dataclass

from groupcoord.core.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultInjected(Event):
    """The rule with this ``name`` acted on a request of ``api``; ``action`` says how.

    ``group`` and ``member`` are the first that the request names; None and ``""`` if there is none.
    """

    name: str
    rule: str
    api: str
    client_id: str | None
    group: str | None
    member: str
    action: str

    def text(self) -> str:
        return f"fault by {self.name}: {_request(self.api, self.member, self.client_id)} {self.action}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultEnded(Event):
    """A request or an answer that was delayed or held for ``held_ms`` goes on; the other fields are as in FaultInjected."""

    name: str
    rule: str
    api: str
    client_id: str | None
    group: str | None
    member: str
    held_ms: int

    def text(self) -> str:
        request = _request(self.api, self.member, self.client_id)
        return f"fault by {self.name} is over: {request} goes on after {self.held_ms} ms"


def _request(api: str, member: str, client_id: str | None) -> str:
    return f"{api} of {member or client_id or 'a client without id'}"
