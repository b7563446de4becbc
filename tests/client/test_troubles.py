"""What goes wrong is said: one warning when it begins, one line when it is over, and the same to listeners."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from groupcoord.assignors import Assignment, FunctionAssignor, GroupSubscription
from groupcoord.client import member_driver
from groupcoord.client.client_errors import AssignorFailedError, BrokerError, UnsupportedVersionError
from groupcoord.client.connection import BrokerConnection
from groupcoord.client.consumer import Consumer
from groupcoord.client.network_client import ConnectionPurpose
from groupcoord.client.trouble_log import TroubleBegan, TroubleEnded
from groupcoord.core.events import Event
from groupcoord.protocol.apis.fetch import FetchableTopicResponse, PartitionData
from groupcoord.protocol.apis.find_coordinator import Coordinator
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.protocol.messages import (
    FetchRequest,
    FetchResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    ListOffsetsRequest,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from tests.client.broker import HANG, HANG_UP, Broker, broker, forever, patiently
from tests.client.test_log_offsets import listed
from tests.client.test_offsets import answered, fetched

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]
T = ("t", 0)


class Heard:
    """A consumer and what it says."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog
        self.events: list[Event] = []
        caplog.set_level("INFO", "groupcoord.client")

    def logged(self) -> list[tuple[str, str]]:
        return [
            (record.levelname, record.getMessage())
            for record in self._caplog.records
            if record.name.startswith("groupcoord.client")
        ]

    def subjects(self) -> list[tuple[str, str]]:
        """Level and subject of each line; listeners were told the same."""
        told = [event for event in self.events if isinstance(event, (TroubleBegan, TroubleEnded))]
        levels = {TroubleBegan: "WARNING", TroubleEnded: "INFO"}
        assert [(levels[type(event)], event.text()) for event in told] == self.logged()
        return [(levels[type(event)], event.subject) for event in told]

    def over(self, subject: str) -> bool:
        """Has it begun and ended, each once?"""
        return [level for level, of in self.subjects() if of == subject] == ["WARNING", "INFO"]


@pytest.fixture
def heard(caplog: pytest.LogCaptureFixture) -> Heard:
    return Heard(caplog)


@asynccontextmanager
async def consumer(real: Broker, heard: Heard, *topics: str, **how: Any) -> AsyncIterator[Consumer]:
    settings: dict[str, Any] = {
        "group_id": "g",
        "auto_offset_reset": "earliest",
        "heartbeat_interval_ms": 20,
        "fetch_max_wait_ms": 20,
    }
    settings |= {"retry_backoff_ms": 1, "retry_backoff_max_ms": 5, "listeners": [heard.events.append], **how}
    async with Consumer(*(topics or ["t"]), bootstrap_servers=real.address, **settings) as one:
        yield one


async def owning(one: Consumer) -> None:
    while not one.assignment():
        await one.getmany(20)


async def polls_until(one: Consumer, condition: Any) -> None:
    while not condition():
        await one.getmany(20)


@patiently
async def test_a_life_without_trouble_is_quiet(heard: Heard) -> None:
    async with broker() as real:
        await real.produce("t", [b"a"])
        async with consumer(real, heard) as one:
            await one.getone()
    assert heard.subjects() == []


@patiently
async def test_a_coordinator_that_hangs_up_is_told_once_and_that_it_is_back_once(heard: Heard) -> None:
    async with broker() as real, consumer(real, heard) as one:
        await owning(one)
        at = f"the broker at {real.address}"
        real.answers(HeartbeatRequest, HANG_UP)
        await polls_until(one, lambda: heard.over("the coordinator of g") and heard.over(at))
        assert len(heard.subjects()) == 4


@pytest.mark.parametrize("code", [E.COORDINATOR_NOT_AVAILABLE, E.COORDINATOR_LOAD_IN_PROGRESS])
@patiently
async def test_a_coordinator_that_cannot_be_found(heard: Heard, code: E) -> None:
    async with broker() as real:

        def nowhere(request: FindCoordinatorRequest) -> FindCoordinatorResponse:
            return FindCoordinatorResponse(coordinators=(Coordinator(key="g", error_code=code),))

        real.answers(FindCoordinatorRequest, *[nowhere] * 20)
        async with consumer(real, heard) as one:
            await owning(one)
        assert heard.subjects() == [("WARNING", "the coordinator of g"), ("INFO", "the coordinator of g")]
        assert code.name in heard.logged()[0][1]


