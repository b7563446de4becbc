"""The cluster for programs without asyncio."""

import threading

import pytest

from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing import Cluster, WaitTimeoutError
from groupcoord.testing.faults import Heartbeat

ORDERS = {"orders": 4}


def clusters() -> int:
    """How many threads of clusters there are."""
    return sum(thread.name == "groupcoord cluster" for thread in threading.enumerate())


def test_everything_without_await() -> None:
    with Cluster(topics=ORDERS) as kafka:
        assert clusters() == 1
        assert repr(kafka) == f"<Cluster {kafka.address}>"
        assert {"advance", "group", "address"} <= set(dir(kafka))
        a, b = kafka.members(2, group="app", topics="orders")
        assert len(a.assigned) == 2
        b.vanish()
        kafka.advance(seconds=50)
        assert len(a.assigned) == 4
        assert kafka.group("app").stable(members=1).generation == 2
        assert kafka.group("app").state == "Stable"
        assert kafka.deadlines()[0].kind == "session"
        assert kafka.trace.of()
        with pytest.raises(AttributeError):
            _ = kafka._engine
        with pytest.raises(WaitTimeoutError, match="group app should be empty"):
            kafka.group("app").empty(timeout_s=0.01)
    assert clusters() == 0


def test_steps_are_waited_for_where_the_test_wants() -> None:
    with Cluster(topics=ORDERS) as kafka:
        member = kafka.member("app", "orders")
        assert member.join().result().error_code == ErrorCode.NONE
        member.sync().result()
        kafka.when(Heartbeat).disconnect()
        with pytest.raises(ConnectionResetError):
            member.heartbeat().result()
        barrier = kafka.barrier(Heartbeat, "app", n=1)
        beating = member.heartbeat()
        assert len(barrier.gathered()) == 1
        barrier.release()
        assert beating.result() == ErrorCode.NONE
        hold = kafka.when(Heartbeat).hold()
        lost = member.heartbeat()
        hold.wait_arrived()
        member.vanish()
        assert lost.cancelled()


def test_what_cannot_start_leaves_no_thread() -> None:
    with pytest.raises(ValueError, match=r"no/name"), Cluster(topics={"no/name": 1}):
        pass
    with pytest.raises(ValueError, match="simulated time is for asyncio programs"), Cluster(clock="virtual"):
        pass
    assert clusters() == 0
