"""Subscriptions and assignments, against the bytes of Kafka's Java client."""

import pytest

from groupcoord.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    OverrunError,
    TopicPartition,
    read_assignment,
    read_subscription,
    subscribed_topics,
    write_assignment,
    write_subscription,
)
from groupcoord.protocol.errors import WireError

CLICKS_AND_ORDERS = (
    TopicPartition(topic="clicks", partitions=(3,)),
    TopicPartition(topic="orders", partitions=(0, 1)),
)

# What ConsumerProtocol.serializeSubscription of Kafka 4.3.1 made, by version.
SUBSCRIPTIONS = {
    0: "0000 00000002 0006636c69636b73 00066f7264657273 00000002 0102",
    1: "0001 00000002 0006636c69636b73 00066f7264657273 00000002 0102"
    "00000002 0006636c69636b73 00000001 00000003 00066f7264657273 00000002 00000000 00000001",
    2: "0002 00000002 0006636c69636b73 00066f7264657273 00000002 0102"
    "00000002 0006636c69636b73 00000001 00000003 00066f7264657273 00000002 00000000 00000001 00000007",
    3: "0003 00000002 0006636c69636b73 00066f7264657273 00000002 0102"
    "00000002 0006636c69636b73 00000001 00000003 00066f7264657273 00000002 00000000 00000001 00000007 00067261636b2d61",
}
SMALLEST = {
    0: "0000 00000001 00066f7264657273 ffffffff",
    1: "0001 00000001 00066f7264657273 ffffffff 00000000",
    2: "0002 00000001 00066f7264657273 ffffffff 00000000 ffffffff",
    3: "0003 00000001 00066f7264657273 ffffffff 00000000 ffffffff ffff",
}
# And ConsumerProtocol.serializeAssignment; all versions have the same fields.
ASSIGNMENT = "00000002 00066f7264657273 00000002 00000001 00000000 0006636c69636b73 00000001 00000003 00000002 0102"


@pytest.mark.parametrize("version", range(4))
def test_subscriptions_are_those_of_the_java_client(version: int) -> None:
    subscription = ConsumerProtocolSubscription(
        version=version,
        topics=("clicks", "orders"),
        user_data=b"\1\2",
        owned_partitions=CLICKS_AND_ORDERS if version >= 1 else (),
        generation_id=7 if version >= 2 else -1,
        rack_id="rack-a" if version >= 3 else None,
    )
    assert write_subscription(subscription) == bytes.fromhex(SUBSCRIPTIONS[version])
    assert read_subscription(bytes.fromhex(SUBSCRIPTIONS[version])) == subscription


@pytest.mark.parametrize("version", range(4))
def test_the_smallest_subscription(version: int) -> None:
    subscription = ConsumerProtocolSubscription(version=version, topics=("orders",))
    assert write_subscription(subscription) == bytes.fromhex(SMALLEST[version])
    assert read_subscription(bytes.fromhex(SMALLEST[version])) == subscription


@pytest.mark.parametrize("version", range(4))
def test_assignments_are_those_of_the_java_client(version: int) -> None:
    assigned = (TopicPartition(topic="orders", partitions=(1, 0)), TopicPartition(topic="clicks", partitions=(3,)))
    assignment = ConsumerProtocolAssignment(version=version, assigned_partitions=assigned, user_data=b"\1\2")
    data = version.to_bytes(2, "big") + bytes.fromhex(ASSIGNMENT)
    assert write_assignment(assignment) == data
    assert read_assignment(data) == assignment


def test_an_empty_assignment() -> None:
    assert write_assignment(ConsumerProtocolAssignment()) == bytes.fromhex("0003 00000000 ffffffff")
    assert read_assignment(bytes.fromhex("0000 00000000 ffffffff")) == ConsumerProtocolAssignment(version=0)


def test_a_version_to_come_is_read_as_the_highest_known_and_written_as_that() -> None:
    subscription = read_subscription(bytes.fromhex("0009" + SMALLEST[3][4:] + "aabbcc"))
    assert subscription == ConsumerProtocolSubscription(version=9, topics=("orders",))
    assert write_subscription(subscription) == bytes.fromhex(SMALLEST[3])
    assignment = read_assignment(bytes.fromhex("7fff" + ASSIGNMENT + "aa"))
    assert (assignment.version, len(assignment.assigned_partitions)) == (32767, 2)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("", "ConsumerProtocolSubscription, field version, offset 0: 0 bytes are too few for the version"),
        ("00", "ConsumerProtocolSubscription, field version, offset 0: 1 bytes are too few for the version"),
        ("ffff 00000000 ffffffff", "ConsumerProtocolSubscription, field version, offset 0: version -1 is negative"),
        (
            "0000 7fffffff",
            "ConsumerProtocolSubscription v0, field topics, offset 2: 2147483647 items do not fit in the 0 bytes that are left",
        ),
        (
            "0001 00000000 ffffffff 00000001 ffff",
            "ConsumerProtocolSubscription v1, field owned_partitions[0].topic, offset 14: null",
        ),
        ("0009 00000000 ffffffff 00000000 00", "ConsumerProtocolSubscription v3, field generation_id, offset 14: "),
    ],
)
def test_what_is_no_subscription_is_refused(data: str, problem: str) -> None:
    with pytest.raises(WireError) as caught:
        read_subscription(bytes.fromhex(data))
    assert str(caught.value).startswith(problem)


def test_what_is_no_assignment_is_refused() -> None:
    with pytest.raises(
        WireError,
        match="ConsumerProtocolAssignment v0, field assigned_partitions, offset 2: null where there must be a value",
    ):
        read_assignment(bytes.fromhex("0000 ffffffff ffffffff"))


@pytest.mark.parametrize(
    "data", [*SUBSCRIPTIONS.values(), "ffff" + SUBSCRIPTIONS[3][4:], "0063" + SUBSCRIPTIONS[1][4:] + "aa"]
)
def test_the_topics_are_read_from_any_version(data: str) -> None:
    assert subscribed_topics(bytes.fromhex(data)) == frozenset({"clicks", "orders"})


def test_nobody_may_be_subscribed_to_nothing() -> None:
    assert subscribed_topics(bytes.fromhex("0000 00000000 ffffffff")) == frozenset()


@pytest.mark.parametrize(
    "data", ["", "00", "0000", "0000 00000000", "0000 00000001 00", "0000 00000001 0001 74 000000"]
)
def test_what_is_no_subscription_has_no_topics(data: str) -> None:
    assert subscribed_topics(bytes.fromhex(data)) is None


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("0000 00000001", "1 topics where 0 bytes are left"),
        ("0000 ffffffff ffffffff", "-1 topics where 4 bytes are left"),
        ("0000 00000001 ffff ffffffff", "a topic's name of -1 bytes where 4 are left"),
        ("0000 00000001 0009 74", "a topic's name of 9 bytes where 1 are left"),
        ("0000 00000001 0001 74 0000000961", "user data of 9 bytes where 1 are left"),
    ],
)
def test_a_length_that_cannot_be_is_another_matter(data: str, problem: str) -> None:
    with pytest.raises(OverrunError, match=problem):
        subscribed_topics(bytes.fromhex(data))


def test_letters_that_are_none_are_replaced_as_java_does() -> None:
    assert subscribed_topics(bytes.fromhex("0000 00000001 0002 61ff ffffffff")) == frozenset({"a\ufffd"})
