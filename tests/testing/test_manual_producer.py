"""A transactional producer whose every step the test takes."""

import pytest

from groupcoord import Cluster, KafkaCluster, ManualProducer, RemoteCluster
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.testing import WaitTimeoutError
from groupcoord.testing.trace import RequestReceived

T0, T1 = ("orders", 0), ("orders", 1)


async def story(kafka: KafkaCluster, version: int) -> ManualProducer:
    """One transaction that is committed and one that is aborted, each with offsets of a group."""
    producer = kafka.manual_producer(f"billing-{version}", version=version)
    began = await producer.init()
    assert (began.error_code, began.producer_id, began.producer_epoch) == (E.NONE, producer.producer_id, 0)
    for offset, commit in ((5, True), (9, False)):
        if version == 1:
            assert await producer.add_partitions(T1, T0) == {T0: E.NONE, T1: E.NONE}
        first = (await producer.produce("orders", b"a", b"b")).base_offset
        assert (await producer.produce("orders", b"c", key=b"k")).base_offset == first + 2
        assert (await producer.produce("orders", b"d", partition=1)).error_code == E.NONE
        before = {T0: 3, T1: 1} if offset == 5 or version == 2 else {T0: 6, T1: 2}
        assert producer.sequences == before
        if version == 1:
            assert (await producer.add_offsets("app")).error_code == E.NONE
        assert await producer.commit_offsets("app", {T0: offset, T1: 1}) == {T0: E.NONE, T1: E.NONE}
        assert (await producer.end(commit=commit)).error_code == E.NONE
        assert await kafka.group("app").wait_committed(*T0, 5) == 5
    assert await kafka.group("app").offsets() == {T0: 5, T1: 1}
    return producer


@pytest.mark.slow
@pytest.mark.asyncio
@pytest.mark.parametrize("version", [1, 2])
async def test_both_generations_of_the_protocol_in_this_process_and_elsewhere(version: int) -> None:
    after = (0, {T0: 6, T1: 2}) if version == 1 else (2, {})
    async with Cluster(topics={"orders": 2}, brokers=3, clock="manual") as kafka:
        producer = await story(kafka, version)
        assert (producer.epoch, producer.sequences) == after
        asked = {each.api: each.version for each in kafka.trace.of(RequestReceived, client_id=producer.client_id)}
        with_both = {
            "InitProducerId": 5,
            "Produce": 10 + version,
            "TxnOffsetCommit": 3 + version,
            "EndTxn": 3 + version,
        }
        assert asked == (with_both | {"AddPartitionsToTxn": 3, "AddOffsetsToTxn": 4} if version == 1 else with_both)
    async with Cluster(topics={"orders": 2}, brokers=3) as kafka, RemoteCluster(kafka.address) as remote:
        producer = await story(remote, version)
        assert (producer.epoch, producer.sequences) == after


@pytest.mark.slow
@pytest.mark.asyncio
async def test_each_request_goes_to_the_broker_that_is_to_have_it() -> None:
    async with Cluster(topics={"orders": 2}, brokers=3, clock="manual") as kafka:
        producer = kafka.manual_producer("billing")
        assert "__transaction_state" not in kafka.core.broker.topics  # it is made when somebody asks
        await producer.init()
        for broker_id in (1, 2, 3):
            for partition in range(50):
                await kafka.move_leader("__transaction_state", partition, to=broker_id)
            await kafka.move_leader("orders", 0, to=broker_id)
            await kafka.group("app").move_coordinator(to=broker_id)
            assert (await producer.produce("orders", b"a")).error_code == E.NONE
            assert await producer.commit_offsets("app", {T0: 1}) == {T0: E.NONE}
            assert (await producer.end()).error_code == E.NONE


@pytest.mark.asyncio
async def test_a_zombie_is_played_with_its_attributes() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        zombie = kafka.manual_producer("billing", client_id="z")
        assert (zombie.client_id, repr(zombie)) == ("z", "<ManualProducer billing producer_id=-1 epoch=-1>")
        await zombie.init()
        successor = kafka.manual_producer("billing")
        await successor.init()
        assert (successor.producer_id, successor.epoch) == (zombie.producer_id, 1)
        assert (await zombie.produce("orders", b"late")).error_code == E.INVALID_PRODUCER_EPOCH
        assert (await zombie.init(goes_on=True)).error_code == E.PRODUCER_FENCED
        assert (zombie.producer_id, zombie.epoch) == (successor.producer_id, 0)
        zombie.epoch, zombie.sequences[T0] = 1, 7
        assert (await zombie.produce("orders", b"as its successor")).error_code == E.OUT_OF_ORDER_SEQUENCE_NUMBER
        zombie.sequences[T0] = 0
        assert (await zombie.produce("orders", b"as its successor")).error_code == E.NONE
        zombie.version = 1
        assert (await zombie.end()).error_code == E.NONE
        assert (await successor.init(goes_on=True)).error_code == E.NONE
        assert successor.epoch == 2


