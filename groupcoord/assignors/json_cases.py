"""Test cases of assignors in JSON: parses a case's input, runs the assignor, and returns its result as JSON values.

The format is that of the expected assignments in this project's tests: a list of objects, each with ``id``, ``assignor``
(``server-`` before the name of a server-side one), ``partitions_per_topic`` and ``members`` in order of insertion; a member has
``id``, ``topics`` and further fields of its subscription. Unknown fields are ignored, the expected results included.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from groupcoord.assignors.cooperative_adjustment import withhold
from groupcoord.assignors.interface import (
    Assignment,
    AssignorError,
    GroupSubscription,
    JavaFailure,
    Subscription,
    TopicPartition,
)
from groupcoord.assignors.range_assignor import RangeAssignor
from groupcoord.assignors.registry import ASSIGNORS
from groupcoord.assignors.round_robin_assignor import RoundRobinAssignor
from groupcoord.assignors.server_side import (
    SERVER_ASSIGNORS,
    GroupSpec,
    MemberSubscription,
    PartitionAssignorError,
    SubscriptionType,
    subscription_type,
)
from groupcoord.assignors.sticky.previous_assignment import (
    DEFAULT_GENERATION,
    PreviousAssignment,
    previous_of_cooperative,
    previous_of_sticky,
)
from groupcoord.assignors.sticky.sticky_assignors import COOPERATIVE_STICKY, STICKY, assign_from_previous

SERVER = "server-"


class CaseError(ValueError):
    """The file has an invalid case; the text tells which, and why."""


def answer_case(case: Any) -> dict[str, Any]:
    """``id``, ``assignor`` and ``assignment``: member → list of [topic, partition], in order (server-side: sorted).

    Sticky ones also have ``path``, constrained or general, and ``transferring``: [topic, partition, new owner]. If the assignor
    fails there are ``error``, the name of Kafka's exception, and ``message`` instead. Raises CaseError.
    """
    try:
        head = {"id": case["id"], "assignor": case["assignor"]}
        return {**head, **_answer(str(case["assignor"]), case)}
    except JavaFailure as failure:
        return {**head, "error": failure.exception, "message": str(failure)}
    except PartitionAssignorError as failure:
        return {**head, "error": "PartitionAssignorException", "message": str(failure)}
    except AssignorError as failure:
        return {**head, "error": type(failure).__name__, "message": str(failure)}
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        name = case.get("id", "without an id") if isinstance(case, Mapping) else "of no object"
        raise CaseError(f"case {name}: {type(error).__name__}: {error}") from error


def group_of(case: Mapping[str, Any]) -> GroupSubscription:
    """The group of a case of a client-side assignor."""
    members: dict[str, Subscription] = {}
    for member in case["members"]:
        if member["id"] in members:
            raise CaseError(f"{member['id']} is a member twice")
        members[member["id"]] = _subscription(member)
    return GroupSubscription(
        subscriptions=members,
        partitions=_counts(case),
        racks=case.get("partition_racks", {}),
        prefer_rack_aware=case.get("prefer_rack_aware", False),
    )


def spec_of(case: Mapping[str, Any]) -> tuple[GroupSpec, dict[UUID, str]]:
    """The group of a case of a server-side assignor, and the names of its topics."""
    ids = {topic: topic_id(text) for topic, text in case["topic_ids"].items()}
    names = {known: topic for topic, known in ids.items()}
    members: dict[str, MemberSubscription] = {}
    for member in case["members"]:
        assigned = {_known(ids, names, topic): given for topic, given in member.get("assigned", {}).items()}
        for topic, partition in member.get("owned", ()):
            assigned.setdefault(_known(ids, names, topic), []).append(partition)
        wanted = [_known(ids, names, topic) for topic in member["topics"]]
        members[member["id"]] = MemberSubscription(
            topic_ids=list(dict.fromkeys(wanted)),
            unknown_topics=member.get("unknown_topics", 0),
            assigned=assigned,
            instance_id=member.get("instance_id"),
        )
    counts = {_known(ids, names, topic): count for topic, count in _counts(case).items()}
    kind = case.get("subscription_type")
    spec = GroupSpec(
        members=members,
        subscription_type=SubscriptionType(kind) if kind else subscription_type(members),
        partitions=counts,
        assignable={_known(ids, names, topic): given for topic, given in case["assignable"].items()}
        if "assignable" in case
        else None,
    )
    return spec, names


def topic_id(text: str) -> UUID:
    """A topic id from its base64 text."""
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def _answer(name: str, case: Mapping[str, Any]) -> dict[str, Any]:
    if name.startswith(SERVER):
        return _server_side(name.removeprefix(SERVER), case)
    group = group_of(case)
    if name in (STICKY, COOPERATIVE_STICKY):
        return _sticky(name, case, group)
    known = {RangeAssignor.name: RangeAssignor, RoundRobinAssignor.name: RoundRobinAssignor}
    assignor = known[name]() if name in known else ASSIGNORS.create(name)
    return {"assignment": _written(group.subscriptions, assignor.assign(group))}


def _sticky(name: str, case: Mapping[str, Any], group: GroupSubscription) -> dict[str, Any]:
    previous_of = previous_of_sticky if name == STICKY else previous_of_cooperative
    previous = {
        member["id"]: (
            PreviousAssignment(_partitions(member["owned"]), member.get("generation"))
            if "owned" in member
            else previous_of(group.subscriptions[member["id"]])
        )
        for member in case["members"]
    }
    result = assign_from_previous(group, previous, max_generation=case.get("max_generation", DEFAULT_GENERATION))
    assignment = result.assignment
    if name == COOPERATIVE_STICKY:
        assignment = withhold(assignment, result.transferring)
    return {
        "path": "constrained" if result.constrained else "general",
        "assignment": _written(group.subscriptions, assignment),
        "transferring": sorted([*partition, member_id] for partition, member_id in result.transferring.items()),
    }


def _server_side(name: str, case: Mapping[str, Any]) -> dict[str, Any]:
    spec, names = spec_of(case)
    target = SERVER_ASSIGNORS[name](spec)
    assignment = {
        member_id: sorted([names[topic], partition] for topic, partitions in topics.items() for partition in partitions)
        for member_id, topics in target.items()
    }
    return {"assignment": {member_id: assignment[member_id] for member_id in spec.members}}


def _subscription(member: Mapping[str, Any]) -> Subscription:
    """The member's subscription; fields that the case does not have are empty."""
    wire = member.get("wire", {})
    user_data, generation = wire.get("user_data_hex"), wire.get("generation_id", DEFAULT_GENERATION)
    return Subscription(
        topics=list(member["topics"]),
        user_data=None if user_data is None else bytes.fromhex(user_data),
        owned_partitions=_partitions(wire.get("owned_partitions", ())),
        generation_id=generation if generation >= 0 else None,
        rack_id=member.get("rack"),
        instance_id=member.get("instance_id"),
    )


def _counts(case: Mapping[str, Any]) -> dict[str, int]:
    counts = dict(case["partitions_per_topic"])
    for topic, count in counts.items():
        if type(count) is not int or count < 0:
            raise CaseError(f"topic {topic} cannot have {count!r} partitions")
    return counts


def _partitions(listed: Sequence[Sequence[Any]]) -> list[TopicPartition]:
    return [(topic, partition) for topic, partition in listed]


def _written(members: Mapping[str, object], assignment: Assignment) -> dict[str, list[list[Any]]]:
    return {member_id: [list(partition) for partition in assignment[member_id]] for member_id in members}


def _known(ids: dict[str, UUID], names: dict[UUID, str], topic: str) -> UUID:
    """The id of ``topic``; a topic without an id in the case gets an unused one."""
    if topic not in ids:
        ids[topic] = next(_unused(names))
        names[ids[topic]] = topic
    return ids[topic]


def _unused(names: Mapping[UUID, str]) -> Iterator[UUID]:
    return (known for number in range(len(names) + 1) if (known := UUID(int=number)) not in names)
