"""Fault rules over HTTP, and rules for appends."""

import asyncio

import pytest

from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import MetadataRequest
from groupcoord.testing import Cluster
from groupcoord.testing.manual_classic_member import ManualMember
from tests.control.support import Control, controlled

pytestmark = pytest.mark.asyncio


async def joined(kafka: Cluster) -> ManualMember:
    member = kafka.manual_member("app", "orders")
    await member.join()
    await member.sync()
    return member


async def test_a_rule_ends_a_broker() -> None:
    async with controlled(brokers=3, topics={"orders": 1}) as control:
        rule = {"when": "Metadata", "do": "kill_broker", "broker_id": 3, "moment": "handled"}
        assert (await control.post("/faults", rule, 201))["rule"] == rule
        await control.kafka.ask_broker(1, MetadataRequest())
        assert (await control.get("/faults/1"))["uses"] == 1
        assert (await control.get("/nodes/3"))["condition"] == "stopped"
        problem = await control.post("/faults", {**rule, "broker_id": 9}, 422)
        assert problem["detail"] == "broker_id: there is no broker 9: the ids are 1, 2, 3"
        cut = {"when": "any", "do": "cut_off_broker", "peer": "clients", "broker_id": 2, "optional": True}
        assert (await control.post("/faults", cut, 201))["rule"] == cut


async def test_a_rule_acts_and_is_shown_with_its_uses(control: Control) -> None:
    member = await joined(control.kafka)
    data = {"when": "Heartbeat", "group": "app", "do": "refuse", "code": "REBALANCE_IN_PROGRESS", "times": 2}
    rule = await control.post("/faults", {**data, "name": "again"}, 201)
    assert (rule["id"], rule["name"], rule["rule"], rule["uses"], rule["limit"]) == (1, "again", data, 0, 2)
    assert "again never acted" in rule["why_unused"]
    waiting = asyncio.ensure_future(control.get("/faults/1/wait", acted=2, timeout="60s"))
    for _ in range(2):
        assert await member.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert (await waiting)["uses"] == 2
    shown = await control.get("/faults/1")
    assert (shown["uses"], shown["why_unused"]) == (2, None)
    assert await control.get("/faults") == [shown]
    problem = await control.get("/faults/1/wait", 504, acted=3, timeout="1ms")
    assert "again: it acted 2 of 3 times within 0.001 s" in problem["detail"]


async def test_rules_are_removed(control: Control) -> None:
    for _ in range(3):
        await control.post("/faults", {"when": "any", "do": "drop"}, 201)
    await control.told("DELETE", "/faults/2", None, 204)
    assert [each["is_removed"] for each in await control.get("/faults")] == [False, True, False]
    await control.told("DELETE", "/faults", None, 204)
    assert all(each["is_removed"] for each in await control.get("/faults"))
    assert (await control.get("/faults/4", 404))["detail"] == "there is no fault rule 4: they are 1 to 3"
    await control.post("/reset")
    assert (await control.get("/faults/1", 404))["detail"] == "there is no fault rule 1: there are none"


async def test_every_problem_of_a_rule_is_told(control: Control) -> None:
    problem = await control.post("/faults", {"when": "Hearbeat", "do": "refuse", "cod": "X"}, 422)
    told = {each["field"]: each["problem"] for each in problem["errors"]}
    assert told["when"] == "there is no API 'Hearbeat'; did you mean Heartbeat?"
    assert told["cod"] == "there is no such field; did you mean code?"
    assert told["code"].startswith("refuse needs it")
    problem = await control.post("/faults", {}, 422)
    assert {each["field"] for each in problem["errors"]} == {"when", "do"}
    problem = await control.post("/faults", {"when": "any", "do": "drop", "name": 5}, 422)
    assert [each["field"] for each in problem["errors"]] == ["name"]


async def test_requests_are_held_and_go_on_in_the_given_order(control: Control) -> None:
    one, two = control.kafka.manual_member("a", "orders"), control.kafka.manual_member("b", "orders")
    await control.post("/faults", {"when": "JoinGroup", "do": "hold", "times": 2}, 201)
    joins = [asyncio.ensure_future(member.join()) for member in (one, two)]
    held = (await control.get("/faults/1/wait", held=2, timeout="60s"))["waiting"]
    assert [(each["api"], each["groups"], each["members"]) for each in held] == [
        ("JoinGroup", ["a"], [""]),
        ("JoinGroup", ["b"], [""]),
    ]
    assert await control.get("/faults/1/waiting") == held
    problem = await control.post("/faults/1/release", {"order": [0, 2]}, 422)
    assert problem["errors"][0]["field"] == "order"
    assert (await control.post("/faults/1/release", {"order": [1]}))["waiting"] == held[:1]
    await control.post("/faults/1/release", {"order": [0]})
    assert (await control.post("/faults/1/release"))["waiting"] == []
    await asyncio.gather(*joins)


