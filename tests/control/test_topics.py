"""Topics and records over HTTP."""

import asyncio

import pytest

from tests.control.support import Control, controlled

pytestmark = pytest.mark.asyncio


async def test_topics_are_made_shown_grown_and_deleted(control: Control) -> None:
    made = await control.post("/topics", {"name": "a", "partitions": 2, "configs": {"cleanup.policy": "compact"}}, 201)
    assert (made["name"], len(made["partitions"]), made["is_internal"]) == ("a", 2, False)
    assert len((await control.post("/topics/a/partitions", {"more": 3}))["partitions"]) == 5
    assert [each["name"] for each in await control.get("/topics")] == ["a", "orders"]
    assert await control.told("DELETE", "/topics/a", None, 204) is None
    assert "there is no topic 'a'" in (await control.get("/topics/a", 404))["detail"]


async def test_topics_of_kafka_itself_are_shown_if_asked_for(control: Control) -> None:
    await control.put_offset("app", 1)
    assert [each["name"] for each in await control.get("/topics")] == ["orders"]
    found = await control.get("/topics", internal=True)
    assert [(each["name"], each["is_internal"]) for each in found] == [("orders", False), ("__consumer_offsets", True)]


@pytest.mark.parametrize(
    ("path", "body", "status", "field", "said"),
    [
        ("/topics", {"name": "orders"}, 409, None, "there is a topic 'orders' already"),
        ("/topics", {"name": "a b"}, 422, "name", "contains one or more characters"),
        ("/topics", {"name": "a", "configs": {"retention": 1}}, 422, "configs", "topics have no configuration"),
        ("/topics", {"name": "a", "partitions": 0}, 422, "partitions", "greater than or equal to 1"),
        ("/topics/ordrs/partitions", {"more": 1}, 404, None, "did you mean 'orders'?"),
        ("/topics/orders/leader", {"partition": 7, "to": 1}, 422, "partition", "there is no orders-7"),
        ("/topics/orders/leader", {"partition": 0, "to": 7}, 422, "to", "7"),
        ("/topics/orders/records", {"records": []}, 422, "records", "at least 1 item"),
        ("/topics/orders/records", {"records": [{"partition": 9}]}, 422, "records.0", "there is no orders-9"),
        ("/topics/orders/records", {"records": [{"value_base64": "!"}]}, 422, "records.0.value_base64", "not Base64"),
        ("/topics/orders/records", {"records": [{"valeu": "x"}]}, 422, "records.0.valeu", "did you mean value?"),
        (
            "/topics/orders/records",
            {"records": [{"key": "a", "key_base64": "YQ=="}]},
            422,
            "records.0",
            "key and key_base64 are both given",
        ),
    ],
)
async def test_what_cannot_be_is_refused_with_its_field(
    control: Control, path: str, body: object, status: int, field: str | None, said: str
) -> None:
    problem = await control.post(path, body, status)
    assert said in problem["detail"]
    assert [each["field"] for each in problem["errors"]] == ([] if field is None else [field])


async def test_a_partition_gets_another_leader() -> None:
    async with controlled(brokers=2) as control:
        before = (await control.get("/topics/orders"))["partitions"][0]["leader"]
        other = 3 - before
        moved = await control.post("/topics/orders/leader", {"partition": 0, "to": other})
        assert moved["partitions"][0]["leader"] == other


async def test_records_are_written_and_read_as_text_or_base64(control: Control) -> None:
    records = [
        {"value": "paid", "key": "7", "partition": 1, "timestamp_ms": 1000},
        {"value_base64": "/w==", "partition": 1, "headers": [{"key": "h", "value": "x"}, {"key": "g"}]},
        {"key": "7", "partition": 1},
    ]
    places = await control.post("/topics/orders/records", {"records": records}, 201)
    assert [(each["topic"], each["partition"], each["offset"]) for each in places] == [
        ("orders", 1, offset) for offset in range(3)
    ]
    assert places[0]["timestamp_ms"] == 1000
    first, second, third = await control.get("/topics/orders/records", partition=1)
    assert (first["value"], first["value_base64"], first["key"], first["timestamp_ms"]) == ("paid", None, "7", 1000)
    assert (second["value"], second["value_base64"], second["key"]) == (None, "/w==", None)
    assert second["headers"] == [
        {"key": "h", "value": "x", "value_base64": None},
        {"key": "g", "value": None, "value_base64": None},
    ]
    assert (third["value"], third["value_base64"]) == (None, None)
    assert await control.get("/topics/orders/records", partition=0) == []
    state = (await control.get("/topics/orders"))["partitions"][1]
    assert (state["log_start_offset"], state["log_end_offset"], state["high_watermark"]) == (0, 3, 3)


async def test_what_an_open_transaction_wrote_is_read_uncommitted(control: Control) -> None:
    producer = control.kafka.manual_producer("billing")
    await producer.init()
    await producer.produce("orders", b"one", partition=0)
    assert await control.get("/topics/orders/records") == []
    (record,) = await control.get("/topics/orders/records", isolation="read_uncommitted")
    assert record["value"] == "one"
    assert (await control.get("/topics/orders"))["partitions"][0]["last_stable_offset"] == 0


async def test_records_are_waited_for(control: Control) -> None:
    waiting = asyncio.ensure_future(control.get("/topics/orders/wait", count=2, timeout="60s"))
    await control.post("/topics/orders/records", {"records": [{"value": "a"}]}, 201)
    await control.post("/topics/orders/records", {"records": [{"value": "b"}]}, 201)
    assert sorted(each["value"] for each in await waiting) == ["a", "b"]
    problem = await control.get("/topics/orders/wait", 504, count=3, timeout="1ms")
    assert problem["detail"] == "orders should have 3 records for read_committed: not within 0.001 s. It has 2"
    assert "there is no orders-5" in (await control.get("/topics/orders/wait", 422, count=1, partition=5))["detail"]
