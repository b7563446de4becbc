"""Brokers over HTTP: status, isolation, resets, stops."""

import asyncio
import socket
from pathlib import Path

import pytest

from groupcoord.testing import Cluster
from groupcoord.testing.faults.rule import when
from groupcoord.testing.faults.rule_file import NamedRule
from tests.control.support import Control, controlled

pytestmark = pytest.mark.asyncio


async def test_the_status_says_where_it_listens_and_what_it_has(control: Control) -> None:
    await control.kafka.consumers(1, "app", "orders")
    seen = await control.get("/status")
    assert seen["address"] == control.kafka.address
    assert seen["brokers"] == [{"id": 1, "address": control.kafka.address, "rack": None}]
    assert (seen["name"], seen["state"], seen["run"]) == ("default", "up", 1)
    assert seen["clock"] == {"mode": "manual", "now_ms": control.kafka.clock.now_ms(), "speed": None}
    assert seen["topics"] == ["orders"]
    assert seen["groups"] == [{"group": "app", "state": "Stable"}]
    assert any("sessions end" in line for line in seen["pending"])
    assert seen["last_seq"] == control.kafka.trace.last_seq > 0
    assert await control.get("/") == seen == await control.get("/brokers/default")


@pytest.mark.slow
async def test_further_brokers_have_nothing_in_common(control: Control) -> None:
    made = await control.post("/brokers", {"topics": {"a": 3, "b": {"partitions": 2}}, "clock": "real"}, 201)
    assert made["name"] == "broker-2"
    assert made["address"] != control.kafka.address
    assert (made["topics"], made["clock"]["mode"]) == (["a", "b"], "real")
    await control.post("/brokers/broker-2/topics", {"name": "c"}, 201)
    assert (await control.get("/status"))["topics"] == ["orders"]
    assert (await control.get("/brokers/broker-2/status"))["topics"] == ["a", "b", "c"]
    assert [each["name"] for each in await control.get("/brokers")] == ["default", "broker-2"]
    fast = await control.post("/brokers", {"name": "fast", "clock": "fast", "speed": 5.0, "brokers": 2}, 201)
    assert (fast["clock"]["mode"], fast["clock"]["speed"], len(fast["brokers"])) == ("fast", 5.0, 2)
    assert await control.told("DELETE", "/brokers/broker-2") == {"problems": []}
    assert [each["name"] for each in await control.get("/brokers")] == ["default", "fast"]
    assert (await control.post("/brokers", {}, 201))["name"] == "broker-2"


@pytest.mark.parametrize(
    ("body", "field", "said"),
    [
        ({"topics": {"a b": 1}}, "topics", "contains one or more characters"),
        ({"topics": {"a": {"configs": {"cleanup.polcy": "x"}}}}, "topics", "did you mean cleanup.policy"),
        ({"config": {"group.max.sze": 2}}, "config.group.max.sze", "did you mean group.max.size?"),
        ({"racks": ["a", "b"]}, "racks", "more racks (2) than brokers (1)"),
        ({"features": {"transaction.versoin": 1}}, "features", "transaction.version"),
        ({"clock": "virtual"}, "clock", "'real', 'manual' or 'fast'"),
        ({"brokers": 0}, "brokers", "greater than or equal to 1"),
        ({"name": "a/b"}, "name", "pattern"),
        ({"toppics": {}}, "toppics", "there is no such field; did you mean topics?"),
        ({"topics": {"a": {"partitoins": 1}}}, "topics.a.partitoins", "did you mean partitions?"),
    ],
)
async def test_a_broker_that_cannot_be_is_refused_with_its_field(
    control: Control, body: dict[str, object], field: str, said: str
) -> None:
    problem = await control.post("/brokers", body, 422)
    told = {each["field"]: each["problem"] for each in problem["errors"]}
    assert said in told[field]
    assert len(await control.get("/brokers")) == 1


async def test_names_of_brokers_are_taken_once_and_the_nearest_is_named(control: Control) -> None:
    await control.post("/brokers", {"name": "a"}, 201)
    assert (await control.post("/brokers", {"name": "a"}, 409))["detail"] == "there is a broker 'a' already"
    assert "did you mean default?" in (await control.get("/brokers/defautl/status", 404))["detail"]
    assert "ends with the process" in (await control.told("DELETE", "/brokers/default", None, 409))["detail"]


async def test_a_port_that_is_taken_leaves_no_broker(control: Control) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        problem = await control.post("/brokers", {"port": port}, 503)
    assert f"cannot listen on 127.0.0.1:{port}" in problem["detail"]
    assert len(await control.get("/brokers")) == 1


