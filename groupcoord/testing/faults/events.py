"""What rules do, as events: a log and a trace tell them like everything else that happens."""

from dataclasses import dataclass

from groupcoord.core.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultInjected(Event):
    """Rule ``rule``, installed as ``name``, acted on a request of ``api``; ``action`` says how.

    ``group`` and ``member`` are the first that the request names: None and ``""`` if it names none.
    """

    name: str
    rule: str
    api: str
    client_id: str | None
    group: str | None
    member: str
    action: str

    def text(self) -> str:
        return f"fault by {self.name}: {_whose(self.api, self.member, self.client_id)} {self.action}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultOver(Event):
    """A request or an answer that rule ``rule`` kept for ``held_ms`` goes on; the other fields are as in FaultInjected."""

    name: str
    rule: str
    api: str
    client_id: str | None
    group: str | None
    member: str
    held_ms: int

    def text(self) -> str:
        whose = _whose(self.api, self.member, self.client_id)
        return f"fault by {self.name} is over: {whose} goes on after {self.held_ms} ms"


def _whose(api: str, member: str, client_id: str | None) -> str:
    return f"{api} of {member or client_id or 'a client without id'}"
