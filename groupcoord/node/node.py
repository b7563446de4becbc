"""One broker: the group coordinator and the data plane behind one face, and the log that connects them.

Pure: a call and the time in, effects out. The coordinator's appends are carried to ``__consumer_offsets`` here, so what
comes out is for the network and for whoever watches.
"""

import dataclasses
import uuid
from collections.abc import Iterable
from typing import Any, Protocol

from groupcoord.broker.broker import Broker
from groupcoord.broker.refused import Refused
from groupcoord.broker.topic_creation import create_topic
from groupcoord.broker.topic_names import CONSUMER_OFFSETS
from groupcoord.broker.topics import Topic
from groupcoord.config.settings import BrokerConfig
from groupcoord.coordinator.config import CoordinatorConfig
from groupcoord.coordinator.coordinator import GroupCoordinator
from groupcoord.core.effects import Append, Call, Effect, Reply
from groupcoord.core.timers import Deadline
from groupcoord.core.turn import Turn
from groupcoord.node.api_versions import api_versions
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.batches import BatchError
from groupcoord.protocol.errors import ErrorCode


class Chance(Protocol):
    """Everything random comes from here; a test gives one that counts."""

    def uuid(self) -> uuid.UUID:
        """A random id: for members and topics."""

    def session_id(self) -> int:
        """A random positive int32, for a fetch session."""


class Node:
    """One broker and coordinator with everything in memory."""

    def __init__(self, config: BrokerConfig, *, chance: Chance, now_ms: int) -> None:
        self.broker = Broker(config, new_topic_id=chance.uuid, new_session_id=chance.session_id)
        self.coordinator = GroupCoordinator(
            _coordinator_config(config),
            new_uuid=lambda: str(chance.uuid()),
            topics=self.broker.topics,
            now_ms=now_ms,
        )
        self.broker.on_topics_deleted = self._topics_deleted
        self._coordinated = frozenset(self.coordinator.apis)
        create_topic(self.broker, now_ms, CONSUMER_OFFSETS)

    @property
    def config(self) -> BrokerConfig:
        """The configuration as it is now: clients can change some of it while the broker runs."""
        return self.broker.config

    def listening_at(self, host: str, port: int) -> None:
        """The server listens there: from now on that is what clients are told, unless something else is advertised."""
        self.broker.config = self.config.listening_at(host, port)
        advertised = self.config.advertised
        self.coordinator.config = dataclasses.replace(
            self.coordinator.config, host=advertised.host, port=advertised.port
        )

    def handle(self, call: Call, request: Any, now_ms: int) -> list[Effect]:
        """What follows from ``request``; ``None`` for it stands for an ApiVersions of an unknown version."""
        key = call.api.key
        if key == ApiKey.FIND_COORDINATOR and CONSUMER_OFFSETS not in self.broker.topics:
            # Somebody deleted it. Deviation: the groups in it live on; Kafka forgets them, and makes the topic anew like this.
            create_topic(self.broker, now_ms, CONSUMER_OFFSETS)
        if key in self._coordinated:
            return self._carry(self.coordinator.handle(call, request, now_ms), now_ms)
        if key == ApiKey.API_VERSIONS:
            turn = Turn(now_ms, call)
            api_versions(turn, call, request)
            return turn.effects
        return self._carry(self.broker.handle(call, request, now_ms), now_ms)

    def expire(self, now_ms: int) -> list[Effect]:
        """Fire every timer that is due at ``now_ms``."""
        effects = self._carry(self.coordinator.expire(now_ms), now_ms)
        return effects + self._carry(self.broker.expire(now_ms), now_ms)

    def next_deadline(self) -> int | None:
        """When the next timer is due (ms), or None."""
        groups, logs = self.coordinator.next_deadline(), self.broker.next_deadline()
        if groups is None or logs is None:
            return logs if groups is None else groups
        return min(groups, logs)

    def deadlines(self) -> list[Deadline]:
        """All pending timers, earliest first."""
        pending = [*self.coordinator.timers.pending(), *self.broker.timers.pending()]
        return sorted(pending, key=lambda deadline: deadline.at_ms)

    def create_topic(self, name: str, partitions: int, now_ms: int) -> None:
        """Create a topic without a client asking for it. Raises ValueError if Kafka would refuse it."""
        try:
            create_topic(self.broker, now_ms, name, partitions)
        except Refused as refusal:
            raise ValueError(str(refusal)) from refusal

    def _carry(self, effects: list[Effect], now_ms: int) -> list[Effect]:
        """Store what is to be appended, and go on with what waited for it."""
        if len(effects) == 1 and type(effects[0]) is Reply:
            return effects  # as it is for most requests
        carried: list[Effect] = []
        for effect in effects:
            if type(effect) is Append:
                carried += self._append(effect, now_ms)
            else:
                carried.append(effect)
        return carried

    def _append(self, append: Append, now_ms: int) -> list[Effect]:
        try:
            stored = self.broker.append_to(CONSUMER_OFFSETS, append.partition, append.records, now_ms)
        except BatchError as problem:
            return self._carry(self.coordinator.append_failed(append, problem.error, now_ms), now_ms)
        except KeyError:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return self._carry(self.coordinator.append_failed(append, error, now_ms), now_ms)
        return stored + self._carry(self.coordinator.appended(append, now_ms), now_ms)

    def _topics_deleted(self, turn: Turn, topics: Iterable[Topic]) -> None:
        self.coordinator.topics_deleted(turn, [topic.name for topic in topics])


def _coordinator_config(config: BrokerConfig) -> CoordinatorConfig:
    names = {field.name for field in dataclasses.fields(CoordinatorConfig)} - {"host", "port"}
    settings = {name: getattr(config, name) for name in names}
    return CoordinatorConfig(**settings, host=config.advertised.host, port=config.advertised.port)
