"""The description of the API: it is valid and complete, and every operation answers as it says."""

import re
from typing import Any

import openapi_schema_validator
import pytest
from openapi_spec_validator import validate

from groupcoord.control.app import create_app
from tests.control.support import Control, controlled

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

DESCRIBED = create_app(None).openapi()  # type: ignore[arg-type] # a description needs none
OPERATIONS = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, operations in DESCRIBED["paths"].items()
    for method, operation in operations.items()
}
RECORDS = {"records": [{"value": "a", "partition": 1}]}
OFFSETS = {"offsets": [{"topic": "orders", "partition": 0, "offset": 1}]}
NAMES = {"group": "app", "topic": "orders", "transactional_id": "billing", "rule": "1", "node": "2", "name": "broker-2"}

Calls = list[tuple[str, Any, dict[str, object]]]
WITHOUT_MEMBERS: Calls = [
    ("commit_offsets", OFFSETS, {}),
    ("list_offsets", None, {}),
    ("delete_offsets", None, {"partition": "orders:0"}),
]
CALLS: Calls = [
    ("health", None, {}),
    ("status", None, {}),
    ("create_broker", {"clock": "manual"}, {}),
    ("list_brokers", None, {}),
    ("show_broker", None, {}),
    ("delete_broker", None, {}),
    ("create_topic", {"name": "more"}, {}),
    ("list_topics", None, {}),
    ("show_topic", None, {}),
    ("add_partitions", {"more": 1}, {}),
    ("move_leader", {"partition": 0, "to": 2}, {}),
    ("produce", RECORDS, {}),
    ("read_records", None, {}),
    ("wait_records", None, {"count": 1}),
    ("list_groups", None, {}),
    ("show_group", None, {}),
    ("list_members", None, {}),
    ("wait_group", None, {"stable": 2}),
    ("show_lag", None, {}),
    ("expire_member", {"member": "app-1"}, {}),
    ("fence_member", {"instance_id": "two"}, {}),
    ("force_rebalance", {"reason": "because"}, {}),
    ("unload_coordinator", None, {}),
    ("load_coordinator", None, {}),
    ("move_coordinator", {"to": 1}, {}),
    ("list_transactions", None, {}),
    ("show_transaction", None, {}),
    ("wait_transaction", None, {"state": "Ongoing"}),
    ("abort_transaction", None, {}),
    ("unload_transaction_coordinator", None, {}),
    ("load_transaction_coordinator", None, {}),
    ("move_transaction_coordinator", {"to": 1}, {}),
    ("list_deadlines", None, {}),
    ("advance_to_next", {"group": "app"}, {}),
    ("advance", {"seconds": 1000}, {}),
    ("show_clock", None, {}),
    ("add_fault", {"when": "JoinGroup", "do": "hold"}, {}),
    ("list_faults", None, {}),
    ("show_fault", None, {}),
    ("list_waiting", None, {}),
    ("release", {"order": []}, {}),
    ("explain", {"api": "Heartbeat", "request": {"group_id": "a", "generation_id": 1, "member_id": "m"}}, {}),
    ("remove_fault", None, {}),
    ("remove_faults", None, {}),
    ("add_append_rule", {"do": "hold", "group": "none"}, {}),
    ("list_append_rules", None, {}),
    ("show_append_rule", None, {}),
    ("release_appends", None, {}),
    ("fail_appends", {"error": "MESSAGE_TOO_LARGE"}, {}),
    ("remove_append_rule", None, {}),
    ("query_trace", None, {}),
    ("trace_text", None, {}),
    ("trace_mermaid", None, {}),
    ("trace_file", None, {}),
    ("why", None, {"group": "app"}),
    ("report", None, {}),
    ("check", None, {}),
    ("stop", None, {}),
    ("restart", None, {}),
    ("reset", None, {}),
    ("list_nodes", None, {}),
    ("stop_node", None, {}),
    ("start_node", None, {}),
    ("pause_node", None, {}),
    ("resume_node", None, {}),
    ("pause_replication_at_node", None, {}),
    ("resume_replication_at_node", None, {}),
    ("cut_off_node", None, {"peer": "controller"}),
    ("reconnect_node", None, {"peer": "controller"}),
    ("wait_node", None, {"running": "true"}),
    ("slow_disk_of_node", None, {"seconds": 0.5}),
    ("kill_node", None, {}),
    ("lose_disk_of_node", None, {}),
    ("unregister_node", None, {}),
    ("show_node", None, {}),
    ("pause_controller", None, {}),
    ("resume_controller", None, {}),
    ("kill_controller", None, {}),
    ("start_controller", None, {}),
    ("show_controller", None, {}),
    ("delete_topic", None, {}),
]
"""The operations, in an order in which each can be done, with body and parameters."""
ELSEWHERE = {
    "wait_fault": "test_faults",
    "wait_append_rule": "test_faults",
    "remove_member": "test_groups",
    "delete_group": "test_groups",
    "trace_stream": "test_trace_stream",
}
"""What needs somebody who acts meanwhile."""


@pytest.mark.untraced
async def test_the_description_is_valid() -> None:
    validate(DESCRIBED)
    assert DESCRIBED["openapi"].startswith("3.1")


async def test_the_description_is_made_once() -> None:
    app = create_app(None)  # type: ignore[arg-type] # a description needs none
    assert app.openapi() is app.openapi()


async def test_every_operation_says_what_it_is_and_takes_and_answers() -> None:
    for name, (_, path, operation) in OPERATIONS.items():
        assert operation["summary"], name
        assert operation["description"], name
        assert [each["name"] for each in operation.get("parameters", ()) if not each.get("description")] == [], name
        assert "422" in operation["responses"], name
        assert set(re.findall(r"{(\w+)}", path)) <= {each["name"] for each in operation.get("parameters", ())}, name


async def test_every_operation_is_called_in_a_test() -> None:
    assert {name for name, _, _ in WITHOUT_MEMBERS + CALLS} | ELSEWHERE.keys() == OPERATIONS.keys()


async def test_every_operation_answers_as_described() -> None:
    async with controlled(brokers=2) as control:
        for name, body, query in WITHOUT_MEMBERS:
            await answers_as_described(control, name, body, query)
        await control.kafka.consumers(2, "app", "orders", instance_ids=["one", "two"])
        producer = control.kafka.manual_producer("billing")
        await producer.init()
        await producer.produce("orders", b"one", partition=0)
        for name, body, query in CALLS:
            await answers_as_described(control, name, body, query)


async def answers_as_described(control: Control, name: str, body: object, query: dict[str, object]) -> None:
    method, path, operation = OPERATIONS[name]
    (done,) = [status for status in operation["responses"] if status < "300"]
    answer = await control.ask(method, path.format_map(NAMES), body, **query)
    assert str(answer.status_code) == done, (name, answer.text)
    content = operation["responses"][done].get("content", {})
    if not content:
        assert answer.content == b"", name
        return
    (kind,) = content
    assert answer.headers["content-type"].partition(";")[0] == kind, name
    if kind == "application/json":
        schema = {"components": DESCRIBED["components"], **content[kind]["schema"]}
        openapi_schema_validator.OAS31Validator(schema).validate(answer.json())


async def test_a_problem_is_as_described(control: Control) -> None:
    problem = await control.get("/groups/app/wait", 422)
    schema = {"components": DESCRIBED["components"], "$ref": "#/components/schemas/Problem"}
    openapi_schema_validator.OAS31Validator(schema).validate(problem)
    assert (await control.get("/openapi.json"))["info"] == DESCRIBED["info"]
