"""Validates the assignment of an assignor before the leader sends it to the group.

Kafka's leader checks little of this: two members may then consume the same partition, or none does. Here the leader's join
fails with a text that names the faults, and the group tries again.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from groupcoord.assignors.cooperative_adjustment import changing_hands
from groupcoord.assignors.interface import (
    Assignment,
    Assignor,
    AssignorError,
    GroupSubscription,
    RebalanceProtocol,
    TopicPartition,
)
from groupcoord.assignors.sticky.sticky_assignors import COOPERATIVE_STICKY

SHOWN = 3
"""How many faults are listed."""


class FaultyAssignorError(AssignorError):
    """The assignor called ``name`` failed, or returned an assignment with ``faults``."""

    def __init__(self, name: str, faults: Sequence[str]) -> None:
        super().__init__(f"assignor {name}: " + "; ".join(faults))
        self.name = name
        self.faults = tuple(faults)


def run_assignor(
    assignor: Assignor, group: GroupSubscription, protocol: RebalanceProtocol = RebalanceProtocol.EAGER
) -> Assignment:
    """The validated assignment of ``assignor``. Raises FaultyAssignorError for any error."""
    try:
        answer = assignor.assign(group)
    except Exception as error:
        raise FaultyAssignorError(assignor.name, [f"raised {type(error).__name__}: {error}"]) from error
    check_assignment(assignor.name, group, answer, protocol)
    return answer


def check_assignment(
    name: str, group: GroupSubscription, answer: Mapping[str, Sequence[TopicPartition]], protocol: RebalanceProtocol
) -> None:
    """Validate ``answer``, the assignment of the assignor called ``name``. Raises FaultyAssignorError.

    Exactly the members have entries; each assigned partition exists, is subscribed by its member, and is assigned once; each
    partition of a subscribed topic is assigned. Under the cooperative protocol an owned partition may be unassigned, and may
    not be assigned to another member; cooperative-sticky is trusted with that, as in Kafka, since it resolves stale claims.
    """
    shape = list(islice(_shape(group, answer), SHOWN + 1))
    faults = shape or list(islice(_content(name, group, dict(answer), protocol), SHOWN + 1))  # type: ignore[arg-type]
    if faults:
        raise FaultyAssignorError(name, [*faults[:SHOWN], *(["and so on"] if len(faults) > SHOWN else [])])


def _shape(group: GroupSubscription, answer: Any) -> Iterator[str]:
    if not isinstance(answer, Mapping):
        yield f"answered {_short(answer)}, which is not a mapping from member ids to partitions"
        return
    for member_id in answer:
        if member_id not in group.subscriptions:
            yield f"names {_short(member_id)}, who is not a member"
    for member_id in group.subscriptions:
        if member_id not in answer:
            yield f"forgets member {member_id}"
        elif not isinstance(answer[member_id], Sequence) or isinstance(answer[member_id], str):
            yield f"gives {member_id} {_short(answer[member_id])}, which is not a list of partitions"
        else:
            for partition in answer[member_id]:
                if not _is_partition(partition):
                    yield f"gives {member_id} {_short(partition)}, which is no (topic, partition)"


def _is_partition(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and type(value[1]) is int


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _content(name: str, group: GroupSubscription, answer: Assignment, protocol: RebalanceProtocol) -> Iterator[str]:
    given: dict[TopicPartition, str] = {}
    for member_id, partitions in answer.items():
        wanted = frozenset(group.subscriptions[member_id].topics)
        for partition in partitions:
            topic, number = partition
            other = given.setdefault(partition, member_id)
            if not 0 <= number < group.partitions.get(topic, 0):
                yield f"gives {member_id} {topic}-{number}, which does not exist"
            elif topic not in wanted:
                yield f"gives {member_id} {topic}-{number}, but {member_id} does not subscribe to {topic}"
            elif other is not member_id:
                yield f"gives {topic}-{number} to both {other} and {member_id}"
    yield from _twice(answer)
    yield from _forgotten(group, given, protocol)
    if protocol is RebalanceProtocol.COOPERATIVE and name != COOPERATIVE_STICKY:
        for (topic, number), member_id in changing_hands(group.subscriptions, answer).items():
            yield f"gives {member_id} {topic}-{number}, which its owner has yet to give up"


def _twice(answer: Assignment) -> Iterator[str]:
    for member_id, partitions in answer.items():
        if len(set(partitions)) < len(partitions):
            topic, number = next(partition for partition in partitions if partitions.count(partition) > 1)
            yield f"gives {topic}-{number} to {member_id} twice"


def _forgotten(
    group: GroupSubscription, given: Mapping[TopicPartition, str], protocol: RebalanceProtocol
) -> Iterator[str]:
    owned: set[TopicPartition] = set()
    if protocol is RebalanceProtocol.COOPERATIVE:
        owned.update(*[subscription.owned_partitions for subscription in group.subscriptions.values()])
    for topic in dict.fromkeys(topic for subscription in group.subscriptions.values() for topic in subscription.topics):
        for number in range(group.partitions.get(topic, 0)):
            if (topic, number) not in given and (topic, number) not in owned:
                yield f"gives {topic}-{number} to nobody"
