"""KIP-211. Retention is one hour here and cleaning happens every ten minutes, as in Kafka."""

from typing import Any

import pytest

from groupcoord.coordinator.events import GroupRemoved, OffsetsRemoved
from groupcoord.core.events import TimerFired
from groupcoord.protocol.coordinator_records.group_records import GroupMetadataKey
from groupcoord.protocol.errors import ErrorCode
from tests.coordinator.world import Member, World, subscription

HOUR = 3_600_000
TICK = 600_000


def hourly(**config: Any) -> World:
    return World(offsets_retention_minutes=60, **config)


def keep_alive(world: World, ms: int, *members: Member) -> None:
    """Let ``ms`` pass with everybody's heartbeats."""
    end = world.now_ms + ms
    while world.now_ms < end:
        world.at(min(world.now_ms + 1_000_000, end))
        for member in members:
            member.heartbeat()


def patient(world: World, **terms: Any) -> Member:
    return world.member("a", session_ms=1_800_000, **terms)


# --- simple groups


def test_an_offset_of_a_simple_group_lasts_from_its_commit() -> None:
    """Gotcha 49."""
    world = hourly()
    world.commit({("t", 0): 1})
    world.at(TICK)
    world.commit({("t", 1): 2})
    world.at(HOUR - 1)
    assert len(world.fetch()) == 2
    world.at(HOUR)
    assert world.fetch() == {("t", 1): 2}
    world.at(HOUR + TICK)
    assert not world.exists


def test_the_last_offset_and_the_group_go_in_one_batch() -> None:
    world = hourly()
    world.commit()
    world.at(HOUR)
    offset, group = world.batches[-1]
    assert (offset.key.topic, offset.value) == ("t", None)
    assert (group.key, group.value) == (GroupMetadataKey(group="g"), None)


def test_an_offset_that_is_committed_again_lasts_longer() -> None:
    world = hourly()
    world.commit()
    world.at(HOUR - 1)
    world.commit()
    world.at(HOUR)
    assert world.exists


@pytest.mark.parametrize(("retention_ms", "lasts_until"), [(1, TICK), (2 * HOUR, 2 * HOUR)])
def test_a_commit_that_says_how_long_it_lasts_is_believed(retention_ms: int, lasts_until: int) -> None:
    world = hourly()
    world.commit(retention_ms=retention_ms, version=4)
    world.at(lasts_until - 1)
    assert world.exists
    world.at(lasts_until)
    assert not world.exists


# --- groups with a type


def test_offsets_of_a_group_that_everybody_has_left_last_from_then_on() -> None:
    """Gotcha 49: not from the commit."""
    world = hourly()
    a = patient(world)
    world.stable(a)
    a.commit()
    keep_alive(world, HOUR, a)
    a.leave()
    left = world.now_ms
    world.at(left + HOUR - 1)
    assert world.fetch() == {("t", 0): 5}
    world.at(left + HOUR + TICK)
    assert not world.exists


@pytest.mark.parametrize(("topic", "stays"), [("t", True), ("u", False)])
def test_a_stable_consumer_group_keeps_offsets_of_what_it_reads(topic: str, stays: bool) -> None:
    world = hourly()
    a = patient(world, protocols={"range": subscription("t")})
    world.stable(a)
    a.commit({(topic, 0): 1})
    keep_alive(world, HOUR + TICK, a)
    assert bool(world.fetch()) is stays
    assert world.group.state == "Stable"


def test_a_stable_consumer_group_of_unknown_topics_keeps_all() -> None:
    world = hourly()
    a = patient(world, protocols={"range": b""})
    world.stable(a)
    a.commit()
    keep_alive(world, HOUR + TICK, a)
    assert world.fetch() == {("t", 0): 5}


def test_a_group_of_another_type_keeps_all_while_it_has_members() -> None:
    """Gotcha 49."""
    world = hourly()
    a = patient(world, protocol_type="connect")
    world.stable(a)
    a.commit()
    keep_alive(world, HOUR + TICK, a)
    assert world.fetch() == {("t", 0): 5}


@pytest.mark.parametrize("synced", [True, False])
def test_a_group_that_rebalances_keeps_all(synced: bool) -> None:
    """Even what says for itself that it is over."""
    world = hourly(group_max_session_timeout_ms=10 * HOUR)
    a = world.member("a", session_ms=10 * HOUR, rebalance_ms=10 * HOUR, protocols={"range": subscription("t")})
    b = world.member("b", session_ms=10 * HOUR, rebalance_ms=10 * HOUR, protocols={"range": subscription("t")})
    world.stable(a, b)
    a.commit({("u", 0): 1}, retention_ms=1, version=4)
    a.join()
    if synced:
        b.join()
    world.advance(TICK)
    assert world.fetch() == {("u", 0): 1}


# --- groups without offsets


def test_a_group_without_members_and_offsets_goes_with_the_next_cleaning() -> None:
    """Gotcha 48: also one in which only an id was handed out."""
    world = hourly()
    a = world.member("a", session_ms=1_800_000)
    a.join()
    world.at(TICK)
    assert not world.exists
    assert world.group_values[-1] is None
    assert a.join().error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_with_members_stays() -> None:
    world = hourly()
    a = patient(world)
    world.stable(a)
    keep_alive(world, TICK, a)
    assert world.exists


def test_without_anything_to_bury_nothing_is_written() -> None:
    world = hourly()
    world.at(10 * HOUR)
    assert world.batches == []


def test_cleaning_goes_on_and_on() -> None:
    world = hourly(offsets_retention_check_interval_ms=60_000, offsets_topic_num_partitions=1)
    for _ in range(3):
        world.commit()
        world.advance(HOUR)
        assert not world.exists


# --- when the tombstones are late or lost


def test_if_they_cannot_be_stored_all_stays_until_the_next_cleaning() -> None:
    world = hourly()
    world.commit()
    world.at(HOUR - 1)
    world.fail_appends(ErrorCode.REQUEST_TIMED_OUT)
    world.at(HOUR)
    assert world.fetch() == {("t", 0): 5}
    world.fail_appends(None)
    world.at(HOUR + TICK)
    assert not world.exists


def test_somebody_who_joins_meanwhile_keeps_the_group() -> None:
    world = hourly()
    world.member("a").join()
    world.at(TICK - 1)
    world.hold_appends()
    world.at(TICK)
    waiting = world.member("b", instance="i").join()
    world.confirm()
    world.advance(3_000)
    assert waiting.error is ErrorCode.NONE


# --- what is said of it


def test_cleaning_says_what_went_and_why() -> None:
    world = hourly()
    world.commit({("t", 0): 1})
    world.at(HOUR)
    (offsets,), (group,) = world.seen(OffsetsRemoved), world.seen(GroupRemoved)
    assert offsets.text() == "offsets of t-0 are gone: their retention is over"
    assert group.text() == "group g is gone: it has neither members nor offsets"
    assert group.cause == TimerFired("retention", "__consumer_offsets-3", "", HOUR)
    assert str(group.cause) == "retention timer of __consumer_offsets-3"
