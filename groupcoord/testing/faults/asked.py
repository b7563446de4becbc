"""A request as rules see it: who asks what of which broker, and which groups, members and topics it is about."""

import uuid
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, NamedTuple

from groupcoord.broker.fetch_sessions import NoSuchShardError
from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.core.effects import Call
from groupcoord.protocol.api import ALL_TOPICS, values_of
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.messages import ProduceRequest

_SHOWN = 300
"""So many characters of a request are shown; a Produce has a megabyte of them."""


class TopicsKnown(NamedTuple):
    """What a broker knows of topics that requests do not name: those with an id, those of a fetch session."""

    name_of: Callable[[uuid.UUID], str | None] = lambda _: None
    fetched_in: Callable[[int], Iterable[str]] = lambda _: ()

    @classmethod
    def to(cls, node: ClusterCore) -> "TopicsKnown":
        """What ``node`` knows."""

        def fetched_in(session_id: int) -> Iterable[str]:
            try:
                session = node.broker.fetch_sessions[session_id]
            except (KeyError, NoSuchShardError):
                return ()
            return {fetched.topic for fetched in session.all_wanted(node.broker.topics.topic_name) if fetched.topic}

        return cls(node.broker.topics.topic_name, fetched_in)


NOTHING_KNOWN = TopicsKnown()


class Asked:
    """One request; what has to be looked up is looked up when a rule asks for it. Texts count time from ``start_ms``."""

    def __init__(
        self,
        call: Call,
        request: Any,
        now_ms: int,
        *,
        broker: int = 0,
        known: TopicsKnown = NOTHING_KNOWN,
        start_ms: int = 0,
    ) -> None:
        self.call = call
        self.request = request
        """The message in the shape of the newest version; None if it was not understood, as an ApiVersions of the future."""
        self.at_ms = now_ms
        self.kept_since_ms = now_ms
        """When a rule began to keep it, or its answer."""
        self.broker = broker
        self._known = known
        self._start_ms = start_ms

    def __str__(self) -> str:
        api, version, client_id = self.call.api, self.call.version, self.call.client_id
        who = "a client without id" if client_id is None else repr(client_id)
        text = repr(self.request)
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        return f"{api.name} v{version} from {who} at {self.at_ms - self._start_ms} ms, broker {self.broker}: {shown}"

    @property
    def wants_answer(self) -> bool:
        """Does the client wait? Not for a Produce with acks=0."""
        return not (isinstance(self.request, ProduceRequest) and self.request.acks == 0)

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The groups it names."""
        return tuple(map(str, values_of(self.call.api.groups, self.request)))

    @cached_property
    def members(self) -> tuple[str, ...]:
        """The member ids and instance ids it names; a newcomer's member id is ``""``."""
        return tuple(map(str, values_of(self.call.api.members + self.call.api.instances, self.request)))

    @cached_property
    def topics(self) -> tuple[str, ...] | None:
        """The topics it names, or reads in its fetch session; None stands for all there are."""
        found = values_of(self.call.api.topics, self.request)
        if ALL_TOPICS in found:
            return None
        names = [
            self._known.name_of(value) or f"id {value}" if isinstance(value, uuid.UUID) else value for value in found
        ]
        if self.call.api.key == ApiKey.FETCH and self.request.session_id:
            names += self._known.fetched_in(self.request.session_id)
        return tuple(dict.fromkeys(str(name) for name in names if name))
