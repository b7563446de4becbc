"""Plays a story on three brokers, real ones or groupcoord's, over sockets, and compares the responses.

Most answers are looked at once. What brokers tell each other takes a while on real ones: what has to come about first is asked
again there, until it is as expected or for too long. Where Kafka's answer is a matter of chance, the story names those that
are allowed.
"""

import copy
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from groupcoord.cluster.network_cuts import Peer
from groupcoord.protocol.apis.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from groupcoord.protocol.errors import ErrorCode
from tests.conformance import codec
from tests.conformance.normalise import Names, normalised
from tests.conformance.trio_requests import metadata, offset_at
from tests.conformance.trios import Trio
from tests.conformance.wire import PATIENCE_MS, Hungup, SocketWire, Wire

PROPERTIES = {
    "broker.session.timeout.ms": "7000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "10000",
    "leader.imbalance.check.interval.seconds": "3600",
    "default.replication.factor": "3",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.max.session.timeout.ms": "600000",
    "group.consumer.session.timeout.ms": "600000",
}
"""The properties of the brokers that the stories are told to, one after the other."""
SESSION_S, LAG_S = 7, 10

CLOSED, REFUSED, SILENCE = "connection closed", "connection refused", "no answer"

ERROR = "error_code"
A_MINUTE_MS = 60_000


Topics = Mapping[str, tuple[Sequence[tuple[int, ...]], Mapping[str, str]]]
"""Each topic of a story with the brokers of its partitions, and its configurations."""
Look = Callable[[str, Callable[[], Any], bool], None]
"""Given the name of a step, what finds out what came of it, and whether that may take a while to come about."""


class Sent:
    """A request that waits for its answer."""

    def __init__(self, story: "TrioStory", wire: Wire, message: Any, version: int) -> None:
        self._story, self._wire, self._version = story, wire, version
        self._api = codec.api_of(message)
        self.answer: Any = None
        """The answer, when it has come."""
        wire.send(codec.request_frame(message, version, 1, "judge"))

    def waits(self, what: str) -> None:
        """A step: nothing has come so far."""
        self._story.step(what, lambda names: self.received(names, self._story.silence_ms))

    def is_answered(self, what: str, *, allowed: Collection[str] = ()) -> Any:
        """A step: the answer comes, or the connection is closed. Where some are ``allowed``, their errors are compared."""
        self._story.step(what, lambda names: _any_of(allowed, self.received(names, self._story.patience_ms)))
        return self.answer

    def received(self, names: Names, within_ms: int) -> Any:
        """What is compared of what comes."""
        if self.answer is not None:
            return "answered before"
        try:
            frame = self._wire.receive(within_ms)
        except Hungup:
            return CLOSED
        if frame is None:
            return SILENCE
        self._wire.close()
        answer = codec.read_answer(self._api, self._version, frame, 1)
        self.answer = answer.message
        shown = normalised(answer.shown, names, self._api.name)
        if shown.get("controller_id", -1) > 0:
            shown["controller_id"] = "<any broker>"  # where controllers are nodes of their own, Kafka names any
        return shown


def errors_in(shown: Any) -> list[str]:
    """The errors in an answer, in its order; what is no answer is its own error."""
    if isinstance(shown, str):
        return [shown]
    if isinstance(shown, dict):
        here = [ErrorCode(shown[ERROR]).name] if ERROR in shown else []
        return here + [
            error for value in shown.values() if isinstance(value, dict | list) for error in errors_in(value)
        ]
    return [error for item in shown if isinstance(item, dict | list) for error in errors_in(item)]


def _any_of(allowed: Collection[str], shown: Any) -> Any:
    if not allowed:
        return shown
    outcome = errors_in(shown)[-1]
    return {"any of": sorted(allowed)} if outcome in allowed else shown


