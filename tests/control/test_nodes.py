"""The brokers of a cluster over HTTP: stopped, killed, paused, started, and what the controller makes of it."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.control.support import Control, controlled

pytestmark = pytest.mark.asyncio

SESSION_S = 9


@pytest_asyncio.fixture
async def trio() -> AsyncIterator[Control]:
    config = {"default.replication.factor": 3, "offsets.topic.num.partitions": 3}
    async with controlled(brokers=3, racks=("a", "b", "c"), topics={"orders": 3}, config=config) as control:
        yield control


async def advance(control: Control, seconds: float) -> None:
    await control.post("/clock/advance", {"seconds": seconds})


async def leader(control: Control) -> int:
    found: int = (await control.get("/topics/orders"))["partitions"][0]["leader"]
    return found


async def test_brokers_are_listed_with_what_they_do(trio: Control) -> None:
    listed = await trio.get("/nodes")
    assert [(each["id"], each["rack"], each["state"], each["fenced"]) for each in listed] == [
        (1, "a", "running", False),
        (2, "b", "running", False),
        (3, "c", "running", False),
    ]
    assert [each["address"] for each in listed] == [each["address"] for each in (await trio.get("/status"))["brokers"]]
    assert await trio.get("/nodes/2") == listed[1] == await trio.get("/brokers/default/nodes/2")


async def test_a_broker_that_stops_hands_over_and_starts_at_once(trio: Control) -> None:
    node = await leader(trio)
    stopped = await trio.post(f"/nodes/{node}/stop")
    assert (stopped["state"], stopped["fenced"]) == ("stopped", True)
    assert await leader(trio) != node
    started = await trio.post(f"/nodes/{node}/start")
    assert (started["state"], started["fenced"]) == ("running", False)


async def test_a_broker_that_is_killed_is_fenced_when_its_session_ends(trio: Control) -> None:
    node = await leader(trio)
    killed = await trio.post(f"/nodes/{node}/kill")
    assert (killed["state"], killed["fenced"]) == ("stopped", False)
    assert await leader(trio) == node
    fenced = await trio.begun(asyncio.ensure_future(trio.get(f"/nodes/{node}/wait", fenced=True, timeout="60s")))
    await advance(trio, SESSION_S)
    assert (await fenced)["fenced"]
    assert await leader(trio) != node


async def test_a_broker_that_was_killed_starts_when_its_session_has_ended(trio: Control) -> None:
    await trio.post("/nodes/2/kill")
    assert (await trio.post("/nodes/2/start"))["state"] == "starting"
    running = await trio.begun(asyncio.ensure_future(trio.get("/nodes/2/wait", running=True, timeout="60s")))
    await advance(trio, SESSION_S)
    assert (await running)["state"] == "running"


async def test_a_broker_that_pauses_goes_on(trio: Control) -> None:
    assert (await trio.post("/nodes/3/pause"))["state"] == "paused"
    await advance(trio, SESSION_S)
    assert (await trio.get("/nodes/3"))["fenced"]
    assert (await trio.post("/nodes/3/resume"))["state"] == "running"


async def test_what_is_written_waits_for_a_broker_that_copies_nothing(trio: Control) -> None:
    node = await leader(trio) % 3 + 1
    assert (await trio.post(f"/nodes/{node}/pause-replication"))["state"] == "running"
    records = {"records": [{"value": "an espresso", "partition": 0}]}
    writing = asyncio.ensure_future(trio.post("/topics/orders/records", records, 201))
    while not (await trio.get("/topics/orders"))["partitions"][0]["log_end_offset"]:
        await trio.kafka.settle()
    assert not writing.done()
    await trio.post(f"/nodes/{node}/resume-replication")
    assert (await writing)[0]["offset"] == 0


async def test_what_a_broker_with_a_slow_disk_appends_takes_its_time(trio: Control) -> None:
    node = await leader(trio)
    slow = await trio.post(f"/nodes/{node}/slow-disk", seconds=0.5)
    assert (slow["slow_disk_ms"], slow["condition"]) == (500, "running, slow disk: 500 ms for each append")
    records = {"records": [{"value": "an espresso", "partition": 0}]}
    writing = asyncio.ensure_future(trio.post("/topics/orders/records", records, 201))
    while not trio.kafka.core.broker.disks.is_writing(node):
        await trio.kafka.settle()
    await advance(trio, 0.499)
    assert not writing.done()
    await advance(trio, 0.001)
    assert (await writing)[0]["offset"] == 0
    assert (await trio.post(f"/nodes/{node}/slow-disk", seconds=0))["condition"] == "running"


@pytest.mark.parametrize("seconds", ["-1", "nan", "soon"])
async def test_what_is_no_time_for_an_append_is_said(trio: Control, seconds: str) -> None:
    problem = await trio.post("/nodes/2/slow-disk", None, 422, seconds=seconds)
    assert problem["errors"][0]["field"] == "seconds"


async def test_all_that_was_done_to_brokers_is_listed(trio: Control) -> None:
    await trio.post("/nodes/2/cut-off", peer=3)
    await trio.post("/nodes/2/cut-off", peer="controller")
    await trio.post("/nodes/2/pause-replication")
    await trio.post("/nodes/2/slow-disk", seconds=2)
    for verb in ("kill", "lose-disk", "unregister"):
        await trio.post(f"/nodes/1/{verb}")
    await trio.post("/nodes/3/cut-off", peer="clients")
    first, second, third = await trio.get("/nodes")
    assert (first["condition"], first["registered"]) == ("stopped, not registered, lost its disk", False)
    assert (second["cut_off_from"], second["replicating"], second["slow_disk_ms"]) == (["3", "controller"], False, 2000)
    assert second["condition"] == (
        "running, cut off from broker 3, cut off from the controller, replication paused, slow disk: 2000 ms for each append"
    )
    assert third["condition"] == "running, cut off from broker 2, cut off from the clients"
    assert [each.condition for each in trio.kafka.brokers.values()] == [
        each["condition"] for each in (first, second, third)
    ]
    assert repr(trio.kafka.broker(3)) == f"<ClusterBroker 3: {third['condition']}>"
    await trio.post("/nodes/1/start")
    await trio.post("/nodes/2/reconnect", peer=3)
    await trio.post("/nodes/2/reconnect", peer="controller")
    await trio.post("/nodes/2/resume-replication")
    await trio.post("/nodes/2/slow-disk", seconds=0)
    await trio.post("/nodes/3/reconnect", peer="clients")
    assert [each["condition"] for each in await trio.get("/nodes")] == ["running"] * 3


async def test_what_a_broker_cannot_do_in_its_state_is_a_conflict(trio: Control) -> None:
    assert (await trio.post("/nodes/2/resume", None, 409))["detail"] == "broker 2 is running: it cannot be resumed"
    await trio.post("/nodes/2/kill")
    assert (await trio.post("/nodes/2/pause", None, 409))["detail"] == "broker 2 is stopped: it cannot be paused"


async def test_a_broker_that_there_is_not_is_not_found(trio: Control) -> None:
    for method, path in (("GET", "/nodes/9"), ("POST", "/nodes/9/kill")):
        assert (await trio.told(method, path, None, 404))["detail"] == "there is no broker 9: the ids are 1, 2, 3"
    await trio.get("/nodes/9/wait", 404, running=True)
    assert (await trio.get("/nodes/two", 422))["errors"][0]["field"] == "node"


async def test_a_wait_has_one_condition_and_says_what_it_waits_for(trio: Control) -> None:
    for query in ({}, {"fenced": True, "running": True}):
        problem = await trio.get("/nodes/2/wait", 422, **query)
        assert problem["detail"] == "query: one of fenced=true and running=true"
    await trio.post("/nodes/2/kill")
    problem = await trio.get("/nodes/2/wait", 504, fenced=True, timeout="1ms")
    assert "broker 2 should be fenced: not within 0.001 s. It is stopped" in problem["detail"]


async def test_a_broker_whose_port_is_taken_meanwhile_is_stopped_until_the_port_is_free(trio: Control) -> None:
    stopped = await trio.post("/nodes/2/stop")
    host, _, port = stopped["address"].rpartition(":")
    with socket.create_server((host, int(port))):
        problem = await trio.post("/nodes/2/start", None, 503)
        assert f"cannot listen on {stopped['address']}" in problem["detail"]
        assert await trio.get("/nodes/2") == stopped
    assert (await trio.post("/nodes/2/start"))["state"] == "running"