async def test_what_holds_nothing_is_not_released(control: Control) -> None:
    await control.post("/faults", {"when": "Heartbeat", "do": "drop"}, 201)
    assert "rule 1 holds nothing back" in (await control.get("/faults/1/waiting", 409))["detail"]
    assert "rule 1 holds nothing back" in (await control.get("/faults/1/wait", 409, held=1))["detail"]
    assert "rule 1 holds nothing back" in (await control.post("/faults/1/release", None, 409))["detail"]
    problem = await control.get("/faults/1/wait", 422)
    assert problem["detail"] == "query: one of acted and held: how many times it should have"


async def test_it_is_explained_what_rules_would_do(control: Control) -> None:
    await control.post("/faults", {"when": "Heartbeat", "group": "app", "do": "drop"}, 201)
    request = {"group_id": "other", "generation_id": 1, "member_id": "m"}
    body = {"api": "Heartbeat", "request": request, "client_id": "c"}
    assert "rule 1, when(Heartbeat, group='app').drop(): no" in await control.post("/faults/explain", body)
    body["request"] = {**request, "group_id": "app"}
    assert "rule 1, when(Heartbeat, group='app').drop(): yes" in await control.post("/faults/explain", body)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"api": "Hearbeat"}, "api"),
        ({"api": "Heartbeat", "request": {"group": "app"}}, "request.group"),
        ({"api": "Heartbeat", "request": {"group_id": 5, "generation_id": 1, "member_id": ""}}, "request.group_id"),
        ({"api": "Heartbeat", "version": 99}, "version"),
    ],
)
async def test_a_request_that_cannot_be_is_not_explained(control: Control, body: object, field: str) -> None:
    assert field in [each["field"] for each in (await control.post("/faults/explain", body, 422))["errors"]]


# Appends.


async def test_appends_fail(control: Control) -> None:
    rule = await control.post("/appends", {"do": "fail", "error": "MESSAGE_TOO_LARGE", "group": "app"}, 201)
    assert (rule["id"], rule["do"], rule["error"], rule["group"], rule["left"]) == (
        1,
        "fail",
        "MESSAGE_TOO_LARGE",
        "app",
        1,
    )
    offsets = {"offsets": [{"topic": "orders", "partition": 0, "offset": 1}]}
    problem = await control.told("PUT", "/groups/app/offsets", offsets, 409)
    assert "orders-0 is refused" in problem["detail"]
    assert (await control.get("/appends/1/wait", acted=1))["uses"] == 1
    await control.told("DELETE", "/appends/1", None, 204)
    assert [each["is_removed"] for each in await control.get("/appends")] == [True]


@pytest.mark.slow
async def test_appends_are_held_and_stored_or_failed(control: Control) -> None:
    rule = await control.post("/appends", {"do": "hold", "times": 2}, 201)
    assert (rule["do"], rule["error"], rule["held"]) == ("hold", None, 0)
    committing = asyncio.ensure_future(control.put_offset("app", 1))
    assert (await control.get("/appends/1/wait", held=1, timeout="60s"))["held"] == 1
    assert (await control.post("/appends/1/release"))["held"] == 0
    await committing
    offsets = {"offsets": [{"topic": "orders", "partition": 0, "offset": 2}]}
    failing = asyncio.ensure_future(control.told("PUT", "/groups/app/offsets", offsets, 409))
    await control.get("/appends/1/wait", held=1, timeout="60s")
    assert "there is no error" in (await control.post("/appends/1/fail", {"error": "NO_SUCH"}, 422))["detail"]
    assert (await control.post("/appends/1/fail", {"error": "NOT_LEADER_OR_FOLLOWER"}))["held"] == 0
    assert "NOT_COORDINATOR" in (await failing)["detail"]
    assert (await control.get("/appends/1"))["left"] == 0
    assert "nothing within" not in (await control.get("/appends/1/wait", 504, acted=3, timeout="1ms"))["detail"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"do": "fail"}, "error"),
        ({"do": "hold", "error": "MESSAGE_TOO_LARGE"}, "error"),
        ({"do": "fail", "error": "NO_SUCH"}, "error"),
        ({"do": "hold", "group": "a", "transactional_id": "b"}, "transactional_id"),
        ({"do": "lose"}, "do"),
    ],
)
async def test_a_rule_for_appends_that_cannot_be_is_refused(control: Control, body: object, field: str) -> None:
    assert [each["field"] for each in (await control.post("/appends", body, 422))["errors"]] == [field]


async def test_a_rule_that_fails_appends_holds_none(control: Control) -> None:
    assert (await control.get("/appends/1", 404))["detail"] == "there is no rule 1 for appends: there are none"
    await control.post("/appends", {"do": "fail", "error": "MESSAGE_TOO_LARGE"}, 201)
    assert (await control.get("/appends/2", 404))["detail"] == "there is no rule 2 for appends: they are 1 to 1"
    assert "rule 1 holds nothing back" in (await control.get("/appends/1/wait", 409, held=1))["detail"]
    assert (await control.get("/appends/1/wait", 422))["errors"][0]["field"] == "query"
