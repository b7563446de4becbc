"""Transactions over HTTP."""

import asyncio

import pytest

from tests.control.support import Control, controlled

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]


async def test_a_transaction_is_shown_waited_for_and_aborted(control: Control) -> None:
    ongoing = asyncio.ensure_future(control.get("/transactions/billing/wait", ongoing="orders", timeout="60s"))
    producer = control.kafka.manual_producer("billing")
    await producer.init(transaction_timeout_ms=30_000)
    assert "only an ongoing transaction" in (await control.post("/transactions/billing/abort", None, 409))["detail"]
    await producer.produce("orders", b"one", partition=1)
    seen = await ongoing
    assert (seen["state"], seen["timeout_ms"]) == ("Ongoing", 30_000)
    assert seen["partitions"] == [{"topic": "orders", "partition": 1}]
    assert await control.get("/transactions/billing/wait", ongoing="any") == seen
    assert await control.get("/transactions") == [seen] == [await control.get("/transactions/billing")]
    await control.post("/transactions/billing/abort")
    assert (await control.get("/transactions/billing/wait", aborted=True))["state"] == "CompleteAbort"
    assert (await control.get("/transactions/billing/wait", state=["Dead", "CompleteAbort"]))["producer_epoch"] == 1
    assert "aborted" in await control.get("/trace/why", transaction="billing")


async def test_a_commit_is_waited_for(control: Control) -> None:
    producer = control.kafka.manual_producer("billing")
    await producer.init()
    await producer.produce("orders", b"one", partition=1)
    await producer.end()
    assert (await control.get("/transactions/billing/wait", committed=True))["state"] == "CompleteCommit"
    problem = await control.get("/transactions/billing/wait", 504, aborted=True, timeout="1ms")
    assert "transaction billing should be CompleteAbort: not within 0.001 s" in problem["detail"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({}, "no condition is given: one of state, ongoing, committed, aborted"),
        ({"committed": "true", "aborted": "true"}, "committed and aborted do not go together"),
        ({"state": "Commited"}, "there is no state 'Commited' of a transaction"),
    ],
)
async def test_a_wait_that_is_asked_wrongly_is_refused(control: Control, query: dict[str, str], said: str) -> None:
    assert said in (await control.get("/transactions/billing/wait", 422, **query))["detail"]


async def test_its_coordinator_is_unloaded_loaded_and_moved() -> None:
    async with controlled(brokers=2) as control:
        await control.kafka.manual_producer("billing").init()
        assert (await control.post("/transactions/billing/unload-coordinator"))["state"] == "NOT_COORDINATOR"
        assert (await control.post("/transactions/billing/load-coordinator"))["state"] == "Empty"
        for to in (1, 2):
            assert (await control.post("/transactions/billing/move-coordinator", {"to": to}))["state"] == "Empty"
        problem = await control.post("/transactions/billing/move-coordinator", {"to": 9}, 422)
        assert problem["errors"][0]["field"] == "to"
