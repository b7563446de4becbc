"""A network that is cut between brokers, from the controller or from clients; and a disk that is lost."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

import groupcoord as gc
from groupcoord.broker.events import LogTruncated
from groupcoord.broker.leader_election_and_isr import NO_LEADER, PartitionState
from groupcoord.core.effects import LogRecord
from groupcoord.protocol.apis.create_topics import CreatableTopic
from groupcoord.protocol.batches.record_batch import BatchError
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import CreateTopicsRequest, FindCoordinatorRequest, HeartbeatRequest, MetadataRequest
from tests.testing import producing
from tests.testing.producing import produce

pytestmark = pytest.mark.asyncio
SESSION_S, LAG_S = 9.0, 30.0


def trio() -> gc.Cluster:
    config = {"default.replication.factor": 3, "offsets.topic.num.partitions": 3, "min.insync.replicas": 2}
    return gc.Cluster(brokers=3, clock="manual", topics={"orders": 1}, config=config)


def state(kafka: gc.Cluster) -> PartitionState:
    return kafka.core.broker.topics["orders"].metadata.partitions[0]


def copies(kafka: gc.Cluster) -> dict[int, int]:
    """Where the copy of each broker ends."""
    return {broker: log.log_end_offset for broker, log in kafka.core.broker.topics["orders"].copies[0].items()}


async def outcome(asked: "asyncio.Task[Any]") -> tuple[str, int]:
    return producing.outcome(await asked)


async def test_a_follower_that_is_cut_off_from_the_leader_is_out_of_sync_and_comes_back() -> None:
    async with trio() as kafka:
        leader, cut, other = state(kafka).replicas
        await kafka.broker(cut).cut_off(leader)
        written = await produce(kafka, leader, timeout_ms=60_000)
        assert not written.done()
        await kafka.clock.advance(LAG_S)
        assert await outcome(written) == ("NONE", 0)
        assert (set(state(kafka).isr), copies(kafka)) == ({leader, other}, {leader: 1, cut: 0, other: 1})
        await kafka.broker(leader).reconnect(cut)
        assert (set(state(kafka).isr), copies(kafka)) == ({leader, cut, other}, {leader: 1, cut: 1, other: 1})


async def test_a_leader_that_is_cut_off_from_the_controller_writes_on_and_gives_that_up() -> None:
    async with trio() as kafka:
        zombie, *others = state(kafka).replicas
        assert await outcome(await produce(kafka, zombie)) == ("NONE", 0)
        await kafka.broker(zombie).cut_off("controller")
        assert await outcome(await produce(kafka, zombie)) == ("NONE", 1)
        await kafka.clock.advance(SESSION_S)
        leader = state(kafka).leader
        assert leader in others
        assert await outcome(await produce(kafka, zombie, acks=1)) == ("NONE", 2)
        unacknowledged = await produce(kafka, zombie)
        await kafka.clock.advance(2)
        assert await outcome(unacknowledged) == ("REQUEST_TIMED_OUT", 3)
        assert await outcome(await produce(kafka, leader)) == ("NONE", 2)

        seen = {one: await kafka.ask_broker(one, MetadataRequest(topics=None)) for one in (zombie, leader)}
        said = {one: (len(each.brokers), _leader(each)) for one, each in seen.items()}
        assert said == {zombie: (3, zombie), leader: (2, leader)}
        assert [record.offset for record in await kafka.records("orders")] == [0, 1, 2]

        await kafka.broker(zombie).reconnect("controller")
        lost = kafka.trace.of(LogTruncated).one()
        assert (lost.broker, lost.leader, lost.offset, lost.lost) == (zombie, leader, 2, 2)
        assert (set(state(kafka).isr), set(copies(kafka).values())) == ({1, 2, 3}, {3})
        assert _leader(await kafka.ask_broker(zombie, MetadataRequest(topics=None))) == leader
        assert await outcome(await produce(kafka, zombie)) == ("NOT_LEADER_OR_FOLLOWER", -1)


def _leader(answer: Any) -> int:
    (orders,) = (topic for topic in answer.topics if topic.name == "orders")
    leader: int = orders.partitions[0].leader_id
    return leader


async def test_who_waits_at_a_leader_that_is_cut_off_is_told_when_it_hears_who_leads() -> None:
    async with trio() as kafka:
        zombie = state(kafka).leader
        await kafka.broker(zombie).cut_off("controller")
        await kafka.clock.advance(SESSION_S)
        waiting = await produce(kafka, zombie, timeout_ms=60_000)
        assert not waiting.done()
        await kafka.broker(zombie).reconnect("controller")
        assert await outcome(waiting) == ("NOT_LEADER_OR_FOLLOWER", 0)


async def test_who_is_connected_to_the_controller_again_before_its_session_ends_leads_on() -> None:
    async with trio() as kafka:
        leader = state(kafka).leader
        await kafka.broker(leader).cut_off("controller")
        await kafka.clock.advance(SESSION_S - 1)
        await kafka.broker(leader).reconnect("controller")
        await kafka.clock.advance(SESSION_S)
        assert (state(kafka).leader, kafka.broker(leader).is_fenced) == (leader, False)
        assert await outcome(await produce(kafka, leader)) == ("NONE", 0)


async def test_who_waits_at_a_leader_that_is_cut_off_hears_who_leads_if_its_producer_is_new_enough() -> None:
    async with trio() as kafka:
        zombie = state(kafka).leader
        await kafka.broker(zombie).cut_off("controller")
        await kafka.clock.advance(SESSION_S)
        waiting = await produce(kafka, zombie, timeout_ms=60_000, version=10)
        await kafka.broker(zombie).reconnect("controller")
        answer = await waiting
        assert producing.outcome(answer) == ("NOT_LEADER_OR_FOLLOWER", 0)
        current = answer.responses[0].partition_responses[0].current_leader
        assert (current.leader_id, current.leader_epoch) == (state(kafka).leader, 1)
        assert [node.node_id for node in answer.node_endpoints] == [state(kafka).leader]


async def test_what_the_controller_is_asked_through_a_broker_that_is_cut_off_waits_for_a_minute() -> None:
    async with trio() as kafka:
        cut = state(kafka).replicas[1]
        await kafka.broker(cut).cut_off("controller")
        request = CreateTopicsRequest(topics=(CreatableTopic(name="new", num_partitions=1, replication_factor=1),))
        early = asyncio.ensure_future(kafka.ask_broker(cut, request))
        await kafka.settle()
        await kafka.clock.advance(59)
        late = asyncio.ensure_future(kafka.ask_broker(cut, request))
        await kafka.settle()
        assert not early.done()
        await kafka.clock.advance(1)
        assert [topic.error_code for topic in (await early).topics] == [ErrorCode.REQUEST_TIMED_OUT]
        assert not late.done()
        await kafka.broker(cut).reconnect("controller")
        assert [topic.error_code for topic in (await late).topics] == [ErrorCode.NONE]
        assert "new" in kafka.core.broker.topics
        await kafka.clock.advance(60)


async def test_followers_that_are_cut_off_at_the_same_time_are_out_of_sync_together() -> None:
    """Both were in sync when they went, so both are eligible."""
    async with trio() as kafka:
        leader, *followers = state(kafka).replicas
        for follower in followers:
            await kafka.broker(leader).cut_off(follower)
        await produce(kafka, leader, acks=1)
        await kafka.clock.advance(LAG_S)
        assert (state(kafka).isr, set(state(kafka).elr)) == ((leader,), set(followers))


async def test_a_marker_reaches_the_leader_of_a_partition_when_the_network_to_it_is_mended() -> None:
    async with trio() as kafka:
        leader, *others = state(kafka).replicas
        billing, producer = kafka.transaction("billing"), kafka.manual_producer("billing")
        await billing.move_coordinator(to=others[0])
        await producer.init()
        await producer.produce("orders", b"one")
        await kafka.broker(others[0]).cut_off(leader)
        ending = producer.end()
        await kafka.clock.advance(LAG_S)  # the log of transactions is without the leader from now on
        await ending
        assert await billing.state() == "PrepareCommit"
        await kafka.broker(leader).reconnect(others[0])
        await kafka.clock.advance(1)
        assert await billing.state() == "CompleteCommit"


def differing(kafka: gc.Cluster) -> list[str]:
    """The partitions of which the brokers have different copies."""
    return [
        log.name
        for topic in kafka.core.broker.topics.all()
        for log, copies_of in zip(topic.partitions, topic.copies, strict=True)
        if len({bytes(one.read(0, 1 << 20, at_least_one=True, to_end=True).data()) for one in copies_of.values()}) > 1
    ]


async def test_a_leader_that_is_cut_off_from_the_controller_asks_the_coordinator_that_it_knows() -> None:
    async with trio() as kafka:
        leader, coordinator, other = state(kafka).replicas
        stays, moves = kafka.transaction("stays"), kafka.transaction("moves")
        producers = kafka.manual_producer("stays"), kafka.manual_producer("moves")
        for transaction, producer in zip((stays, moves), producers, strict=True):
            await transaction.move_coordinator(to=coordinator)
            await producer.init()
        await kafka.broker(leader).cut_off("controller")
        await moves.move_coordinator(to=other)
        answers = [await producer.produce("orders", b"one") for producer in producers]
        assert [answer.error_code for answer in answers] == [ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS]
        await kafka.broker(leader).reconnect("controller")
        assert (await producers[1].produce("orders", b"one")).error_code == ErrorCode.NONE


async def test_a_leader_that_is_cut_off_from_the_controller_and_knows_no_coordinator_says_so() -> None:
    async with trio() as kafka:
        leader = state(kafka).leader
        await kafka.broker(leader).cut_off("controller")
        producer = kafka.manual_producer("billing")
        producer.producer_id, producer.epoch = 7, 0
        answer = await producer.produce("orders", b"one")
        assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert str(answer.error_message).endswith("Underlying error: COORDINATOR_NOT_AVAILABLE")


@pytest.mark.slow
async def test_a_coordinator_writes_to_the_log_that_it_leads_whatever_the_leader_that_asks_has_heard_of_it() -> None:
    async with trio() as kafka:
        leader, coordinator, _ = state(kafka).replicas
        billing, producer = kafka.transaction("billing"), kafka.manual_producer("billing")
        await billing.move_coordinator(to=coordinator)
        await producer.init()
        await kafka.broker(coordinator).kill()
        await kafka.clock.advance(SESSION_S - 1)
        await kafka.broker(leader).cut_off("controller")
        await kafka.clock.advance(1)
        assert (await producer.produce("orders", b"one")).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        await kafka.broker(leader).reconnect("controller")
        await kafka.broker(coordinator).start()
        assert (await producer.produce("orders", b"one")).error_code == ErrorCode.NONE
        await producer.end()
        await kafka.clock.advance(LAG_S)
        assert differing(kafka) == []


async def test_what_a_coordinator_says_counts_also_when_the_leader_that_asked_is_connected_again() -> None:
    async with trio() as kafka:
        leader, coordinator, other = state(kafka).replicas
        billing, producer = kafka.transaction("billing"), kafka.manual_producer("billing")
        await billing.move_coordinator(to=coordinator)
        await producer.init()
        await kafka.broker(leader).cut_off("controller")
        await kafka.broker(coordinator).cut_off(other)
        asked = producer.produce("orders", b"one")
        await kafka.settle()
        await kafka.broker(leader).reconnect("controller")
        await kafka.broker(coordinator).reconnect(other)
        assert (await asked).error_code == ErrorCode.NONE


async def test_groups_of_a_broker_that_is_cut_off_from_the_controller_move() -> None:
    """Deviation (cut-off-coordinators)."""
    async with trio() as kafka:
        (a,) = await kafka.consumers(1, group="app", topics="orders")
        group = kafka.core.coordinator.shard_of("app").partition
        coordinator = kafka.core.broker.topics["__consumer_offsets"].metadata.leaders[group]
        await kafka.broker(coordinator).cut_off("controller")
        await kafka.clock.advance(SESSION_S + 5)
        asks = FindCoordinatorRequest(coordinator_keys=("app",))
        (found,) = (await kafka.ask_broker(coordinator % 3 + 1, asks)).coordinators
        assert found.node_id not in (coordinator, -1)
        (believed,) = (await kafka.ask_broker(coordinator, asks)).coordinators
        assert believed.node_id == coordinator
        assert a.is_stable


async def test_who_is_elected_while_it_is_cut_off_from_the_controller_coordinates_when_it_hears_of_it() -> None:
    async with trio() as kafka:
        coordinator, *others = state(kafka).replicas
        group = kafka.group("app")
        await group.move_coordinator(to=coordinator)
        await kafka.broker(coordinator).kill()
        await kafka.clock.advance(SESSION_S - 1)
        for other in others:
            await kafka.broker(other).cut_off("controller")
        await kafka.clock.advance(1)
        partition = kafka.core.coordinator.shard_of("app").partition
        elected = kafka.core.broker.topics["__consumer_offsets"].metadata.leaders[partition]
        asks = HeartbeatRequest(group_id="app", generation_id=1, member_id="a")
        assert (await kafka.ask_broker(elected, asks)).error_code == ErrorCode.NOT_COORDINATOR
        await kafka.broker(elected).reconnect("controller")
        await kafka.clock.advance(1)
        assert (await kafka.ask_broker(elected, asks)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        await group.move_coordinator(to=elected)  # it is loaded already
        await kafka.broker(elected).cut_off("controller")
        await kafka.broker(elected).reconnect("controller")
        assert (await kafka.ask_broker(elected, asks)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_what_clients_ask_through_a_cut_is_answered_when_it_is_mended() -> None:
    async with trio() as kafka:
        leader = state(kafka).leader
        await kafka.broker(leader).cut_off("clients")
        written = await produce(kafka, leader)
        await kafka.clock.advance(SESSION_S * 2)
        assert (written.done(), state(kafka).leader, kafka.broker(leader).is_fenced) == (False, leader, False)
        with pytest.raises(ValueError, match="cut off from its clients: reconnect them before it is paused"):
            await kafka.broker(leader).pause()
        await kafka.broker(leader).reconnect("clients")
        assert await outcome(written) == ("NONE", 0)


async def test_what_was_asked_before_the_cut_is_answered_behind_it() -> None:
    async with trio() as kafka:
        leader, slow, _ = state(kafka).replicas
        await kafka.broker(slow).pause_replication()
        written = await produce(kafka, leader, timeout_ms=60_000)
        await kafka.broker(leader).cut_off("clients")
        await kafka.broker(slow).resume_replication()
        await kafka.settle()
        assert not written.done()
        await kafka.broker(leader).reconnect("clients")
        assert await outcome(written) == ("NONE", 0)


async def test_who_asked_a_broker_through_a_cut_that_stops_is_told_nothing() -> None:
    async with trio() as kafka:
        leader = state(kafka).leader
        await kafka.broker(leader).cut_off("clients")
        written = await produce(kafka, leader)
        await kafka.broker(leader).stop()
        with pytest.raises(ConnectionResetError):
            await written
        await kafka.broker(leader).start()
        assert set(state(kafka).isr) == {1, 2, 3}


async def test_a_broker_that_lost_its_disk_copies_everything_anew() -> None:
    async with trio() as kafka:
        _, lost, _ = state(kafka).replicas
        assert await outcome(await produce(kafka, state(kafka).leader)) == ("NONE", 0)
        await kafka.broker(lost).stop()
        await kafka.broker(lost).lose_disk()
        assert copies(kafka)[lost] == 0
        assert await outcome(await produce(kafka, state(kafka).leader)) == ("NONE", 1)
        await kafka.broker(lost).start()
        assert (copies(kafka)[lost], set(state(kafka).isr)) == (2, {1, 2, 3})


async def test_a_lost_disk_has_only_what_the_broker_had() -> None:
    async with gc.Cluster(brokers=4, topics={"orders": 4}, config={"default.replication.factor": 3}) as kafka:
        await kafka.broker(2).stop()
        await kafka.broker(2).lose_disk()
        await kafka.broker(2).start()
        orders = kafka.core.broker.topics["orders"]
        assert {len(state.isr) for state in orders.metadata.partitions} == {3}


async def test_followers_forget_what_the_leader_was_told_to_delete() -> None:
    async with trio() as kafka:
        leader, follower, _ = state(kafka).replicas
        for offset in range(3):
            assert await outcome(await produce(kafka, leader)) == ("NONE", offset)
        orders = kafka.core.broker.topics["orders"]
        orders.partitions[0].delete_records(2)
        assert await outcome(await produce(kafka, leader)) == ("NONE", 3)
        assert orders.copies[0][follower].log_start_offset == 2


async def test_a_broker_that_stopped_in_order_and_lost_its_disk_is_not_eligible() -> None:
    """Its record of the clean shutdown is gone with the disk: it waits for another one that has all (KIP-966)."""
    async with trio() as kafka:
        last, behind, eligible = state(kafka).replicas
        assert await outcome(await produce(kafka, last)) == ("NONE", 0)
        for each in (behind, eligible, last):
            await kafka.broker(each).stop()
        assert state(kafka).elr == tuple(sorted((eligible, last)))
        await kafka.broker(last).lose_disk()
        await kafka.broker(last).start()
        assert (state(kafka).leader, state(kafka).elr) == (NO_LEADER, (eligible,))
        await kafka.broker(eligible).start()
        assert (state(kafka).leader, copies(kafka)[last]) == (eligible, 1)


async def test_a_last_leader_without_its_disk_takes_from_its_followers_what_they_have() -> None:
    """Nobody is eligible, because all others were killed: Kafka lets the last leader lead again, whatever it has."""
    async with trio() as kafka:
        leader, *followers = state(kafka).replicas
        assert await outcome(await produce(kafka, leader)) == ("NONE", 0)
        for each in (*followers, leader):
            await kafka.broker(each).kill()
            await kafka.clock.advance(SESSION_S)
        await kafka.broker(leader).lose_disk()
        for each in (*followers, leader):
            await kafka.broker(each).start()
        assert (state(kafka).leader, set(copies(kafka).values())) == (leader, {0})
        lost = [
            (each.broker, each.offset, each.lost) for each in kafka.trace.of(LogTruncated) if each.topic == "orders"
        ]
        assert sorted(lost) == sorted((each, 0, 1) for each in followers)
        assert await outcome(await produce(kafka, leader)) == ("NONE", 0)


async def test_a_follower_whose_leader_cannot_read_copies_with_the_next_record(monkeypatch: pytest.MonkeyPatch) -> None:
    async with trio() as kafka:
        leader, *_ = state(kafka).replicas
        log = kafka.core.broker.topics["orders"].partitions[0]

        def fails(*_: Any, **__: Any) -> None:
            raise BatchError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is gone")

        with monkeypatch.context() as broken:
            broken.setattr(log, "read", fails)
            assert await outcome(await produce(kafka, leader, acks=1)) == ("NONE", 0)
        assert copies(kafka)[leader % 3 + 1] == 0
        assert await outcome(await produce(kafka, leader)) == ("NONE", 1)
        assert set(copies(kafka).values()) == {2}


async def test_a_follower_that_gives_up_all_its_log_forgets_its_epochs() -> None:
    """It wrote its first record in epoch 1, and the next leader, which did not copy it, has one of epoch 0 there."""
    async with trio() as kafka:
        leader, first, second = state(kafka).replicas
        await kafka.broker(first).pause_replication()
        assert await outcome(await produce(kafka, leader, acks=1)) == ("NONE", 0)
        await kafka.broker(second).pause_replication()
        await kafka.broker(leader).kill()
        await kafka.clock.advance(SESSION_S)
        assert await outcome(await produce(kafka, first, acks=1)) == ("NONE", 0)
        await kafka.broker(first).kill()
        await kafka.clock.advance(SESSION_S)
        assert (state(kafka).leader, state(kafka).leader_epoch) == (second, 2)
        await kafka.broker(first).resume_replication()
        await kafka.broker(first).start()
        topic = kafka.core.broker.topics["orders"]
        assert [topic.copies[0][each].epochs.of_offset(0) for each in (first, second)] == [0, 0]
        assert (set(state(kafka).isr), copies(kafka)[first]) == ({first, second}, 1)


async def test_logs_that_part_twice_are_truncated_twice() -> None:
    """The follower has what epochs 0 and 2 wrote, the leader what 0, 1 and 3 wrote: KIP-279."""
    async with trio() as kafka:
        leader, follower, _ = state(kafka).replicas
        orders = kafka.core.broker.topics["orders"]
        assert await outcome(await produce(kafka, leader)) == ("NONE", 0)
        ours, theirs = orders.partitions[0], orders.copies[0][follower]
        for log, epochs in ((ours, (1, 3)), (theirs, (2,))):
            for epoch in epochs:
                log.become_leader(epoch)
                log.append_own([LogRecord(key=b"k", value=b"%d" % epoch)] * 2, kafka.clock.now_ms())
        theirs.leader_epoch = 3
        set_epoch(kafka, 3)
        assert await outcome(await produce(kafka, leader)) == ("NONE", 5)
        lost = [(each.offset, each.lost) for each in kafka.trace.of(LogTruncated) if each.broker == follower]
        assert lost == [(1, 2)]
        assert (theirs.log_end_offset, theirs.epochs.entries) == (6, ours.epochs.entries)


def set_epoch(kafka: gc.Cluster, epoch: int) -> None:
    orders = kafka.core.broker.topics["orders"]
    orders.metadata = replace(orders.metadata, partitions=(orders.metadata.partitions[0]._replace(leader_epoch=epoch),))


async def test_a_broker_with_an_empty_disk_begins_where_the_leaders_log_begins() -> None:
    async with trio() as kafka:
        leader, lost, _ = state(kafka).replicas
        for offset in range(3):
            assert await outcome(await produce(kafka, leader)) == ("NONE", offset)
        kafka.core.broker.topics["orders"].partitions[0].delete_records(2)
        await kafka.broker(lost).kill()
        await kafka.broker(lost).lose_disk()
        await kafka.clock.advance(SESSION_S)
        await kafka.broker(lost).start()
        copy = kafka.core.broker.topics["orders"].copies[0][lost]
        assert (copy.log_start_offset, copy.log_end_offset) == (2, 3)


async def test_a_topic_that_is_deleted_while_a_broker_is_cut_off_from_the_controller() -> None:
    async with trio() as kafka:
        zombie = state(kafka).leader
        await kafka.broker(zombie).cut_off("controller")
        await kafka.clock.advance(SESSION_S)
        await kafka.delete_topic("orders")
        await kafka.broker(zombie).reconnect("controller")
        assert "orders" not in kafka.core.broker.topics


@pytest.mark.parametrize(
    ("peer", "why"),
    [
        (2, "broker 2 cannot be cut off from 2: from broker 1, 3, from 'controller' or 'clients'"),
        ("moon", "broker 2 cannot be cut off from 'moon': from broker 1, 3, from 'controller' or 'clients'"),
    ],
)
async def test_what_there_is_no_network_to(peer: int | str, why: str) -> None:
    async with trio() as kafka:
        with pytest.raises(ValueError, match=why):
            await kafka.broker(2).cut_off(peer)


@pytest.mark.parametrize(
    ("peer", "why"),
    [
        (3, "the network between broker 2 and broker 3 is not cut"),
        ("controller", "broker 2 is not cut off from the controller"),
        ("clients", "broker 2 is not cut off from the clients"),
    ],
)
async def test_only_what_is_cut_can_be_mended(peer: int | str, why: str) -> None:
    async with trio() as kafka:
        with pytest.raises(ValueError, match=why):
            await kafka.broker(2).reconnect(peer)
        with pytest.raises(
            ValueError, match="broker 2 is running: it cannot be without its disk; stop or kill it first"
        ):
            await kafka.broker(2).lose_disk()


async def test_two_cuts_and_a_slow_follower_end_one_by_one() -> None:
    async with trio() as kafka:
        leader, cut, other = state(kafka).replicas
        await kafka.broker(cut).pause_replication()
        await kafka.broker(cut).cut_off(leader)
        await kafka.broker(cut).cut_off(other)
        await produce(kafka, leader, acks=1)
        await kafka.broker(cut).resume_replication()
        await kafka.broker(cut).reconnect(other)
        assert copies(kafka)[cut] == 0
        await kafka.clock.advance(LAG_S)
        assert set(state(kafka).isr) == {leader, other}
        await kafka.broker(cut).reconnect(leader)
        assert (copies(kafka)[cut], set(state(kafka).isr)) == (1, {1, 2, 3})