@patiently
async def test_a_broker_that_does_not_answer_in_time(heard: Heard) -> None:
    async with broker() as real, consumer(real, heard, request_timeout_ms=200) as one:
        await owning(one)
        real.answers(FetchRequest, HANG)
        await polls_until(one, lambda: heard.over(f"the broker at {real.address}"))
        assert "did not answer Fetch in 200 ms" in heard.logged()[0][1]


@patiently
async def test_a_bootstrap_address_where_nobody_is(heard: Heard) -> None:
    async with broker() as real:
        servers = f"127.0.0.1:1,{real.address}"
        async with consumer(real, heard) as one:
            await owning(one)
        settings: dict[str, Any] = {"bootstrap_servers": servers, "listeners": [heard.events.append]}
        async with Consumer(**settings) as other:
            await other.topics()
            assert heard.subjects() == [("WARNING", "the broker at 127.0.0.1:1")]


@patiently
async def test_a_broker_that_leaves_the_cluster_is_no_trouble_any_more(heard: Heard) -> None:
    async with broker() as real:
        gone = replace((await _metadata(real)).brokers[0], node_id=77, host="127.0.0.1", port=1)
        away = [False]

        def more(request: MetadataRequest, answer: MetadataResponse) -> MetadataResponse:
            return answer if away[0] else replace(answer, brokers=(*answer.brokers, gone))

        real.alter(MetadataRequest, more)
        async with consumer(real, heard) as one:
            with pytest.raises(Exception, match="cannot be reached"):
                await one._cluster.request_of(77, MetadataRequest(topics=()), ConnectionPurpose.GENERAL)
            assert heard.subjects() == [("WARNING", "the broker at 127.0.0.1:1")]
            await one.topics()
            assert len(heard.subjects()) == 1
            away[0] = True
            await one.topics()
            assert heard.subjects()[1:] == [("INFO", "the broker at 127.0.0.1:1")]
            ended = [event for event in heard.events if isinstance(event, TroubleEnded)]
            assert str(ended[0].cause) == "it is not part of the cluster any more"


async def _metadata(real: Broker) -> MetadataResponse:
    connection = await BrokerConnection.connect(real.server.host, real.server.port, client_id="c", timeout_ms=10_000)
    answer: MetadataResponse = await connection.request(MetadataRequest(topics=()), 10_000)
    connection.close()
    return answer


@patiently
async def test_a_topic_that_does_not_exist_yet(heard: Heard) -> None:
    async with (
        broker(auto_create_topics_enable=False) as real,
        consumer(real, heard, "t", "later", metadata_max_age_ms=20) as one,
    ):
        await polls_until(one, heard.subjects)
        assert "topic later: UNKNOWN_TOPIC_OR_PARTITION: " in heard.logged()[0][1]
        await real.cluster.create_topic("later", 1)
        await polls_until(one, lambda: heard.over("topic later"))
        assert len(heard.subjects()) == 2


@patiently
async def test_a_topic_that_nobody_wants_any_more_is_no_trouble(heard: Heard) -> None:
    async with broker(auto_create_topics_enable=False) as real, consumer(real, heard, "t", "later") as one:
        await polls_until(one, heard.subjects)
        one.subscribe("t")
        await polls_until(one, lambda: heard.over("topic later"))


@patiently
async def test_a_partition_without_a_leader(heard: Heard) -> None:
    async with broker({"t": 3}) as real:
        wrong = [True]

        def leaderless(request: MetadataRequest, answer: MetadataResponse) -> MetadataResponse:
            if not (wrong[0] and answer.topics):
                return answer
            (topic,) = answer.topics
            partitions = tuple(
                replace(each, leader_id=-1) if each.partition_index else each for each in topic.partitions
            )
            return replace(answer, topics=(replace(topic, partitions=partitions),))

        real.alter(MetadataRequest, leaderless)
        async with consumer(real, heard) as one:
            await owning(one)
            assert heard.logged()[0][1].endswith("trouble with topic t: no leader for partition 1, 2")
            wrong[0] = False
            await polls_until(one, lambda: heard.over("topic t"))


