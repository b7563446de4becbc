"""A story with leader elections and reassignments of partitions on three brokers.

Elections of leaders, and other replicas for partitions, while all brokers run and while some do not. Each answer is looked at
once; the partitions after it on real brokers until they are as expected, or for too long.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from groupcoord.protocol.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from groupcoord.protocol.apis.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from groupcoord.protocol.apis.elect_leaders import PREFERRED, UNCLEAN, ElectLeadersRequest, TopicPartitions
from groupcoord.protocol.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from groupcoord.protocol.errors import ErrorCode
from tests.conformance.trios import SHORT_SESSION, Observation, Trio, create_topics

RECORDING = Path(__file__).with_suffix(".json")

PROPERTIES = {"leader.imbalance.check.interval.seconds": "3600", **SHORT_SESSION}
REBALANCING = {"leader.imbalance.check.interval.seconds": "5", **SHORT_SESSION}
TOPICS = {
    "three": ((1, 2, 3), (2, 3, 1), (3, 1, 2)),
    "moved": ((1, 2), (2, 1), (1, 2)),
    "two": ((3, 2),),
    "one": ((3,),),
}

Partitions = Sequence[tuple[str, Sequence[int]]]
Moves = Sequence[tuple[str, Sequence[tuple[int, Sequence[int] | None]]]]


def partitions(trio: Trio, broker_id: int = 1) -> Observation:
    """What that broker says of the partitions: leader, leader epoch, replicas, in sync, eligible ones, offline ones."""
    asked = tuple(TopicRequest(name=name) for name in sorted(TOPICS))
    described = trio.ask(broker_id, DescribeTopicPartitionsRequest(topics=asked), 0)
    return {
        f"{topic.name}-{each.partition_index}": [
            each.leader_id,
            each.leader_epoch,
            list(each.replica_nodes),
            list(each.isr_nodes),
            list(each.eligible_leader_replicas or ()),
            sorted(each.offline_replicas),
        ]
        for topic in described.topics
        for each in topic.partitions
    }


def _outcome(code: int, message: str | None) -> list[str | None]:
    return [ErrorCode(code).name, message]


class Administrator:
    """Asks broker 1, or another one."""

    def __init__(self, trio: Trio) -> None:
        self._trio = trio

    def elect(
        self,
        asked: Partitions | None,
        election: int = PREFERRED,
        *,
        version: int = 2,
        broker: int = 1,
        timeout_ms: int = 60_000,
    ) -> Observation:
        request = ElectLeadersRequest(
            topic_partitions=None
            if asked is None
            else tuple(TopicPartitions(topic=name, partitions=tuple(indexes)) for name, indexes in asked),
            timeout_ms=timeout_ms,
            election_type=election,
        )
        answer = self._trio.ask(broker, request, version)
        return {
            "error": ErrorCode(answer.error_code).name if version else None,
            "topics": [
                [
                    topic.topic,
                    [[p.partition_id, *_outcome(p.error_code, p.error_message)] for p in topic.partition_result],
                ]
                for topic in answer.replica_election_results
                if topic.topic in TOPICS or asked is not None
            ],
        }

    def move(
        self, asked: Moves, *, version: int = 1, may_change_factor: bool = True, timeout_ms: int = 60_000
    ) -> Observation:
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=timeout_ms,
            allow_replication_factor_change=may_change_factor,
            topics=tuple(
                ReassignableTopic(
                    name=name,
                    partitions=tuple(
                        ReassignablePartition(partition_index=index, replicas=None if to is None else tuple(to))
                        for index, to in moves
                    ),
                )
                for name, moves in asked
            ),
        )
        answer = self._trio.ask(2 if version == 0 else 1, request, version)
        return {
            "error": _outcome(answer.error_code, answer.error_message),
            "factor may change": answer.allow_replication_factor_change if version else None,
            "topics": [
                [topic.name, [[p.partition_index, *_outcome(p.error_code, p.error_message)] for p in topic.partitions]]
                for topic in answer.responses
            ],
        }

    def list(self, asked: Partitions | None = None, *, timeout_ms: int = 60_000) -> Observation:
        topics = (
            None
            if asked is None
            else tuple(ListPartitionReassignmentsTopics(name=name, partition_indexes=tuple(one)) for name, one in asked)
        )
        answer = self._trio.ask(1, ListPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=topics), 0)
        return {
            "error": _outcome(answer.error_code, answer.error_message),
            "topics": [
                [
                    topic.name,
                    [
                        [p.partition_index, list(p.replicas), list(p.adding_replicas), list(p.removing_replicas)]
                        for p in topic.partitions
                    ],
                ]
                for topic in answer.topics
            ],
        }


def tell(trio: Trio, look: Callable[[str, Callable[[], Observation]], None]) -> None:
    """Tell the story; ``look`` is given the name of each step, and what finds out what came of it."""
    number = 0
    admin = Administrator(trio)

    def asks(act: Callable[..., Observation], *asked: Any, **options: Any) -> None:
        nonlocal number
        number += 1
        look(f"{number} {act.__name__}: answer", lambda: act(*asked, **options))
        look(f"{number} {act.__name__}: partitions", lambda: partitions(trio))

    def happens(action: str, broker_id: int) -> None:
        trio.act(action, broker_id)
        trio.settle()
        look(f"{number} {action} {broker_id}: partitions", lambda: partitions(trio))

    create_topics(trio, TOPICS, {})
    look("begin: partitions", lambda: partitions(trio))
    _all_brokers_run(admin, asks)
    happens("stop", 3)
    _a_broker_does_not_run(admin, asks)
    happens("stop", 2)
    happens("start", 3)
    asks(admin.list)
    asks(admin.elect, [("two", [0])])
    asks(admin.elect, [("two", [0])], UNCLEAN)
    asks(admin.elect, None)
    happens("start", 2)


def _all_brokers_run(admin: Administrator, asks: Callable[..., None]) -> None:
    asks(admin.elect, [("three", [0, 0, 7, -1]), ("nope", [0, 1]), ("one", [0]), ("three", [1])])
    asks(admin.elect, None)
    asks(admin.elect, [], 5, timeout_ms=0)
    asks(admin.elect, [("three", [0])], UNCLEAN)
    asks(admin.elect, [("three", [0])], 7)
    asks(admin.elect, [("three", [0])], -3, version=1, broker=2)
    asks(admin.elect, [("three", [0]), ("nope", [0])], version=0, broker=3)
    asks(admin.elect, [("three", [0])], 7, timeout_ms=0)
    asks(admin.elect, None, timeout_ms=-1)
    asks(admin.elect, [("three", [0])], version=0, timeout_ms=0)
    asks(admin.move, [("three", [(0, [1, 2])])], version=0)
    asks(admin.move, [("three", [(0, [1, 2])])])
    asks(
        admin.move,
        [
            ("three", [(0, [1, 2, 3]), (9, [1]), (-1, None), (1, []), (2, [1, 1])]),
            ("nope", [(0, [1])]),
            ("one", [(0, [9])]),
            ("two", [(0, [-1])]),
        ],
    )
    asks(admin.move, [("three", [(0, [2, 1]), (1, []), (9, [1]), (2, None)])], may_change_factor=False)
    asks(admin.move, [("three", [(0, [2, 1, 3])])], may_change_factor=False)
    asks(admin.elect, [("three", [0])])
    asks(admin.move, [("three", [(0, [3])]), ("three", [(1, [1])])])
    asks(admin.move, [("three", [(0, None)]), ("one", [(0, None)]), ("nope", [(0, None)])])
    asks(admin.move, [], may_change_factor=False, timeout_ms=0)
    asks(admin.move, [("three", [(0, [1])])], may_change_factor=False, timeout_ms=0)
    asks(admin.list, timeout_ms=0)
    asks(admin.list, [("three", [0, 9]), ("nope", [1])])


def _a_broker_does_not_run(admin: Administrator, asks: Callable[..., None]) -> None:
    asks(admin.elect, [("two", [0]), ("one", [0])])
    asks(admin.elect, [("two", [0]), ("one", [0])], UNCLEAN)
    asks(admin.elect, None)
    asks(admin.elect, None, UNCLEAN)
    asks(admin.move, [("moved", [(0, [2, 3]), (1, [1, 3]), (2, [1, 3])])])
    asks(admin.list)
    asks(admin.list, [("moved", [1, 0, 7]), ("two", [0])])
    asks(admin.move, [("moved", [(0, [3, 1])])], may_change_factor=False)
    asks(admin.move, [("moved", [(0, [3])])], may_change_factor=False)
    asks(admin.move, [("moved", [(0, [3])]), ("moved", [(1, None)])])
    asks(admin.list)
    asks(admin.elect, [("moved", [0, 1, 2])])
    asks(admin.move, [("moved", [(0, [1, 2])])])
    asks(admin.list)
    asks(admin.move, [("moved", [(0, [2, 3]), (1, [1]), (2, [3])])])
    asks(admin.move, [("moved", [(2, None)])])
    asks(admin.move, [("moved", [(2, [3])])])
    asks(admin.list)


def tell_of_rebalancing(trio: Trio, look: Callable[[str, Callable[[], Observation]], None]) -> None:
    """A broker is stopped and started again, and automatic leader rebalancing makes it the leader of its partitions again."""
    create_topics(trio, TOPICS, {})
    for action in ("stop", "start"):
        trio.act(action, 3)
        trio.settle()
        look(f"{action}: partitions", lambda: partitions(trio))


STORIES = {"partitions administered": (tell, PROPERTIES), "leaders rebalanced": (tell_of_rebalancing, REBALANCING)}
"""Each story, and the properties of the brokers that it is told to."""


def recorded() -> dict[str, dict[str, Observation]]:
    """What three real brokers answered, by story and step."""
    found: dict[str, dict[str, Observation]] = json.loads(RECORDING.read_text())
    return found
