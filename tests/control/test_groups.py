"""Groups over HTTP: what they are, waits, and what an operator does."""

import asyncio

import pytest

from groupcoord.control.escaped_slashes import NameConvertor
from tests.control.support import Control, controlled

pytestmark = pytest.mark.asyncio


async def test_a_group_is_shown_with_its_members(control: Control) -> None:
    a, b = await control.kafka.consumers(2, "app", "orders")
    group = await control.get("/groups/app")
    assert (group["type"], group["state"], group["protocol"]) == ("classic", "Stable", "range")
    assert group["generation"] == a.generation
    assert {each["member_id"] for each in group["members"]} == {a.member_id, b.member_id}
    assigned = [partition for each in group["members"] for partition in each["assigned"]]
    assert sorted(each["partition"] for each in assigned) == [0, 1]
    assert await control.get("/groups/app/members") == group["members"]
    assert await control.get("/groups") == [group]
    assert (await control.get("/groups/none"))["state"] == "Dead"


async def test_a_name_may_have_a_slash(control: Control) -> None:
    await control.put_offset("a%2Fb%20c", 3)
    assert control.kafka.group_names() == ["a/b c"]
    assert (await control.get("/groups/a%2fb%20c/wait", empty=True))["group"] == "a/b c"
    assert (await control.get("/brokers/default/groups/a%2Fb%20c"))["group"] == "a/b c"
    assert NameConvertor().convert(NameConvertor().to_string("a/b c")) == "a/b c"
    assert "/groups/{group}/wait" in (await control.get("/groups/a%2Fb/wiat", 404))["detail"]


async def test_offsets_are_committed_shown_and_deleted(control: Control) -> None:
    offsets = [{"topic": "orders", "partition": number, "offset": 5 + number} for number in range(2)]
    assert await control.told("PUT", "/groups/app/offsets", {"offsets": offsets}) == offsets
    assert await control.get("/groups/app/offsets") == offsets
    await control.post("/topics/orders/records", {"records": [{"value": "a", "partition": 0}]}, 201)
    assert await control.get("/groups/app/lag") == [
        {"topic": "orders", "partition": 0, "lag": -4},
        {"topic": "orders", "partition": 1, "lag": -6},
    ]
    assert await control.told("DELETE", "/groups/app/offsets", None, 204, partition="orders:0") is None
    assert await control.get("/groups/app/offsets") == offsets[1:]
    assert await control.told("DELETE", "/groups/app", None, 204) is None
    assert "there is no group 'app'" in (await control.get("/groups/app/lag", 404))["detail"]
    assert "GROUP_ID_NOT_FOUND" in (await control.told("DELETE", "/groups/app", None, 409))["detail"]


async def test_offsets_that_cannot_be_are_refused(control: Control) -> None:
    wrong = {"offsets": [{"topic": "orders", "partition": 0, "offset": -1}]}
    problem = await control.told("PUT", "/groups/app/offsets", wrong, 422)
    assert problem["errors"][0]["field"] == "offsets.0.offset"
    problem = await control.told("DELETE", "/groups/app/offsets", None, 422, partition="orders")
    assert problem["detail"] == "partition: 'orders' is no TOPIC:PARTITION, such as orders:3"
    await control.kafka.consumers(1, "app", "orders")
    offsets = {"offsets": [{"topic": "orders", "partition": 0, "offset": 1}]}
    assert "It has members" in (await control.told("PUT", "/groups/app/offsets", offsets, 409))["detail"]


@pytest.mark.parametrize(
    "condition",
    [
        {"stable": "2"},
        {"stable": "any", "generation": "1"},
        {"generation": "1"},
        {"committed": "orders:0:3"},
    ],
)
async def test_a_wait_is_answered_when_it_is_so(control: Control, condition: dict[str, str]) -> None:
    waiting = asyncio.ensure_future(control.get("/groups/app/wait", 200, timeout="60s", **condition))
    await control.begun(waiting)
    assert not waiting.done()
    await control.put_offset("app", 3)
    await control.kafka.consumers(2, "app", "orders")
    assert (await waiting)["group"] == "app"


async def test_a_group_that_rebalances_is_empty_and_is_gone_is_waited_for(control: Control) -> None:
    rebalancing = await control.begun(asyncio.ensure_future(control.get("/groups/app/wait", rebalancing=True)))
    (member,) = await control.kafka.consumers(1, "app", "orders")
    assert (await rebalancing)["state"] in {"PreparingRebalance", "CompletingRebalance"}
    empty = asyncio.ensure_future(control.get("/groups/app/wait", empty=True))
    await control.post("/groups/app/remove-member", {"member": member.member_id})
    assert (await empty)["members"] == []
    member.vanish()
    await control.told("DELETE", "/groups/app", None, 204)
    assert (await control.get("/groups/app/wait", dead=True))["state"] == "Dead"


