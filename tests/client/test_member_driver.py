"""How a member is run: callbacks, listeners, assignors in threads, and what becomes of what is under way."""

import asyncio
import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from groupcoord.assignors import Assignment, FunctionAssignor, GroupSubscription
from groupcoord.client.client_errors import AssignorFailedError, BrokerError, CallbackFailedError, ConsumerClosedError
from groupcoord.client.consumer import Consumer
from groupcoord.client.member.member_events import AssignorRan, Joined
from groupcoord.core.events import Event
from groupcoord.protocol.apis.find_coordinator import Coordinator
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from tests.client.broker import HANG, HANG_UP, Broker, broker, eventually, forever, patiently

pytestmark = pytest.mark.asyncio


def consumer(real: Broker, *, topics: Sequence[str] = ("t",), **how: Any) -> Consumer:
    settings = {"group_id": "g", "retry_backoff_ms": 1, "heartbeat_interval_ms": 20, **how}
    return Consumer(*topics, bootstrap_servers=real.address, **settings)


async def owning(one: Consumer) -> Consumer:
    while not one.assignment():
        await one.getmany(50)
    return one


@pytest.mark.parametrize("coroutines", [False, True])
@patiently
async def test_callbacks_may_be_functions_or_coroutine_functions(coroutines: bool) -> None:
    told: list[tuple[str, Any]] = []

    def callback(name: str) -> Any:
        async def later(partitions: Any) -> None:
            await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=0.001)
            told.append((name, partitions))

        return later if coroutines else lambda partitions: told.append((name, partitions))

    async with (
        broker() as real,
        consumer(real, on_assigned=callback("assigned"), on_revoked=callback("revoked")) as one,
    ):
        await owning(one)
        while not told:
            await one.getmany(10)
    assert told == [("assigned", (("t", 0),)), ("revoked", (("t", 0),))]


@pytest.mark.slow
@pytest.mark.parametrize("has_own", [True, False])
@patiently
async def test_partitions_that_are_lost_are_told_as_revoked_if_nobody_else_listens(has_own: bool) -> None:
    told: list[str] = []
    callbacks: dict[str, Any] = {"on_revoked": lambda _: told.append("revoked")}
    if has_own:
        callbacks["on_lost"] = lambda _: told.append("lost")
    async with broker() as real, consumer(real, **callbacks) as one:
        await owning(one)
        await real.removes(one.membership.generation.member_id)
        while not told:
            await one.getmany(10)
        assert told == ["lost" if has_own else "revoked"]


@patiently
async def test_a_callback_may_commit_and_seek() -> None:
    async with broker() as real:
        committed: list[Any] = []

        async def assigned(partitions: Any) -> None:
            one.seek(("t", 0), 5)

        async def revoked(partitions: Any) -> None:
            await one.commit()
            committed.append(await one.committed())

        await real.produce("t", [b"x"] * 9)
        one = consumer(real, on_assigned=assigned, on_revoked=revoked, enable_auto_commit=False)
        async with one:
            while not (records := await one.getmany(10, 1)):
                pass
            assert [record.offset for record in records["t", 0]] == [5]
        assert [offset.offset for found in committed for offset in found.values()] == [6]


@patiently
async def test_a_seek_in_a_callback_has_the_last_word() -> None:
    """Also if the search for the committed offset was decided on, but had not begun."""
    async with broker() as real:

        def assigned(partitions: Any) -> None:
            one.resume(*partitions)  # lets the fetcher look
            one.seek(("t", 0), 5)

        await real.produce("t", [b"x"] * 9)
        one = consumer(real, on_assigned=assigned, auto_offset_reset="latest")
        async with one:
            while not (records := await one.getmany(10)):
                pass
            assert [record.offset for record in records["t", 0]] == [5, 6, 7, 8]


@patiently
async def test_a_callback_may_not_poll() -> None:
    async with broker() as real:

        async def assigned(partitions: Any) -> None:
            await one.getmany()

        one = consumer(real, on_assigned=assigned)
        async with one:
            with pytest.raises(CallbackFailedError, match="a callback cannot poll"):
                await forever(one)