@patiently
async def test_metadata_that_cannot_be_asked_for(heard: Heard) -> None:
    async with broker() as real, consumer(real, heard, metadata_max_age_ms=20) as one:
        await owning(one)
        asks = one._cluster.request_any

        async def refuses(request: Any, timeout_ms: int | None = None) -> Any:
            raise UnsupportedVersionError("too old")

        one._cluster.request_any = refuses  # type: ignore[method-assign]
        await polls_until(one, heard.subjects)
        one._cluster.request_any = asks  # type: ignore[method-assign]
        await polls_until(one, lambda: heard.over("the metadata of the cluster"))


@patiently
async def test_a_join_that_is_refused(heard: Heard) -> None:
    async with broker() as real:
        real.answers(
            JoinGroupRequest, *[JoinGroupResponse(error_code=E.COORDINATOR_LOAD_IN_PROGRESS, member_id="")] * 5
        )
        async with consumer(real, heard) as one:
            await polls_until(one, lambda: heard.over("the membership in g"))
        assert len(heard.subjects()) == 2


@patiently
async def test_a_member_that_is_thrown_out(heard: Heard) -> None:
    async with broker() as real, consumer(real, heard) as one:
        await owning(one)
        await real.removes(one.membership.generation.member_id)
        await polls_until(one, lambda: heard.over("the membership in g"))


@patiently
async def test_a_member_that_failed_stays_in_trouble(heard: Heard) -> None:
    async with broker() as real:
        real.answers(JoinGroupRequest, JoinGroupResponse(error_code=E.GROUP_MAX_SIZE_REACHED, member_id=""))
        async with consumer(real, heard) as one:
            with pytest.raises(BrokerError):
                await forever(one)
        assert heard.subjects() == [("WARNING", "the membership in g")]


@patiently
async def test_a_partition_whose_records_are_refused(heard: Heard) -> None:
    async with broker() as real:

        def refused(request: FetchRequest, code: E) -> FetchResponse:
            (topic,) = request.topics
            data = PartitionData(partition_index=0, error_code=code, high_watermark=-1, records=None)
            return FetchResponse(responses=(FetchableTopicResponse(topic_id=topic.topic_id, partitions=(data,)),))

        real.answers(
            FetchRequest,
            lambda request: refused(request, E.NOT_LEADER_OR_FOLLOWER),
            lambda request: refused(request, E.UNKNOWN_SERVER_ERROR),
        )
        real.answers(ListOffsetsRequest, *[listed(E.NOT_LEADER_OR_FOLLOWER)] * 2)
        async with consumer(real, heard) as one:
            await polls_until(one, lambda: heard.over("records of t-0"))
        assert len(heard.subjects()) == 2


@patiently
async def test_fetches_that_are_refused(heard: Heard) -> None:
    async with broker() as real:
        real.answers(FetchRequest, FetchResponse(error_code=E.UNKNOWN_TOPIC_ID))
        async with consumer(real, heard) as one:
            await polls_until(one, lambda: heard.over("fetches from broker 1"))


@patiently
async def test_a_batch_that_comes_in_part(heard: Heard) -> None:
    async with broker() as real:
        await real.produce("t", [b"a" * 100])
        whole = [False]

        def in_part(request: FetchRequest, answer: FetchResponse) -> FetchResponse:
            if whole[0] or not answer.responses:
                return answer
            (topic,) = answer.responses
            data = replace(topic.partitions[0], records=bytes(topic.partitions[0].records or b"")[:50])
            return replace(answer, responses=(replace(topic, partitions=(data,)),))

        real.alter(FetchRequest, in_part)
        async with consumer(real, heard) as one:
            await polls_until(one, heard.subjects)
            assert "the batch at offset 0 is larger than max_partition_fetch_bytes=1048576" in heard.logged()[0][1]
            whole[0] = True
            assert (await one.getone()).value == b"a" * 100
            assert heard.over("records of t-0")