async def test_consumer_groups_are_waited_for(control: Control) -> None:
    (member,) = await control.kafka.consumers(1, "app", "orders", protocol="consumer")
    group = await control.get("/groups/app/wait", epoch=1)
    assert (group["type"], group["generation"]) == ("consumer", -1)
    (seen,) = group["members"]
    assert seen["epoch"] == group["epoch"] == group["assignment_epoch"]
    assert seen["assigned"] == seen["target"]
    assert (await control.get("/groups/app/wait", reconciled="all"))["epoch"] == group["epoch"]
    assert (await control.get("/groups/app/wait", reconciled=member.member_id, epoch=1))["state"] == "Stable"


async def test_a_wait_in_vain_says_what_the_group_waits_for(control: Control) -> None:
    member = control.kafka.manual_member("app", "orders")
    joining = asyncio.ensure_future(member.join())
    await control.get("/groups/app/wait", rebalancing=True)
    problem = await control.get("/groups/app/wait", 504, stable=1, timeout="1ms")
    assert problem["detail"].startswith("group app should be stable with 1 member: not within 0.001 s. It is app ")
    assert any("group app waits for" in reason for reason in problem["reasons"])
    assert problem["reasons"][-1].startswith("the clock is manual and shows 0.0 s: POST /clock/advance")
    member.vanish()
    joining.cancel()


@pytest.mark.parametrize(
    ("query", "field", "said"),
    [
        ({}, "query", "no condition is given: one of stable, reconciled"),
        ({"empty": "true", "dead": "true"}, "query", "empty and dead do not go together"),
        ({"stable": "three"}, "stable", "pattern"),
        ({"committed": "orders:0:x"}, "committed", "is no TOPIC:PARTITION:OFFSET"),
        ({"committed": "orders:5"}, "committed", "is no TOPIC:PARTITION"),
        ({"dead": "true", "timeout": "soon"}, "timeout", "'soon' is not a time: 10s, 500ms and 2m are"),
        ({"dead": "true", "timeout": "11m"}, "timeout", "11m is too long"),
        ({"dead": "true", "tiemout": "1s"}, "tiemout", "there is no such parameter; did you mean timeout?"),
    ],
)
async def test_a_wait_that_is_asked_wrongly_is_refused(
    control: Control, query: dict[str, str], field: str, said: str
) -> None:
    problem = await control.get("/groups/app/wait", 422, **query)
    (error,) = problem["errors"]
    assert error["field"] == field
    assert said in error["problem"]


async def test_a_wait_ends_when_the_process_does(control: Control) -> None:
    waiting = asyncio.ensure_future(control.get("/groups/app/wait", 503, stable=1, timeout="10m"))
    await control.begun(waiting)
    control.clusters.end_waits()
    assert (await waiting)["detail"] == "the broker ends"


async def test_an_operator_removes_expires_and_fences_members(control: Control) -> None:
    a, b = await control.kafka.consumers(2, "app", "orders", instance_ids=["one", "two"])
    problem = await control.post("/groups/app/expire-member", {"member": "nobody"}, 404)
    assert "no member called 'nobody'" in problem["detail"]
    a.vanish()
    await control.post("/groups/app/expire-member", {"member": "one"})
    assert [each["instance_id"] for each in (await control.get("/groups/app"))["members"]] == ["two"]
    await control.post("/groups/app/fence-member", {"instance_id": "two"})
    assert (await control.get("/groups/app/members"))[0]["member_id"] != b.member_id
    assert "'three'" in (await control.post("/groups/app/fence-member", {"instance_id": "three"}, 409))["detail"]


async def test_a_rebalance_is_forced_with_a_reason(control: Control) -> None:
    await control.kafka.consumers(1, "app", "orders")
    assert (await control.post("/groups/app/force-rebalance"))["state"] == "PreparingRebalance"
    await control.kafka.clock.advance(4)
    await control.post("/groups/app/force-rebalance", {"reason": "I say so"})
    assert "I say so" in await control.get("/trace/text", group="app")


async def test_a_coordinator_is_unloaded_loaded_and_moved() -> None:
    async with controlled(brokers=2) as control:
        await control.put_offset("app", 1)
        assert (await control.post("/groups/app/unload-coordinator"))["state"] == "NOT_COORDINATOR"
        assert (await control.post("/groups/app/load-coordinator"))["state"] == "Empty"
        assert "already" in (await control.post("/groups/app/load-coordinator", None, 409))["detail"]
        for to in (1, 2):
            assert (await control.post("/groups/app/move-coordinator", {"to": to}))["state"] == "Empty"
        assert (await control.post("/groups/app/move-coordinator", {"to": 9}, 422))["errors"][0]["field"] == "to"
