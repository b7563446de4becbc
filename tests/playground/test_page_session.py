"""What the page asks, and what it is answered."""

import json
from typing import Any

import pytest

from groupcoord.playground.page_session import PageSession
from groupcoord.playground.socketless_cluster import CallbackLoop


class Page:
    def __init__(self) -> None:
        self._session = PageSession()

    def asks(self, what: str, **arguments: Any) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._session.answer(json.dumps({"ask": what, **arguments})))
        return found


@pytest.fixture
def page() -> Page:
    return Page()


def test_the_contents_are_lessons_and_actions(page: Page) -> None:
    contents = page.asks("contents")
    assert len(contents["lessons"]) >= 7
    assert contents["actions"]["advance"]["arguments"] == {
        "seconds": {"type": "a number, such as 46 or 0.5", "choices": [], "required": True, "default": None}
    }
    assert contents["actions"]["add_member"]["arguments"]["assignors"]["choices"] == [
        "range",
        "roundrobin",
        "sticky",
        "cooperative-sticky",
    ]


def test_a_lesson_goes_forward_step_by_step_and_back_from_the_beginning(page: Page) -> None:
    first = page.asks("lesson", name="protocols", steps=1)
    second = page.asks("lesson", name="protocols", steps=2)
    assert first["header"]["schema"] == "groupcoord-trace"
    assert "header" not in second
    assert second["entries"][0]["seq"] == first["entries"][-1]["seq"] + 1
    back = page.asks("lesson", name="protocols", steps=1)
    assert back["entries"] == first["entries"]
    assert back["snapshot"] == first["snapshot"]


def test_the_beginning_of_a_lesson_is_a_cluster_to_which_nothing_was_done(page: Page) -> None:
    begun = page.asks("lesson", name="protocols", steps=0)
    assert begun["snapshot"]["groups"] == {}
    assert "expectations" not in begun


def test_a_lesson_that_was_disturbed_begins_again(page: Page) -> None:
    page.asks("lesson", name="protocols", steps=1)
    page.asks("act", action="produce", arguments={"topic": "orders"})
    second = page.asks("lesson", name="protocols", steps=2)
    assert "header" in second
    assert not any("Produce" in each["text"] for each in second["entries"])


def test_a_lesson_that_there_is_not_is_refused(page: Page) -> None:
    assert page.asks("lesson", name="cooking", steps=1) == {"error": "there is no lesson 'cooking'"}
    assert page.asks("lesson", name="sticky", steps=99) == {"error": "lesson sticky has 5 steps, and not 99"}


def test_free_play_can_be_done_again_without_its_last_action(page: Page) -> None:
    add = {"do": "add_member", "group": "app", "topics": ["orders"]}
    page.asks("begin", setup={"brokers": 1})
    one = page.asks("act", action="add_member", arguments={"group": "app", "topics": ["orders"]})
    page.asks("act", action="advance", arguments={"seconds": 3})
    again = page.asks("begin", setup={"brokers": 1}, actions=[add])
    assert again["snapshot"] == one["snapshot"]
    assert "began at 0.0 s" in page.asks("why", question={"group": "app"})["text"]
    asked = next(each["seq"] for each in again["entries"] if each["event"] == "trace.RequestReceived")
    assert page.asks("bytes", seq=asked)["dissection"]["fields"]


def test_what_is_refused_is_an_error_in_words_and_nothing_has_changed(page: Page) -> None:
    assert page.asks("act", action="kill", arguments={"member": "z"}) == {
        "error": "member='z': no member is called so; there is none yet"
    }
    assert page.asks("begin", setup={"brokers": 0})["error"].startswith("brokers=0")
    assert page.asks("act", action="advance", arguments={"seconds": 1})["snapshot"]["now_ms"] == 1_767_225_601_000


def test_a_loop_of_callbacks_lets_the_time_of_a_timer_pass_at_once() -> None:
    loop = CallbackLoop()
    loop.call_later(5, loop.stop)
    loop.run_forever()
    assert loop.time() == 5.0
    with pytest.raises(RuntimeError, match="every task waits"):
        loop.run_forever()
    loop.close()
