"""Which requests a rule is about, and why a request is none of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypedDict, Unpack

from groupcoord.protocol.apis import Api, ApiKey
from groupcoord.testing.faults.apis import ApiLike, api_of, nearest
from groupcoord.testing.faults.asked import Asked
from groupcoord.testing.faults.problems import Findings, is_number
from groupcoord.testing.faults.spans import Span

Where = Callable[[Any], object]
SpanLike = int | range | str | Span


class Conditions(TypedDict, total=False):
    """What ``when`` takes besides the API; see Match."""

    group: str | None
    member: str | None
    client_id: str | None
    version: SpanLike | None
    nth: SpanLike | None
    topic: str | None
    where: Where | None
    broker: int | None


ANY = "any"
"""How data calls that a rule is about every API."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """What a request has to be like; None: anything. ``api`` None is any API.

    ``group``, ``member`` (a member id or a ``group.instance.id``) and ``topic`` hold if one of those that the request names is
    it. ``nth`` counts the requests that the other fields let through. Raises RuleProblems for what no request can be like.
    """

    api: Api | None = None
    group: str | None = None
    member: str | None = None
    topic: str | None = None
    client_id: str | None = None
    version: Span | None = None
    nth: Span | None = None
    where: Where | None = None
    broker: int | None = None

    def __post_init__(self) -> None:
        findings = Findings()
        for name in ("group", "member", "topic", "client_id"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                findings.add(name, f"{value!r} is not text: put what is meant in quotes")
        if self.broker is not None and not is_number(self.broker):
            findings.add("broker", f"{self.broker!r} is not the number of a broker")
        where: object = self.where
        if where is not None and not callable(where):
            findings.add("where", f"{where!r} is not a function of a request")
        if self.nth is not None and not self.nth.first:
            findings.add("nth", "the first request is number 1")
        if self.api is not None:
            self._agree_with(self.api, findings)
        findings.tell()

    def _agree_with(self, api: Api, findings: Findings) -> None:
        for name, fields in (("group", api.groups), ("member", api.members + api.instances), ("topic", api.topics)):
            if getattr(self, name) is not None and not fields:
                findings.add(name, f"a request of {api.name} names no {name}")
        if self.version is None or api.key == ApiKey.API_VERSIONS:  # the one that is answered at whatever version
            return
        served = Span(api.min_version, api.max_version)
        if not any(map(self.version.__contains__, range(api.min_version, api.max_version + 1))):
            findings.add("version", f"{self.version} is not served; {api.name} is at {served}")

    @classmethod
    def of(cls, api: ApiLike | None = None, **conditions: Unpack[Conditions]) -> "Match":
        """The requests that are meant, each field as a person writes it. Raises RuleProblems."""
        findings = Findings()
        known: dict[str, Any] = {
            name: value for name, value in conditions.items() if name in Conditions.__annotations__
        }
        for name in conditions:
            if name not in known:
                findings.add(name, f"there is no such field{nearest(name, Conditions.__annotations__)}")
        one_api = findings.read("when", lambda: None if api is None or api == ANY else api_of(api))
        for name in ("version", "nth"):
            if (given := known.get(name)) is not None:
                known[name] = findings.read(name, partial(Span.of, given))
        match = findings.read(
            "when",
            lambda: cls(api=one_api, **known),
        )
        findings.tell()
        assert match is not None
        return match

    def __repr__(self) -> str:
        given = [] if self.api is None else [self.api.name]
        given += [f"{name}={value!r}" for name, value in self.fields()]
        return f"when({', '.join(given)})"

    def fields(self) -> Iterator[tuple[str, Any]]:
        """(name, value) of what is given besides the API, as Python writes it."""
        for name in ("group", "member", "topic", "client_id", "version", "nth", "where", "broker"):
            value = getattr(self, name)
            if value is not None:
                yield name, value.plain if isinstance(value, Span) else value

    def differences(self, asked: Asked) -> list[str]:
        """Why ``asked`` is not meant; nothing if it is. ``nth`` and ``where`` are not looked at.

        If it is of another API that is the one reason.
        """
        call = asked.call
        if self.api is not None and call.api is not self.api:
            return [f"it is not {self.api.name}"]
        reasons = []
        if self.group is not None and self.group not in asked.groups:
            reasons.append(_other("group", self.group, asked.groups))
        if self.member is not None and self.member not in asked.members:
            reasons.append(_other("member", self.member, asked.members))
        if self.topic is not None and asked.topics is not None and self.topic not in asked.topics:
            reasons.append(_other("topic", self.topic, asked.topics))
        if self.client_id is not None and self.client_id != (call.client_id or ""):
            reasons.append(_other("client_id", self.client_id, () if call.client_id is None else (call.client_id,)))
        if self.version is not None and call.version not in self.version:
            reasons.append(f"version is {call.version}, not {self.version}")
        if self.broker is not None and self.broker != asked.broker:
            reasons.append(f"broker is {asked.broker}, not {self.broker}")
        return reasons


def _other(field: str, wanted: str, found: tuple[str, ...]) -> str:
    if not found:
        return f"it names no {field}, and not {wanted!r}"
    names = ", ".join(map(repr, found))
    return f"{field} is {names}, not {wanted!r}"