@pytest.mark.slow
@patiently
async def test_records_wait_for_the_callback() -> None:
    async with broker() as real:
        await real.produce("t", [b"a"])
        may_go_on = asyncio.Event()

        async def assigned(partitions: Any) -> None:
            await may_go_on.wait()

        async with consumer(real, on_assigned=assigned, auto_offset_reset="earliest") as one:
            polling = asyncio.create_task(one.getmany(1))
            while not one.membership.in_callback:
                if polling.done():
                    polling = asyncio.create_task(one.getmany(1))
                await asyncio.wait([polling], timeout=0.005)
            assert (await asyncio.wait([polling], timeout=0.05))[1], "a poll does not end while a callback runs"
            may_go_on.set()
            values = [record.value for records in (await polling).values() for record in records]
            while values != [b"a"]:
                values += [record.value for records in (await one.getmany(50)).values() for record in records]


@patiently
async def test_a_poll_that_is_given_up_does_not_stop_the_callback() -> None:
    async with broker() as real:
        began, may_go_on, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def assigned(partitions: Any) -> None:
            began.set()
            await may_go_on.wait()
            done.set()

        async with consumer(real, on_assigned=assigned) as one:
            polling = asyncio.create_task(one.getmany(10_000))
            await began.wait()
            polling.cancel()
            await asyncio.wait([polling])
            may_go_on.set()
            await done.wait()
            assert await one.getmany(1) == {}


@patiently
async def test_what_a_callback_raises_is_raised_once() -> None:
    def assigned(partitions: Any) -> None:
        raise ValueError("no")

    async with broker() as real, consumer(real, on_assigned=assigned) as one:
        with pytest.raises(CallbackFailedError, match="ValueError: no"):
            await forever(one)
        assert await one.getmany(10) == {}
        assert one.assignment() == {("t", 0)}


@pytest.mark.slow
@patiently
async def test_what_the_last_callback_raises_is_raised_by_the_block() -> None:
    def revoked(partitions: Any) -> None:
        raise ValueError("no")

    async with broker() as real:
        with pytest.raises(CallbackFailedError, match="ValueError: no"):
            async with consumer(real, on_revoked=revoked) as one:
                await owning(one)
        with pytest.raises(CallbackFailedError, match="one topic at least"):
            async with consumer(real, on_revoked=revoked, on_assigned=lambda _: one.subscribe("")) as one:
                await forever(one)


@pytest.mark.slow
@patiently
async def test_listeners_are_told_each_step_and_stop_nothing() -> None:
    told: list[Event] = []

    def broken(event: Event) -> None:
        if isinstance(event, Joined):
            raise ValueError("I only wanted to look")

    async with broker() as real, consumer(real, listeners=[broken, told.append]) as one:
        with pytest.raises(ValueError, match="I only wanted to look"):
            await forever(one)
        await owning(one)
        assert [type(event).__name__ for event in told[:6]] == [
            "CoordinatorFound",
            "JoinSent",
            "MemberIdGiven",
            "RejoinWanted",
            "JoinSent",
            "Joined",
        ]


@pytest.mark.slow
@patiently
async def test_an_assignor_may_take_its_time_while_heartbeats_go_on() -> None:
    may_go_on = threading.Event()

    def slow(group: GroupSubscription) -> Assignment:
        assert may_go_on.wait(20)
        return {member_id: [("t", 0)] for member_id in group.subscriptions}

    async with broker() as real, consumer(real, partition_assignment_strategy=FunctionAssignor("slow", slow)) as one:
        await real.gets(HeartbeatRequest, 3)
        may_go_on.set()
        await owning(one)


@pytest.mark.slow
@patiently
async def test_an_assignor_whose_generation_is_over_is_not_waited_for() -> None:
    may_go_on = threading.Event()

    def slow(group: GroupSubscription) -> Assignment:
        if len(real.got(JoinGroupRequest)) == 2:  # the first one to get an id, the second one with it
            assert may_go_on.wait(20)
        return {member_id: [("t", 0)] for member_id in group.subscriptions}

    async with broker() as real, consumer(real, partition_assignment_strategy=FunctionAssignor("slow", slow)) as one:
        await real.gets(HeartbeatRequest, 3)
        await real.removes(one.membership.generation.member_id)
        await owning(one)
        may_go_on.set()