@pytest.mark.asyncio
async def test_a_batch_that_is_refused_leaves_its_sequence_to_the_next() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        producer = kafka.manual_producer("billing")
        await producer.init()
        await producer.produce("orders", b"a")
        kafka.faults.when("Produce").refuse("NOT_LEADER_OR_FOLLOWER")
        refused, behind = producer.produce("orders", b"b"), producer.produce("orders", b"c")
        assert (await refused).error_code == E.NOT_LEADER_OR_FOLLOWER
        assert (await behind).error_code == E.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert producer.sequences == {T0: 2}  # as c was on its way, b's number is used up
        producer.sequences[T0] = 1
        kafka.faults.when("Produce").refuse("NOT_LEADER_OR_FOLLOWER")
        assert (await producer.produce("orders", b"b", b"c")).error_code == E.NOT_LEADER_OR_FOLLOWER
        assert producer.sequences == {T0: 1}
        assert (await producer.produce("orders", b"b", b"c")).base_offset == 1
        missing = await producer.produce("nowhere", b"a", partition=3)
        assert missing.error_code == E.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.asyncio
async def test_offsets_are_committed_for_a_member() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        member = kafka.manual_member("app", "orders", instance_id="one")
        await member.rejoin()
        producer = kafka.manual_producer("billing")
        await producer.init()

        async def commit(member_id: str, generation: int, instance_id: str | None = None) -> E:
            answer = producer.commit_offsets("app", {T0: 1}, member_id, generation, instance_id=instance_id)
            return (await answer)[T0]

        assert await commit(member.member_id, 2) is E.ILLEGAL_GENERATION
        assert await commit("nobody", 1) is E.UNKNOWN_MEMBER_ID
        assert await commit("nobody", 1, "one") is E.FENCED_INSTANCE_ID
        assert await commit(member.member_id, 1, "one") is E.NONE


@pytest.mark.asyncio
@pytest.mark.parametrize(("version", "told"), [(1, E.PRODUCER_FENCED), (2, E.INVALID_TXN_STATE)])
async def test_a_transaction_ends_when_its_time_is_over(version: int, told: E) -> None:
    interval = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
    async with Cluster(topics={"orders": 1}, clock="manual", config={interval: 1_000}) as kafka:
        producer = kafka.manual_producer("billing", version=version)
        assert (await producer.init(transaction_timeout_ms=-1)).error_code == E.INVALID_TRANSACTION_TIMEOUT
        assert producer.epoch == -1
        await producer.init(transaction_timeout_ms=5_000)
        await producer.add_partitions(T0)
        await kafka.clock.advance(4)
        assert (await producer.produce("orders", b"a")).error_code == E.NONE
        await kafka.clock.advance(3)
        assert (await producer.end()).error_code == told


@pytest.mark.asyncio
async def test_there_are_two_generations_of_the_protocol() -> None:
    async with Cluster(clock="manual") as kafka:
        with pytest.raises(ValueError, match=r"there is no transaction\.version 3 that a producer knows: it is 1 or 2"):
            kafka.manual_producer("billing", version=3)


@pytest.mark.asyncio
async def test_one_that_vanishes_hears_nothing_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groupcoord.testing.manual_request_sender.TIMEOUT_S", 0.01)
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        producer = kafka.manual_producer("billing")
        kafka.faults.when("InitProducerId").drop()
        with pytest.raises(WaitTimeoutError, match=r"InitProducerId of billing-1 was not answered within 0\.01 s"):
            await producer.init()
        asked = producer.init()
        producer.vanish()
        assert asked.cancelled()


@pytest.mark.asyncio
async def test_elsewhere_there_may_be_no_leader() -> None:
    async with Cluster(topics={"orders": 1}) as kafka, RemoteCluster(kafka.address) as remote:
        producer = remote.manual_producer("billing")
        await producer.init()
        answer = await producer.produce("orders", b"a", partition=3)
        assert answer.error_code == E.UNKNOWN_TOPIC_OR_PARTITION


def test_the_same_steps_without_asyncio() -> None:
    with Cluster(topics={"orders": 1}, clock="manual").sync() as kafka:
        producer = kafka.manual_producer("billing")
        assert producer.init().result().error_code == E.NONE
        assert producer.produce("orders", b"a").result().base_offset == 0
        producer.epoch += 1
        assert producer.end().result().error_code == E.PRODUCER_FENCED
        assert producer.sequences == {T0: 1}


@pytest.mark.asyncio
async def test_records_before_a_producer_id_would_be_in_no_transaction() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        producer = kafka.manual_producer("billing")
        with pytest.raises(RuntimeError, match=r"produce\(\) comes after init\(\)"):
            producer.produce("orders", b"1")
