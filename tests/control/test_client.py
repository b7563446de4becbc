"""The client in Python, against the API on a real socket."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

import groupcoord as gc
from groupcoord.control.client import ControlClient, ControlError
from groupcoord.control.controlled_clusters import DEFAULT, ControlledCluster, ControlledClusters
from groupcoord.control.models import RecordData
from groupcoord.control.serving import http_server
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing import WaitTimeoutError
from groupcoord.testing.sync_proxy import LoopThread
from groupcoord.testing.trace import Trace

pytestmark = pytest.mark.slow  # the end waits for uvicorn's tick

TOKEN = "s3cret"


class Served:
    """A cluster of two brokers and its API in another thread."""

    def __init__(self) -> None:
        self.thread = LoopThread()
        self.thread.start()
        self.kafka = ControlledCluster(DEFAULT, topics={"orders": 2}, clock="manual", brokers=2)
        self._stack = AsyncExitStack()
        self.url = self.thread.wait_for(self._begin())

    async def _begin(self) -> str:
        clusters = ControlledClusters(self.kafka)
        await self.kafka.__aenter__()
        self._stack.push_async_callback(clusters.end)
        listening = socket.create_server(("127.0.0.1", 0))
        await self._stack.enter_async_context(http_server(clusters, [listening], TOKEN))
        return f"http://127.0.0.1:{listening.getsockname()[1]}"

    def end(self) -> None:
        self.thread.wait_for(self._stack.aclose())
        self.thread.stop()


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    served = Served()
    yield served
    served.end()


@pytest.fixture
def control(served: Served) -> Iterator[ControlClient]:
    with gc.ControlClient(served.url, TOKEN) as control:
        yield control
        control.reset()


def test_a_broker_is_made_for_a_test_and_ends_with_it(control: ControlClient) -> None:
    with control.create_broker(topics={"a": 3}, clock="manual") as kafka:
        assert kafka.status().topics == ["a"]
        assert kafka.address != control.address
        assert [each.name for each in control.list_brokers()] == ["default", kafka.status().name]
        assert kafka.clock.advance(46).now_ms == kafka.clock.now_ms()
    assert [each.name for each in control.list_brokers()] == ["default"]
    with control.broker("a") as gone, pytest.raises(ControlError, match="404 Not Found: there is no broker 'a'"):
        gone.status()


def test_the_end_of_a_broker_tells_what_should_fail_the_test(control: ControlClient) -> None:
    def forget_a_rule_and_delete(topic: str) -> None:
        with control.create_broker(topics={"a": 1}) as kafka:
            kafka.faults.add("Heartbeat", "drop")
            assert kafka.report().endswith(":\nnothing")
            kafka.delete_topic(topic)

    with pytest.raises(AssertionError, match="Heartbeat") as refused:
        forget_a_rule_and_delete("a")
    with pytest.raises(ControlError, match="no topic") as failed:
        forget_a_rule_and_delete("nothing")
    assert failed.value.__notes__[0].splitlines()[0] == str(refused.value).splitlines()[0]
    assert [each.name for each in control.list_brokers()] == ["default"]


def test_the_broker_is_stopped_started_and_reset(control: ControlClient) -> None:
    control.stop()
    assert control.status().state == "stopped"
    assert control.restart().state == "up"
    assert control.check() == control.reset() == []
    assert "what happened" in control.report()


def test_topics_and_records(control: ControlClient) -> None:
    assert control.create_topic("a", 2, configs={"cleanup.policy": "compact"}).name == "a"
    assert len(control.add_partitions("a", 1).partitions) == 3
    assert [each.name for each in control.list_topics()] == ["a", "orders"]
    assert control.move_leader("a", 0, 2).partitions[0].leader == 2
    assert control.topic("a").partitions[0].leader == 2
    control.produce(
        "a", "one", "two", key="k", partition=1, records=[RecordData(value_base64="/w==", key="k", partition=1)]
    )
    assert [each.value for each in control.records("a", 1)] == ["one", "two", None]
    assert len(control.wait_records("a", 3, isolation="read_uncommitted")) == 3
    control.delete_topic("a")
    assert "a" not in [each.name for each in control.list_topics(internal=True)]
    with pytest.raises(ControlError) as refused:
        control.create_topic("orders")
    assert (refused.value.problem.status, refused.value.problem.detail) == (409, "there is a topic 'orders' already")


def test_the_controller_of_the_cluster(control: ControlClient) -> None:
    controller = control.controller
    assert (controller.pause().state, controller.resume().state) == ("paused", "running")
    assert (controller.kill().state, controller.start().epoch) == ("stopped", 2)
    assert controller.describe().id == 3000


def test_a_broker_of_the_cluster(control: ControlClient) -> None:
    node = control.node(2)
    assert (node.stop().fenced, node.start().state) == (True, "running")
    assert (node.pause().state, node.resume().state) == ("paused", "running")
    node.pause_replication()
    assert not node.resume_replication().fenced
    node.kill()
    control.clock.advance(9)
    assert node.wait_fenced(timeout=60).state == "stopped"
    node.lose_disk()
    assert node.unregister().fenced
    node.start()
    node.cut_off("clients")
    assert node.cut_off(1).cut_off_from == ["1", "clients"]
    node.reconnect("clients")
    assert node.reconnect(1).condition == "running"
    assert (node.slow_disk(0.5).slow_disk_ms, node.slow_disk(0).slow_disk_ms) == (500, 0)
    assert node.wait_running(timeout=60) == node.describe()
    with pytest.raises(ControlError, match="409 Conflict: broker 2 is running: it cannot be resumed"):
        node.resume()


def test_groups(control: ControlClient, served: Served) -> None:
    app = control.group("app")
    app.commit({("orders", 0): 5, ("orders", 1): 7})
    assert [(each.partition, each.offset) for each in app.offsets()] == [(0, 5), (1, 7)]
    assert app.wait_committed("orders", 0, 5).state == app.wait_empty().state == "Empty"
    app.delete_offsets(("orders", 0))
    assert [(each.partition, each.lag) for each in app.lag()] == [(0, None), (1, -7)]
    app.unload_coordinator()
    assert app.describe().state == "NOT_COORDINATOR"
    app.load_coordinator()
    assert app.move_coordinator(2).state == "Empty"
    app.delete()
    assert app.wait_dead().state == "Dead"

    served.thread.wait_for(served.kafka.consumers(3, "app", "orders", instance_ids=["one", "two", "three"]))
    assert len(app.wait_stable(3, generation=1, timeout=60).members) == 3
    assert app.wait_stable().generation == app.wait_generation(1).generation
    app.expire_member("one")
    app.fence_member("two")
    app.remove_member("three")
    assert len(app.describe().members) == 1
    assert app.force_rebalance("because").state == app.wait_rebalancing().state
    assert [each.group for each in control.list_groups()] == ["app"]
    with pytest.raises(WaitTimeoutError, match=r"(?s)not within 0\.001 s.*the clock is manual"):
        app.wait_stable(9, timeout=0.001)

    served.thread.wait_for(served.kafka.consumers(1, "new", "orders", protocol="consumer"))
    new = control.group("new")
    assert new.wait_epoch(1).epoch == new.wait_reconciled(epoch=1).epoch
    (member,) = new.describe().members
    assert new.wait_reconciled(member.client_id).state == "Stable"


def test_transactions(control: ControlClient, served: Served) -> None:
    producer = served.kafka.manual_producer("billing")

    async def begin() -> None:
        await producer.init()
        await producer.produce("orders", b"one", partition=0)

    served.thread.wait_for(begin())
    billing = control.transaction("billing")
    assert billing.wait_ongoing("orders") == billing.wait_ongoing() == billing.describe()
    assert [each.transactional_id for each in control.list_transactions()] == ["billing"]
    billing.abort()
    assert billing.wait_aborted() == billing.wait_state("CompleteAbort", "Dead")
    billing.unload_coordinator()
    billing.load_coordinator()
    assert billing.move_coordinator(1).state == "CompleteAbort"
    with pytest.raises(WaitTimeoutError, match="CompleteCommit"):
        billing.wait_committed(timeout=0)
    assert "aborted" in control.trace.why(transaction="billing")


def test_time_passes(control: ControlClient, served: Served) -> None:
    member = served.kafka.manual_member("app", "orders")

    async def join() -> None:
        await member.join()
        await member.sync()

    served.thread.wait_for(join())
    (deadline,) = control.clock.deadlines(group="app")
    assert deadline.kind == "session"
    assert len(control.clock.deadlines(everything=True)) > 1
    assert control.clock.advance_to_next(group="app") == deadline.model_copy(update={"in_seconds": 45.0})
    assert control.group("app").describe().state == "Empty"


def test_faults(control: ControlClient, served: Served) -> None:
    thread, kafka = served.thread, served.kafka
    rule = control.faults.add("JoinGroup", "hold", group="app")
    joining = asyncio.run_coroutine_threadsafe(_join(kafka), thread.loop)
    (held,) = control.faults.wait(rule.id)
    assert control.faults.waiting(rule.id) == [held]
    assert control.faults.acted(rule.id).uses == 1
    assert control.faults.release(rule.id, [0]).waiting == []
    assert joining.result() == ErrorCode.NONE
    assert control.faults.release(rule.id) == control.faults.rule(rule.id)
    control.faults.remove(rule.id)
    control.faults.remove_all()
    assert [each.is_removed for each in control.faults.rules] == [True]
    assert "no longer: it was removed" in control.faults.explain("ListGroups", {})
    with pytest.raises(ControlError, match="did you mean Heartbeat"):
        control.faults.add("Hearbeat", "drop")


async def _join(kafka: ControlledCluster) -> ErrorCode:
    return ErrorCode((await kafka.manual_member("app", "orders").join()).error_code)


def test_appends(control: ControlClient, served: Served) -> None:
    failing = control.appends.fail("MESSAGE_TOO_LARGE", group="app")
    with pytest.raises(ControlError, match="409"):
        control.group("app").commit({("orders", 0): 5})
    assert control.appends.acted(failing.id).uses == 1
    holding = control.appends.hold(group="app", times=2)
    for end in (control.appends.release, lambda rule: control.appends.fail_held(rule, "NOT_LEADER_OR_FOLLOWER")):
        commit = served.kafka.group("app").commit({("orders", 0): 5})
        waiting = asyncio.run_coroutine_threadsafe(commit, served.thread.loop)
        assert control.appends.wait(holding.id).held == 1
        assert end(holding.id).held == 0
        error = waiting.exception()
    assert "NOT_COORDINATOR" in str(error)
    control.appends.remove(holding.id)
    assert control.appends.rule(holding.id).is_removed
    assert [each.id for each in control.appends.rules] == [1, 2]


def test_the_trace(control: ControlClient, served: Served, tmp_path_factory: pytest.TempPathFactory) -> None:
    served.thread.wait_for(served.kafka.consumers(2, "app", "orders"))
    trace = served.kafka.trace
    entries = control.trace.entries(event=["MemberJoined", "GroupCreated"], group="app").entries
    assert {each.event for each in entries} == {"coordinator.MemberJoined", "coordinator.GroupCreated"}
    assert control.trace.text(fold=True) == trace.text(fold=True)
    assert control.trace.mermaid(group="app") == trace.mermaid(group="app")
    path = tmp_path_factory.mktemp("trace") / "trace.jsonl"
    path.write_text(control.trace.file())
    assert len(Trace.load(path)) == len(trace)
    newest = max(trace.generations("app"))
    assert control.trace.why("app") == control.trace.why("app", newest) == trace.why("app")
    assert control.trace.why("app", got=("orders", 0)) == trace.why("app", got=("orders", 0))
    with pytest.raises(ControlError, match="404"):
        control.trace.why("app", lost=("orders", 0))
    followed = control.trace.follow(group="app")
    assert [next(followed).seq for _ in range(3)] == [each.seq for each in trace.entries(group="app")[:3]]
    followed.close()
    with pytest.raises(ControlError, match="there is no event"):
        next(control.trace.follow(event="Nonsense"))


def test_who_follows_the_trace_of_a_broker_hears_of_its_end(control: ControlClient) -> None:
    name = control.read(dict[str, Any], "POST", "/brokers", {"topics": {"a": 1}})["name"]
    with control.broker(name) as kafka:
        kafka.add_partitions("a", 1)
        followed = kafka.trace.follow()
        assert next(followed).event == "trace.RequestReceived"
        control.delete_broker(name)
        assert [each.event for each in followed] == ["trace.ResponseSent"]


def test_without_the_token_it_is_refused(served: Served) -> None:
    with ControlClient(served.url) as control, pytest.raises(ControlError, match="401 Unauthorized: a token is needed"):
        control.status()