@pytest.mark.slow
@patiently
async def test_a_faulty_assignor_ends_its_member_and_the_group_goes_on() -> None:
    def faulty(group: GroupSubscription) -> Assignment:
        return {member_id: [("t", 0), ("t", 0)] for member_id in group.subscriptions}

    async with broker() as real:
        mine = FunctionAssignor("shared", faulty)
        theirs = FunctionAssignor("shared", lambda group: {member_id: [("t", 0)] for member_id in group.subscriptions})
        async with consumer(real, partition_assignment_strategy=mine) as bad:
            with pytest.raises(AssignorFailedError, match=r"assignor shared: gives t-0 to .* twice"):
                await forever(bad)
            with pytest.raises(AssignorFailedError):
                await bad.getmany(50)
            async with consumer(real, partition_assignment_strategy=theirs) as good:
                await owning(good)


@patiently
async def test_a_connection_that_breaks_at_every_step() -> None:
    async with broker() as real:
        for request in (JoinGroupRequest, SyncGroupRequest, HeartbeatRequest):
            real.answers(request, HANG_UP)
        async with consumer(real) as one:
            await owning(one)
            await real.gets(HeartbeatRequest, 2)
            assert one.assignment() == {("t", 0)}


@pytest.mark.slow
@patiently
async def test_a_sync_that_will_never_be_answered_is_given_up() -> None:
    async with broker() as real:
        real.answers(SyncGroupRequest, HANG)
        async with consumer(real) as one:
            await real.gets(SyncGroupRequest)
            await real.removes(one.membership.generation.member_id)
            await owning(one)


@patiently
async def test_a_join_that_is_parked_does_not_hold_up_the_goodbye() -> None:
    async with broker() as real:
        real.answers(JoinGroupRequest, None, HANG)
        async with consumer(real) as one:
            await real.gets(JoinGroupRequest, 2)
            assert one.assignment() == frozenset()
        (goodbye,) = real.got(LeaveGroupRequest)
        assert goodbye.members[0].member_id == real.got(JoinGroupRequest)[1].member_id


@patiently
async def test_two_phases_can_be_watched() -> None:
    """KIP-429."""
    told: list[Event] = []
    async with broker({"t": 2}) as real:
        how: dict[str, Any] = {"partition_assignment_strategy": "cooperative-sticky"}
        async with consumer(real, listeners=[told.append], **how) as first, consumer(real, **how) as second:
            while len(first.assignment()) != 1 or len(second.assignment()) != 1:
                await asyncio.gather(first.getmany(20), second.getmany(20))
            assert first.membership.settings.group_id == "g"
    withheld = [event.withheld for event in told if isinstance(event, AssignorRan)]
    assert [len(partitions) for partitions in withheld if partitions] in ([1], [])


@pytest.mark.slow
@patiently
async def test_a_commit_that_waits_for_a_coordinator_is_told_when_the_member_ends() -> None:
    async with broker() as real, consumer(real, enable_auto_commit=False) as one:
        await owning(one)
        real.answers(HeartbeatRequest, HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR))
        real.answers(FindCoordinatorRequest, *[HANG_UP] * 3, no_coordinator)
        await eventually(lambda: one.membership.coordinator is None)
        with pytest.raises(BrokerError, match="no coordinator: GROUP_AUTHORIZATION_FAILED"):
            await one.commit({("t", 0): 1})


def no_coordinator(request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    refusal = Coordinator(key="g", error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return FindCoordinatorResponse(coordinators=(refusal,))


@patiently
async def test_nothing_is_carried_out_after_the_end() -> None:
    async with broker() as real:
        async with consumer(real) as one:
            await owning(one)
        before = len(real.requests)
        for wrong in (partial(one.subscribe, "u"), partial(one.assign, []), one.unsubscribe):
            with pytest.raises(ConsumerClosedError, match="make a new one"):
                wrong()
        one.enforce_rebalance()
        assert len(real.requests) == before
        assert one.assignment() == frozenset()
