from groupcoord.core.effects import Call
from groupcoord.protocol import messages as m
from groupcoord.protocol.apis import Api
from groupcoord.protocol.apis.fetch import FetchPartition, FetchTopic
from groupcoord.testing.faults import (
    ApiVersions,
    Fetch,
    FindCoordinator,
    Heartbeat,
    LeaveGroup,
    Metadata,
    Produce,
    TopicsKnown,
)
from groupcoord.testing.faults.asked import Asked
from tests.protocol.error_samples import ORDERS
from tests.testing.faults.support import World, heartbeat, leave, produce


def asked(api: Api, request: object, *, client_id: str | None = "c", known: TopicsKnown = TopicsKnown()) -> Asked:  # noqa: B008
    return Asked(Call(1, 2, api, api.max_version, client_id, "/127.0.0.1"), request, 1_000, broker=3, known=known)


def test_what_a_request_is_about() -> None:
    beat = asked(Heartbeat, heartbeat())
    assert (beat.groups, beat.members, beat.topics) == (("app",), ("m-1",), ())
    assert asked(LeaveGroup, leave("a", "b", instance="i")).members == ("a", "b", "i")


def test_keys_of_transactions_are_no_groups() -> None:
    assert asked(FindCoordinator, m.FindCoordinatorRequest(key_type=1, coordinator_keys=("t",))).groups == ()


def test_all_topics() -> None:
    assert asked(Metadata, m.MetadataRequest(topics=None)).topics is None


def test_a_topic_by_its_id() -> None:
    request = m.FetchRequest(max_wait_ms=0, min_bytes=0, topics=(FetchTopic(topic_id=ORDERS),))
    assert asked(Fetch, request).topics == (f"id {ORDERS}",)
    known = TopicsKnown(name_of=lambda topic_id: "orders" if topic_id == ORDERS else None)
    assert asked(Fetch, request, known=known).topics == ("orders",)


def test_the_topics_of_a_fetch_session_are_known_to_its_node() -> None:
    world = World()
    topic_id = world.node.broker.topics.topic_id("orders")
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
    opening = m.FetchRequest(
        max_wait_ms=0, min_bytes=0, session_epoch=0, topics=(FetchTopic(topic_id=topic_id, partitions=(partition,)),)
    )
    session_id = world.ask(Fetch, opening).answer.session_id
    assert session_id
    going_on = m.FetchRequest(max_wait_ms=0, min_bytes=0, session_id=session_id, session_epoch=1)
    known = TopicsKnown.to(world.node)
    assert asked(Fetch, going_on, known=known).topics == ("orders",)
    for unknown in (session_id + 1, -(1 << 31)):
        assert asked(Fetch, m.FetchRequest(max_wait_ms=0, min_bytes=0, session_id=unknown), known=known).topics == ()


def test_who_waits_for_an_answer() -> None:
    assert [asked(Produce, produce(acks)).wants_answer for acks in (-1, 1, 0)] == [True, True, False]
    assert asked(ApiVersions, None).wants_answer


def test_in_words() -> None:
    assert str(asked(Heartbeat, heartbeat())) == (
        "Heartbeat v4 from 'c' at 1000 ms, broker 3: HeartbeatRequest(group_id='app', generation_id=1, member_id='m-1')"
    )
    assert str(asked(Heartbeat, heartbeat("m" * 400), client_id=None)).startswith(
        "Heartbeat v4 from a client without id at 1000 ms, broker 3: HeartbeatRequest("
    )
    assert str(asked(Heartbeat, heartbeat("m" * 400))).endswith("m…")
