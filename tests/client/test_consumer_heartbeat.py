"""Heartbeats of the consumer protocol: when they are sent, what they say, what the member does about the answers."""

import pytest

from groupcoord.client.client_errors import BrokerError, DisconnectedError, UnsupportedVersionError
from groupcoord.client.member import actions as a
from groupcoord.client.member import member_events as e
from groupcoord.client.member.consumer_heartbeat import ConsumerMemberState as State
from groupcoord.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from groupcoord.protocol.apis.find_coordinator import FindCoordinatorRequest
from groupcoord.protocol.errors import ErrorCode as E
from tests.client.consumer_talk import IDS, INTERVAL_MS, ME, ConsumerTalk, listed, settled
from tests.client.talk import BROKER, OTHER, partitions

P = partitions


def test_a_member_joins_with_epoch_0_and_says_everything() -> None:
    talk = ConsumerTalk(
        topics=("u", "t"), instance_id="i", rack_id="r", remote_assignor="range", max_poll_interval_ms=9
    )
    talk.find()
    assert talk.beat(epoch=1) == ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=ME,
        member_epoch=0,
        instance_id="i",
        rack_id="r",
        rebalance_timeout_ms=9,
        subscribed_topic_names=("t", "u"),
        server_assignor="range",
        topic_partitions=(),
    )
    (joins,) = talk.said(e.HeartbeatJoinSent)
    assert joins.subscription == "t, u"
    assert [reached.epoch for reached in talk.said(e.EpochReached)] == [1]


def test_a_pattern_takes_the_place_of_topics() -> None:
    talk = ConsumerTalk(topics=())
    talk.hears(talk.membership.subscribe_pattern("t.*", 0))
    talk.find()
    request = talk.beat(epoch=1)
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == ((), "t.*")
    assert talk.said(e.HeartbeatJoinSent)[0].subscription == "t.*"


def test_a_quiet_heartbeat_says_nothing_but_who_it_is() -> None:
    talk = settled(0, instance_id="i")
    quiet = ConsumerGroupHeartbeatRequest(group_id="g", member_id=ME, member_epoch=1, instance_id="i")
    assert talk.quiet_beat() == quiet
    assert talk.quiet_beat() == quiet


def test_what_has_changed_is_said_once() -> None:
    talk = settled(0)
    talk.subscribes("t", "u")
    assert talk.is_quiet(), "it waits for the next heartbeat"
    assert talk.quiet_beat().subscribed_topic_names == ("t", "u")
    assert talk.quiet_beat().subscribed_topic_names is None
    talk.hears(talk.membership.subscribe_pattern("t", talk.now_ms))
    request = talk.quiet_beat()
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == ((), "t")
    talk.subscribes("t")
    request = talk.quiet_beat()
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == (("t",), "")


def test_the_coordinator_says_how_often() -> None:
    talk = settled()
    talk.waits(INTERVAL_MS - 1)
    assert talk.is_quiet()
    talk.waits(1)
    talk.beat(unchanged=True, interval_ms=1_000)
    talk.waits(999)
    assert talk.is_quiet()
    talk.waits(1)
    talk.beat(unchanged=True)


def test_one_heartbeat_at_a_time() -> None:
    talk = settled()
    talk.waits(INTERVAL_MS)
    send, _ = talk.sends(ConsumerGroupHeartbeatRequest)
    talk.waits(3 * INTERVAL_MS)
    assert talk.is_quiet()
    talk.answer(send, unchanged=True)
    talk.waits(0)
    talk.beat(unchanged=True)


def test_a_member_without_an_assignment_yet_asks_at_the_interval() -> None:
    talk = ConsumerTalk()
    talk.find()
    talk.beat(epoch=1, unchanged=True)
    assert talk.is_quiet()
    assert talk.quiet_beat().subscribed_topic_names == ("t",)


@pytest.mark.parametrize("code", [E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE])
def test_a_coordinator_that_moved_is_looked_for_and_told_everything_at_once(code: E) -> None:
    talk = settled(0)
    talk.beat_brings(code=code)
    assert talk.wish(a.Disconnect).coordinator == BROKER
    talk.find(at=OTHER)
    send, request = talk.sends(ConsumerGroupHeartbeatRequest)
    assert send.to == OTHER
    assert (request.member_epoch, request.subscribed_topic_names, request.topic_partitions) == (1, ("t",), listed(0))
    assert request.rack_id is None
    talk.answer(send, *listed(0))
    assert talk.membership.state is State.STABLE
    assert talk.is_quiet()


def test_a_coordinator_that_is_loading_is_asked_again_with_back_off() -> None:
    talk = ConsumerTalk(retry_backoff_ms=100)
    talk.find()
    talk.beat(code=E.COORDINATOR_LOAD_IN_PROGRESS)
    talk.waits(99)
    assert talk.is_quiet()
    talk.waits(1)
    talk.beat(code=E.COORDINATOR_LOAD_IN_PROGRESS)
    talk.waits(199)
    assert talk.is_quiet()
    talk.waits(1)
    assert talk.beat(epoch=1, unchanged=True).member_epoch == 0
    assert [(failed.error, failed.request) for failed in talk.said(e.RequestFailed)] == [
        ("COORDINATOR_LOAD_IN_PROGRESS", "ConsumerGroupHeartbeat")
    ] * 2