async def test_a_reset_makes_a_fresh_broker_and_tells_what_never_acted(control: Control) -> None:
    address, began_ms = control.kafka.address, control.kafka.clock.now_ms()
    await control.post("/topics", {"name": "more"}, 201)
    await control.put_offset("app", 1)
    await control.post("/clock/advance", {"seconds": 5})
    await control.post("/faults", {"when": "Heartbeat", "do": "drop"}, 201)
    await control.post("/appends", {"do": "hold", "group": "other"}, 201)
    checked = await control.post("/check")
    told = await control.post("/reset")
    assert told == checked
    rule, append = told["problems"]
    assert rule.startswith("rule 1 never acted: when(Heartbeat).drop()")
    assert append == "nothing was appended that this rule is for: hold_append of group other"
    seen = await control.get("/status")
    assert (seen["address"], seen["topics"], seen["groups"], seen["run"]) == (address, ["orders"], [], 2)
    assert (seen["clock"]["now_ms"], seen["last_seq"]) == (began_ms, 0)
    assert (await control.get("/appends"), await control.get("/faults")) == ([], [])
    assert await control.post("/reset") == {"problems": []}


async def test_the_end_of_a_broker_tells_what_never_acted_and_what_failed(control: Control) -> None:
    await control.post("/brokers", {"name": "a"}, 201)
    await control.post("/brokers/a/faults", {"when": "Heartbeat", "do": "drop"}, 201)
    serving_loop = control.clusters["a"]._engine.server._serving_loop
    serving_loop.log_unexpected(ZeroDivisionError("a bug"), None, None)
    failed, rule = (await control.told("DELETE", "/brokers/a"))["problems"]
    assert failed == "the server failed: ZeroDivisionError: a bug"
    assert rule.startswith("rule 1 never acted: when(Heartbeat).drop()")


async def test_rules_of_a_file_are_there_again_after_a_reset() -> None:
    rule = NamedRule("a.yaml rule 1", when("Heartbeat").drop().optional())
    async with controlled(rules=[rule]) as control:
        await control.post("/reset")
        assert [each["name"] for each in await control.get("/faults")] == ["a.yaml rule 1"]


async def test_a_broker_that_keeps_its_data_is_not_reset(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with controlled(data_dir=tmp_path / "kafka") as control:
        assert "data_dir keeps what is there" in (await control.post("/reset", None, 409))["detail"]
        directory = control.kafka._engine.data_directory
        assert directory is not None
        directory.findings.append("a file was cut")
        control.kafka.watch_storage(lambda: None)
        assert "a file was cut" in caplog.text
        assert control.kafka.storage_failure is None


async def test_an_error_of_the_server_is_told_once(control: Control) -> None:
    control.kafka.clock._engine.server._serving_loop.log_unexpected(ZeroDivisionError("a bug"), None, None)
    assert await control.post("/check") == {"problems": ["the server failed: ZeroDivisionError: a bug"]}
    assert await control.post("/check") == {"problems": []}


async def test_a_broker_is_stopped_and_started_again(control: Control) -> None:
    await control.put_offset("app", 7)
    assert await control.post("/stop", None, 204) is None
    assert (await control.get("/status"))["state"] == "stopped"
    refused = await control.told("DELETE", "/groups/app", None, 409)
    assert refused["detail"] == "the broker is stopped: POST /restart starts it again"
    with pytest.raises(OSError, match=r".*"):
        await asyncio.open_connection(*_place(control.kafka))
    seen = await control.post("/restart")
    assert (seen["state"], seen["address"]) == ("up", control.kafka.address)
    _, writer = await asyncio.open_connection(*_place(control.kafka))
    writer.close()
    assert (await control.get("/groups/app/offsets"))[0]["offset"] == 7


async def test_a_port_that_is_taken_meanwhile_is_told(control: Control) -> None:
    await control.post("/stop", None, 204)
    with socket.create_server(_place(control.kafka)):
        problem = await control.post("/restart", None, 503)
    assert f"cannot listen on {control.kafka.address}" in problem["detail"]
    assert (await control.post("/restart"))["state"] == "up"


async def test_a_report_shows_the_groups(control: Control) -> None:
    await control.kafka.consumers(1, "app", "orders")
    report = await control.get("/report")
    assert "app Stable" in report
    later = await control.get("/report", after=control.kafka.trace.last_seq)
    assert len(later) < len(report)


async def test_the_health_is_told() -> None:
    async with controlled() as control:
        assert await control.get("/health") == {"status": "ok"}


def _place(kafka: Cluster) -> tuple[str, int]:
    host, _, port = kafka.address.rpartition(":")
    return host, int(port)