@patiently
async def test_offsets_that_the_coordinator_does_not_say_yet(heard: Heard) -> None:
    async with broker() as real:
        real.answers(OffsetFetchRequest, *[fetched(E.COORDINATOR_LOAD_IN_PROGRESS)] * 9)
        async with consumer(real, heard) as one:
            await polls_until(one, lambda: heard.over("offsets of g"))
        assert len(heard.subjects()) == 2


@patiently
async def test_commits_that_fail_are_told_once_until_one_succeeds(heard: Heard) -> None:
    async with broker() as real, consumer(real, heard, auto_commit_interval_ms=0) as one:
        await owning(one)
        await one.position(T)
        real.answers(OffsetCommitRequest, *[answered(E.OFFSET_METADATA_TOO_LARGE)] * 5)
        await polls_until(one, lambda: heard.over("commits"))
        assert len(heard.subjects()) == 2
        real.answers(OffsetCommitRequest, answered(E.OFFSET_METADATA_TOO_LARGE))


@patiently
async def test_periodic_commits_during_a_cooperative_rebalance_are_quiet(heard: Heard) -> None:
    cooperative = {"partition_assignment_strategy": "cooperative-sticky", "auto_commit_interval_ms": 0}
    async with broker({"t": 2}) as real, consumer(real, heard, **cooperative) as one:
        await owning(one)
        await real.produce("t", [b"a"])
        joins = len(real.got(JoinGroupRequest))
        real.answers(JoinGroupRequest, HANG)
        one.enforce_rebalance()
        await real.gets(JoinGroupRequest, joins + 1)
        for _ in range(60):
            await one.getmany(1)
        assert heard.subjects() == []


# Assignors that take too long.


class NeverEnds(FunctionAssignor):
    """Assigns until it may end."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        super().__init__("endless", self._wait)

    def _wait(self, group: GroupSubscription) -> Assignment:
        self.may_end.wait(60)
        (member_id,) = group.subscriptions
        return {member_id: [(topic, 0) for topic in group.partitions]}


@patiently
async def test_an_assignor_that_takes_long_is_told(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member_driver, "SLOW_ASSIGNOR_MS", 20)
    slow = NeverEnds()
    async with broker() as real, consumer(real, heard, partition_assignment_strategy=slow) as one:
        await polls_until(one, heard.subjects)
        assert heard.logged()[0][1].endswith(
            "trouble with the assignor endless: it has not ended after 20 ms, and may take max_poll_interval_ms"
        )
        slow.may_end.set()
        await polls_until(one, lambda: heard.over("the assignor endless"))


@patiently
async def test_an_assignor_that_does_not_end_ends_its_member(heard: Heard) -> None:
    endless = NeverEnds()
    how = {"partition_assignment_strategy": endless, "max_poll_interval_ms": 300}
    async with broker() as real, consumer(real, heard, **how) as one:
        with pytest.raises(AssignorFailedError, match="endless: it has not ended within max_poll_interval_ms=300 ms"):
            await forever(one)
        await real.gets(LeaveGroupRequest)
    endless.may_end.set()


# Closing.


@patiently
async def test_closing_without_a_broker_ends_in_time_and_says_what_was_not_done(heard: Heard) -> None:
    async with broker() as real:
        one = Consumer(
            "t", bootstrap_servers=real.address, group_id="g", listeners=[heard.events.append], retry_backoff_ms=1
        )
        await one.start()
        await owning(one)
        await one.position(T)
    await one.stop(timeout_ms=100)
    told = heard.subjects()
    assert ("WARNING", "the coordinator of g") in told or ("WARNING", f"the broker at {real.address}") in told
    assert ("WARNING", "commits") in told


@patiently
async def test_a_goodbye_that_is_not_answered_is_given_up_and_told(heard: Heard) -> None:
    async with broker() as real:
        # Nothing is committed at the end: on a busy machine that alone would take the 50 ms.
        one = Consumer(
            "t",
            bootstrap_servers=real.address,
            group_id="g",
            enable_auto_commit=False,
            listeners=[heard.events.append],
        )
        await one.start()
        await owning(one)
        real.answers(LeaveGroupRequest, HANG)
        await one.stop(timeout_ms=50)
        assert heard.subjects() == [("WARNING", "closing")]
        assert "it had not left its group after 50 ms" in heard.logged()[0][1]