def test_a_connection_that_fails_is_replaced_after_a_while() -> None:
    talk = settled(0)
    talk.waits(INTERVAL_MS)
    send, _ = talk.sends(ConsumerGroupHeartbeatRequest)
    talk.fails(send)
    assert talk.wish(a.Disconnect).coordinator == BROKER
    talk.find()
    assert talk.is_quiet()
    talk.waits(100)
    assert talk.beat(unchanged=True).topic_partitions == listed(0)


def test_an_old_connection_says_nothing_about_the_new_coordinator() -> None:
    talk = settled(0)
    talk.waits(INTERVAL_MS)
    send, _ = talk.sends(ConsumerGroupHeartbeatRequest)
    talk.hears(talk.membership.coordinator_unreachable(BROKER, "gone", talk.now_ms))
    talk.wish(a.Disconnect)
    talk.find(at=OTHER)
    talk.fails(send)
    assert talk.membership.coordinator == OTHER
    assert talk.is_quiet()


@pytest.mark.parametrize("code", [E.FENCED_MEMBER_EPOCH, E.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_loses_everything_then_joins_again(code: E) -> None:
    talk = settled(0, 1)
    talk.goes_away()
    talk.beat_brings(code=code)
    assert talk.wish(a.StopDelivery).partitions == frozenset(P(0, 1))
    assert talk.membership.state is State.FENCED
    assert [fenced.reason for fenced in talk.said(e.Fenced)] == [f"a heartbeat was answered {code.name}"]
    talk.waits(3 * INTERVAL_MS)
    assert talk.is_quiet(), "its user must hear of it first"
    talk.polls()
    talk.told("lost", *P(0, 1))
    talk.owns()
    request = talk.settles(2, epoch=7)
    assert (request.member_epoch, request.member_id, request.topic_partitions) == (0, ME, ())
    assert request.subscribed_topic_names == ("t",)


def test_a_fenced_member_that_owns_nothing_joins_at_once() -> None:
    talk = ConsumerTalk(present=False)
    talk.find()
    talk.beat(code=E.UNKNOWN_MEMBER_ID)
    assert talk.beat(epoch=1).member_epoch == 0


@pytest.mark.parametrize(
    "code",
    [
        E.UNRELEASED_INSTANCE_ID,
        E.FENCED_INSTANCE_ID,
        E.UNSUPPORTED_ASSIGNOR,
        E.GROUP_MAX_SIZE_REACHED,
        E.UNSUPPORTED_VERSION,
    ],
)
def test_other_errors_end_the_member(code: E) -> None:
    talk = settled(0)
    talk.beat_brings(code=code, message="why")
    talk.wish(a.StopDelivery)
    assert talk.membership.state is State.FATAL
    talk.told("lost", *P(0))
    talk.owns()
    raised = talk.wish(a.RaiseError)
    assert raised.final
    assert isinstance(raised.error, BrokerError)
    assert raised.error is talk.membership.failure
    assert (raised.error.code, "(why)" in str(raised.error)) == (code, True)
    talk.waits(10 * INTERVAL_MS)
    talk.polls()
    assert talk.is_quiet()


def test_a_broker_that_does_not_speak_the_protocol_ends_the_member() -> None:
    talk = ConsumerTalk()
    talk.find()
    send, _ = talk.sends(ConsumerGroupHeartbeatRequest)
    talk.fails(send, UnsupportedVersionError("no"))
    assert isinstance(talk.wish(a.RaiseError).error, UnsupportedVersionError)
    assert talk.membership.state is State.FATAL


def test_a_topic_that_may_not_be_read_is_told_and_tried_again() -> None:
    talk = settled(0)
    talk.beat_brings(code=E.TOPIC_AUTHORIZATION_FAILED)
    raised = talk.wish(a.RaiseError)
    assert not raised.final
    talk.waits(100)
    talk.beat(unchanged=True)
    assert talk.membership.state is State.STABLE


def test_topics_are_listed_by_id() -> None:
    talk = ConsumerTalk(topics=("t", "u"))
    talk.find()
    talk.beat(*listed(3, 1, topic="u"), *listed(0), epoch=1)
    talk.owns(("t", 0), ("u", 1), ("u", 3))
    talk.told("assigned", ("t", 0), ("u", 1), ("u", 3))
    assert talk.beat(unchanged=True).topic_partitions == (
        TopicPartitions(topic_id=IDS["t"], partitions=(0,)),
        TopicPartitions(topic_id=IDS["u"], partitions=(1, 3)),
    )


def test_the_search_for_the_coordinator_goes_on_with_back_off() -> None:
    talk = ConsumerTalk()
    talk.find(E.COORDINATOR_NOT_AVAILABLE)
    assert talk.is_quiet()
    talk.waits(100)
    send, _ = talk.sends(FindCoordinatorRequest)
    talk.fails(send, DisconnectedError("no"))
    talk.waits(200)
    talk.find()
    assert talk.beat(epoch=1).member_epoch == 0