class TrioStory:
    """Asks brokers, and shows ``look`` what each answers."""

    patience_ms = 60_000

    def __init__(self, trio: Trio, look: Look, topic_ids: Mapping[str, uuid.UUID]) -> None:
        self.silence_ms = trio.silence_ms
        self._trio, self._look = trio, look
        self._steps = 0
        self._wires: list[Wire] = []
        self._names = Names(story="trio", endpoints={trio.address(broker_id) for broker_id in (1, 2, 3)})
        self._names.step_starts_ms.append(time.time_ns() // 1_000_000 - A_MINUTE_MS)  # all times are those of one step
        for name, topic_id in topic_ids.items():
            self._names.learn_topic(topic_id, name)

    def step(self, what: str, find: Callable[[Names], Any], *, settles: bool = False) -> None:
        """Compare what ``find`` finds."""
        self._steps += 1
        names = self._names

        def found() -> Any:
            self._names = copy.deepcopy(names)  # what was in an answer that was too early is forgotten
            return find(self._names)

        self._look(f"{self._steps} {what}", found, settles)

    def sends(self, broker_id: int, message: Any, version: int) -> Sent:
        """A request that is not answered at once."""
        wire = SocketWire(*self._trio.address(broker_id))
        self._wires.append(wire)
        return Sent(self, wire, message, version)

    def close(self) -> None:
        """Close all connections."""
        for wire in self._wires:
            wire.close()

    def asks(
        self,
        what: str,
        broker_id: int,
        message: Any,
        version: int,
        *,
        settles: bool = False,
        allowed: Collection[str] = (),
    ) -> Any:
        """A step: a request and its answer, which is returned. With ``settles`` it is asked until it is as expected."""
        answers: list[Any] = []

        def find(names: Names) -> Any:
            try:
                sent = self.sends(broker_id, message, version)
            except ConnectionRefusedError:
                return REFUSED
            shown = sent.received(names, PATIENCE_MS)
            answers.append(sent.answer)
            return _any_of(allowed, shown)

        self.step(what, find, settles=settles)
        return answers[-1] if answers else None

    def ask(self, broker_id: int, message: Any, version: int) -> Any:
        """The answer of a broker, for a step that looks at some of it. Raises OSError if there is none."""
        return self._trio.ask(broker_id, message, version)

    def act(self, action: str, broker_id: int) -> None:
        """``stop``, ``kill``, ``pause``, ``resume`` or ``start`` a broker, or the controller."""
        self._trio.act(action, broker_id)

    def cut_off(self, broker_id: int, peer: Peer) -> None:
        """Cut the network between a broker and another one or the ``controller``."""
        self._trio.cut_off(broker_id, peer)

    def reconnect(self, broker_id: int, peer: Peer) -> None:
        """Mend it."""
        self._trio.reconnect(broker_id, peer)

    def passes(self, seconds: float) -> None:
        """Time passes. Real brokers are asked until it has."""
        self._trio.settle(seconds)

    def partitions(self, what: str, broker_id: int, *topics: str, elr: Collection[list[int]] = ()) -> None:
        """A step: the partitions of ``topics`` as that broker and all others that it knows see them, when they are as expected
        and their leaders know. Which of the ``elr`` given are eligible is a matter of chance."""

        def find(names: Names) -> Any:
            known = self._trio.ask(broker_id, metadata(), 12)
            others = [broker.node_id for broker in known.brokers if broker.node_id != broker_id]
            seen = self._partitions(broker_id, topics)
            agree = all(self._partitions(each, topics) == seen for each in others)
            for partition in seen.values():
                if partition["elr"] in elr:
                    partition["elr"] = {"any of": sorted(elr)}
            return {**seen, "all agree": agree}

        self.step(what, find, settles=True)

    def _partitions(self, broker_id: int, topics: Collection[str]) -> dict[str, Any]:
        asked = DescribeTopicPartitionsRequest(topics=tuple(TopicRequest(name=name) for name in sorted(topics)))
        return {
            f"{topic.name}-{each.partition_index}": {
                "leader": each.leader_id,
                "epoch": each.leader_epoch,
                "isr": list(each.isr_nodes),
                "elr": list(each.eligible_leader_replicas or ()),
                "last known elr": list(each.last_known_elr or ()),
                "offline": sorted(each.offline_replicas),
                "leads": each.leader_id < 0 or self._leads(each.leader_id, topic.name, each.partition_index),
            }
            for topic in self._trio.ask(broker_id, asked, 0).topics
            for each in topic.partitions
        }

    def _leads(self, broker_id: int, topic: str, partition: int) -> bool:
        answer = self._trio.ask(broker_id, offset_at(topic, partition), 10)
        return bool(answer.topics[0].partitions[0].error_code != ErrorCode.NOT_LEADER_OR_FOLLOWER)
