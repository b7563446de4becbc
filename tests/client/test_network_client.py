"""Metadata, and a connection to whoever is needed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from groupcoord.client.client_errors import DisconnectedError
from groupcoord.client.exponential_backoff import ExponentialBackoff
from groupcoord.client.member.metadata_and_commit_requests import MetadataSnapshot
from groupcoord.client.network_client import ConnectionPurpose, NetworkClient, PartitionLeader
from groupcoord.protocol.apis.metadata import MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import FindCoordinatorRequest, HeartbeatRequest, MetadataRequest, MetadataResponse
from tests.client.broker import HANG, HANG_UP, Broker, broker, eventually, patiently

pytestmark = pytest.mark.asyncio
FIND = FindCoordinatorRequest(key="g", coordinator_keys=("g",))


def address_of(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


@asynccontextmanager
async def cluster(real: Broker, *more: tuple[str, int], **how: Any) -> AsyncIterator[NetworkClient]:
    settings = {"request_timeout_ms": 5_000, "metadata_max_age_ms": 300_000, "allow_auto_create_topics": False, **how}
    one = NetworkClient(
        [*more, address_of(real.address)], client_id="c", backoff=ExponentialBackoff(1, 4, lambda: 0.5), **settings
    )
    try:
        yield one
    finally:
        await one.close()


def metadata(*topics: MetadataResponseTopic, racks: tuple[str | None, ...] = (), at: str = "h:1") -> MetadataResponse:
    host, port = address_of(at)
    brokers = tuple(
        MetadataResponseBroker(node_id=number, host=host, port=port, rack=rack) for number, rack in enumerate(racks)
    )
    return MetadataResponse(brokers=brokers, topics=topics)


def led(name: str, *leaders: int, code: int = 0, replicas: tuple[int, ...] = ()) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=name,
        error_code=code,
        partitions=tuple(
            MetadataResponsePartition(partition_index=number, leader_id=leader, leader_epoch=5, replica_nodes=replicas)
            for number, leader in enumerate(leaders)
        ),
    )


@patiently
async def test_it_learns_who_leads_what() -> None:
    async with broker({"t": 2}) as real, cluster(real) as known:
        changes: list[None] = []
        known.on_change = lambda: changes.append(None)
        await known.refresh(["t", "missing"])
        assert known.view().partitions == {"t": 2}
        assert known.topic_errors == {"missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert known.leader_of(("t", 1)) == PartitionLeader(1, 0, (1,))
        assert (known.leader_of(("t", 2)), known.leader_of(("missing", 0)), known.topic_id("missing")) == (
            None,
            None,
            None,
        )
        assert known.topic_id("t") is not None
        assert [(broker.host, broker.port) for broker in known.brokers.values()] == [address_of(real.address)]
        assert len(changes) == 1


@patiently
async def test_topics_that_go_are_forgotten_and_those_in_trouble_kept() -> None:
    async with broker() as real, cluster(real) as known:
        real.answers(MetadataRequest, metadata(led("a", 1), led("b", -1), at=real.address))
        await known.refresh(["a", "b", "c"])
        assert known.view().partitions == {"a": 1, "b": 1}
        assert known.leader_of(("b", 0)) is None
        real.answers(MetadataRequest, metadata(led("a", code=5), led("b", code=3)))
        await known.refresh(["a", "b"])
        assert known.view().partitions == {"a": 1}
        assert known.topic_errors["a"] == ErrorCode.LEADER_NOT_AVAILABLE


@patiently
async def test_racks_are_those_of_the_replicas() -> None:
    async with broker() as real, cluster(real) as known:
        topic = led("a", 0, replicas=(0, 1, 2, 9))
        real.answers(MetadataRequest, metadata(topic, racks=("r0", "", "r2"), at=real.address))
        await known.refresh(["a"])
        assert known.view() == MetadataSnapshot(partitions={"a": 1}, racks={"a": (frozenset({"r0", "r2"}),)})


@patiently
async def test_a_broker_that_is_away_is_passed_over() -> None:
    async with broker() as real, cluster(real, ("127.0.0.1", 1)) as known:
        await known.refresh([])
        assert (await known.request_any(FIND)).coordinators
        with pytest.raises(DisconnectedError, match="broker 99 is not known"):
            await known.request_of(99, FIND, ConnectionPurpose.GENERAL)
        assert (await known.request_of(1, FIND, ConnectionPurpose.GENERAL)).coordinators


@patiently
async def test_nobody_is_there() -> None:
    nobody = NetworkClient(
        [("127.0.0.1", 1)],
        client_id="c",
        request_timeout_ms=1_000,
        metadata_max_age_ms=1_000,
        backoff=ExponentialBackoff(1, 1, lambda: 0.5),
        allow_auto_create_topics=False,
    )
    with pytest.raises(DisconnectedError, match="cannot be reached"):
        await nobody.request_any(FIND)
    await nobody.close()


@patiently
async def test_a_lane_of_its_own_for_what_waits() -> None:
    async with broker() as real, cluster(real) as known:
        address = address_of(real.address)
        real.answers(HeartbeatRequest, HANG)
        beat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
        parked = asyncio.create_task(known.request_at(address, beat, ConnectionPurpose.PARKING))
        await real.gets(HeartbeatRequest)
        assert (await known.request_at(address, FIND, ConnectionPurpose.GENERAL)).coordinators
        known.disconnect(address, ConnectionPurpose.PARKING, ConnectionPurpose.WAITING)
        with pytest.raises(DisconnectedError):
            await parked
        assert (await known.request_at(address, beat, ConnectionPurpose.PARKING)).error_code


@patiently
async def test_many_wait_for_one_connection_and_each_may_give_up() -> None:
    async with broker() as real, cluster(real) as known:
        address = address_of(real.address)
        waiting = [asyncio.create_task(known.request_at(address, FIND, ConnectionPurpose.GENERAL)) for _ in range(5)]
        await asyncio.wait(waiting, timeout=0)
        waiting[0].cancel()
        assert len(await asyncio.gather(*waiting[1:])) == 4
        assert len({call.connection_id for call in real.calls}) == 1


@patiently
async def test_a_connection_may_be_closed_before_it_is_open() -> None:
    async with broker() as real, cluster(real) as known:
        address = address_of(real.address)
        waiting = asyncio.create_task(known.request_at(address, FIND, ConnectionPurpose.GENERAL))
        await asyncio.wait([waiting], timeout=0)
        known.disconnect(address, ConnectionPurpose.GENERAL)
        with pytest.raises(DisconnectedError, match="was closed"):
            await waiting


@patiently
async def test_a_connection_that_broke_is_opened_again() -> None:
    async with broker() as real, cluster(real) as known:
        real.answers(FindCoordinatorRequest, HANG_UP)
        with pytest.raises(DisconnectedError):
            await known.request_any(FIND)
        assert (await known.request_any(FIND)).coordinators


@patiently
async def test_a_wish_for_news_is_fulfilled_once_for_all_who_have_it() -> None:
    async with broker() as real, cluster(real) as known:
        keeping = asyncio.create_task(known.refresh_periodically())
        known.watch(["t"])
        known.request_refresh()
        await eventually(lambda: "t" in known.topics)
        known.watch(["t"])
        assert [[topic.name for topic in request.topics] for request in real.got(MetadataRequest)] == [["t"]]
        keeping.cancel()


@patiently
async def test_what_is_not_well_is_asked_about_until_it_is() -> None:
    async with broker() as real, cluster(real) as known:
        real.answers(MetadataRequest, HANG_UP, metadata(at=real.address), metadata(led("t", -1), at=real.address))
        keeping = asyncio.create_task(known.refresh_periodically())
        known.watch(["t"])
        await eventually(lambda: known.leader_of(("t", 0)) is not None)
        assert len(real.got(MetadataRequest)) == 4
        keeping.cancel()


@patiently
async def test_news_come_without_a_wish_too() -> None:
    async with broker() as real, cluster(real, metadata_max_age_ms=1) as known:
        keeping = asyncio.create_task(known.refresh_periodically())
        await real.gets(MetadataRequest, 3)
        keeping.cancel()
