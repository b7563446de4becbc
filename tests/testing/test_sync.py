"""The cluster for programs without asyncio."""

import threading

import pytest

from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing import Cluster, WaitTimeoutError

ORDERS = {"orders": 4}


def clusters() -> int:
    """How many threads of clusters there are."""
    return sum(thread.name == "groupcoord cluster" for thread in threading.enumerate())


def test_everything_without_await() -> None:
    with Cluster(topics=ORDERS, clock="manual").sync() as kafka:
        assert clusters() == 1
        assert repr(kafka) == f"<Cluster {kafka.address}>"
        a, b = kafka.consumers(2, group="app", topics="orders")
        assert len(a.assigned) == 2
        b.vanish()
        kafka.clock.advance(50)
        assert len(a.assigned) == 4
        assert kafka.group("app").wait_stable(members=1).generation == 2
        assert kafka.group("app").state() == "Stable"
        assert kafka.clock.deadlines()[0].kind == "session"
        assert kafka.trace.of()
        b.vanish()
        kafka.clock.advance_until(lambda: kafka.group("app").state() == "Stable")
        with pytest.raises(RuntimeError, match="a condition cannot wait"):
            kafka.clock.advance_until(lambda: kafka.group("app").wait_dead())
        with pytest.raises(WaitTimeoutError, match="group app should be empty"):
            kafka.group("app").wait_empty(timeout=0.01)
    assert clusters() == 0


def test_steps_are_waited_for_where_the_test_wants() -> None:
    with Cluster(topics=ORDERS, clock="manual").sync() as kafka:
        member = kafka.manual_member("app", "orders")
        assert member.join().result().error_code == ErrorCode.NONE
        member.sync().result()
        kafka.faults.when("Heartbeat").disconnect()
        with pytest.raises(ConnectionResetError):
            member.heartbeat().result()
        barrier = kafka.barrier("Heartbeat", group="app", size=1)
        beating = member.heartbeat()
        assert len(barrier.wait()) == 1
        barrier.release()
        assert beating.result() == ErrorCode.NONE
        hold = kafka.faults.when("Heartbeat").hold()
        lost = member.heartbeat()
        hold.wait()
        member.vanish()
        assert lost.cancelled()


def test_a_member_of_a_consumer_group_without_asyncio() -> None:
    with Cluster(topics={"orders": 2}, clock="manual").sync() as kafka:
        a, b = kafka.manual_consumer("app", "orders"), kafka.manual_consumer("app", "orders")
        assert a.join().result().member_epoch == a.epoch == 2
        b.reconcile()
        a.reconcile()
        b.reconcile()
        assert kafka.group("app").wait_reconciled(epoch=3).member(a.member_id).assigned == a.assigned
        b.epoch = 9
        assert b.heartbeat().result().error_code == 110  # FENCED_MEMBER_EPOCH


def test_what_cannot_start_leaves_no_thread() -> None:
    with Cluster(clock="manual").sync() as kafka:
        port = int(kafka.address.rpartition(":")[2])
        with pytest.raises(OSError, match="Address already in use"), Cluster(port=port).sync():
            pass
        assert clusters() == 1
    with pytest.raises(ValueError, match="simulated time is for asyncio programs"), Cluster(clock="virtual").sync():
        pass
    assert clusters() == 0
