"""Epochs of members: which heartbeat, commit or fetch is in time, and which is not."""

from typing import Any

import pytest

from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.offset_delete import OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import OffsetDeleteRequest
from tests.coordinator.consumer.consumers import Consumer, ConsumerWorld, Owned

OK, STALE, FENCED = ErrorCode.NONE, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.FENCED_MEMBER_EPOCH
UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID


def at_epoch_3() -> tuple[ConsumerWorld, Consumer]:
    """A member at epoch 3, whose previous one is 2, with t-0 and t-1 of epoch 2."""
    w = ConsumerWorld(topics={"t": 4, "u": 1})
    a = w.joined_consumers("ab")[0]
    assert (a.epoch, a.stored.previous_member_epoch, a.assigned) == (3, 2, {"t": [0, 1]})
    return w, a


@pytest.mark.parametrize(
    ("epoch", "owned", "error"),
    [
        (3, None, OK),
        (4, None, FENCED),
        (2, None, FENCED),  # it does not say what it owns
        (2, {}, OK),
        (2, {"t": [0, 1]}, OK),
        (2, {"t": [0, 2]}, FENCED),
        (2, {"u": [0]}, FENCED),
        (1, {}, FENCED),
    ],
)
def test_heartbeats(epoch: int, owned: Owned | None, error: ErrorCode) -> None:
    _, a = at_epoch_3()
    asked = a.heartbeat(member_epoch=epoch) if owned is None else a.owns(owned, member_epoch=epoch)
    assert asked.error is error
    if error:
        word = "greater" if epoch > 3 else "smaller"
        assert asked.answer.error_message == (
            f"The consumer group member has a {word} member epoch ({epoch}) than the one known by the group coordinator (3). "
            "The member must abandon all its partitions and rejoin."
        )


def test_a_heartbeat_of_nobody() -> None:
    _, a = at_epoch_3()
    asked = a.heartbeat(member_id="z")
    assert (asked.error, asked.answer.error_message) == (UNKNOWN, "Member z is not a member of group g.")


T0, T1, T2 = ("t", 0), ("t", 1), ("t", 2)


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        ({}, {T0: OK, T2: OK}),  # at its epoch nobody asks what it owns
        ({"generation": 4}, {T0: STALE}),
        ({"generation": 2}, {T0: OK, T1: OK}),  # it has had them since
        ({"generation": 2}, {T0: STALE, T2: STALE}),  # t-2 it has not: none is taken
        ({"generation": 1}, {T0: STALE}),
        ({"generation": 2}, {("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, T0: OK}),
        ({"generation": -1}, {T0: STALE}),
        ({"member_id": "z"}, {T0: UNKNOWN}),
        ({"member_id": "", "generation": -1}, {T0: UNKNOWN}),
        ({"version": 8}, {T0: ErrorCode.UNSUPPORTED_VERSION}),
    ],
)
def test_commits(changes: dict[str, Any], errors: dict[tuple[str, int], ErrorCode]) -> None:
    w, a = at_epoch_3()
    asked = a.commit(dict.fromkeys(errors, 5), **changes)
    assert asked.partition_errors == errors
    wanted = {at for at, error in errors.items() if not error}
    assert {at for at, offset in w.fetch().items() if offset == 5} == wanted


def test_commits_of_what_is_being_given_back() -> None:
    w = ConsumerWorld(topics={"t": 2})
    (a,) = w.joined_consumers("a")
    w.consumer("b").join()
    a.heartbeat()
    assert a.assigned == {"t": [0]}
    a.heartbeat()
    w.consumer("b").join(rack_id="r")
    assert a.commit({T1: 5}, generation=2).partition_errors == {T1: OK}


def test_commits_to_a_group_without_members() -> None:
    """Anybody may, who says that it is not a member."""
    w, a = at_epoch_3()
    a.leave()
    w.consumer("b").leave()
    assert w.commit(version=2).partition_errors == {T0: OK}
    assert w.commit(generation=3, member_id="a").partition_errors == {T0: UNKNOWN}


@pytest.mark.parametrize(
    ("member_id", "epoch", "error"),
    [
        (None, -1, OK),
        (None, 0, ErrorCode.UNKNOWN_SERVER_ERROR),
        ("", -1, UNKNOWN),
        ("z", 3, UNKNOWN),
        ("a", 3, OK),
        ("a", 2, STALE),
        ("a", -1, STALE),
    ],
)
def test_fetches(member_id: str | None, epoch: int, error: ErrorCode) -> None:
    w, _ = at_epoch_3()
    assert w.fetch_as_member(member_id, epoch) is error


def test_offsets_of_topics_that_someone_reads_are_not_deleted() -> None:
    w, a = at_epoch_3()
    a.commit({T0: 1, ("u", 0): 1})
    topics = tuple(
        OffsetDeleteRequestTopic(name=name, partitions=(OffsetDeleteRequestPartition(partition_index=0),))
        for name in ("t", "u")
    )
    asked = w.ask(ApiKey.OFFSET_DELETE, OffsetDeleteRequest(group_id="g", topics=topics))
    assert asked.partition_errors == {T0: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ("u", 0): OK}


@pytest.mark.slow
def test_offsets_expire_when_nobody_reads_their_topic() -> None:
    w = ConsumerWorld(group_consumer_session_timeout_ms=2**40)
    (a,) = w.joined_consumers("a")
    a.commit({T0: 1, ("u", 0): 1})
    w.advance(8 * 24 * 3_600_000)
    assert w.fetch() == {T0: 1}
