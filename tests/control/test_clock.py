"""The clock over HTTP."""

import pytest

from tests.control.support import Control, controlled

pytestmark = pytest.mark.asyncio


async def test_a_session_runs_out_when_time_passes(control: Control) -> None:
    member = control.kafka.manual_member("app", "orders")
    await member.join()
    await member.sync()
    (deadline,) = [each for each in await control.get("/clock/deadlines", group="app") if each["kind"] == "session"]
    assert (deadline["group"], deadline["member"], deadline["in_seconds"]) == ("app", member.member_id, 45.0)
    before = await control.get("/clock")
    after = await control.post("/clock/advance", {"seconds": 46, "heartbeats": False})
    assert after == {"mode": "manual", "now_ms": before["now_ms"] + 46_000, "speed": None}
    assert (await control.get("/groups/app"))["state"] == "Empty"


async def test_time_passes_until_the_next_deadline(control: Control) -> None:
    member = control.kafka.manual_member("app", "orders")
    await member.join()
    await member.sync()
    deadline = await control.post("/clock/advance-to-next", {"group": "app"})
    assert deadline["kind"] == "session"
    assert deadline["at_ms"] == (await control.get("/clock"))["now_ms"]
    problem = await control.post("/clock/advance-to-next", {"group": "other"}, 409)
    assert problem["detail"] == "nothing will ever happen in group other by itself"
    assert (
        "nothing will ever happen in any group" in (await control.post("/clock/advance-to-next", None, 409))["detail"]
    )
    assert await control.get("/clock/deadlines", everything=True)


@pytest.mark.parametrize("seconds", [-1, 1e12, "46"])
async def test_time_that_cannot_pass_is_refused(control: Control, seconds: object) -> None:
    problem = await control.post("/clock/advance", {"seconds": seconds}, 422)
    assert [each["field"] for each in problem["errors"]] == ["seconds"]


async def test_only_a_manual_clock_is_moved() -> None:
    async with controlled(clock="real") as control:
        problem = await control.post("/clock/advance", {"seconds": 1}, 409)
        assert "only with clock='manual'" in problem["detail"]
        assert "or --clock" in problem["detail"]
        assert (await control.get("/clock"))["mode"] == "real"
