"""From a trace to its page: what stands in the file."""

import json
from pathlib import Path

import pytest

from groupcoord.coordinator.events import GenerationStarted
from groupcoord.dissect import dissect_request
from groupcoord.page import trace_page
from groupcoord.page.dissections import dissection_of, dissections_of
from groupcoord.page.html_embedding import PageNotBuiltError, built_page, embed
from groupcoord.page.trace_page import live_page, reasons, saved_page
from groupcoord.testing.trace import RequestReceived, ResponseSent, Trace
from tests.page.conftest import Unpack
from tests.page.test_front_end_cases import CASES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trace() -> Trace:
    return Trace.load(CASES / "baristas.jsonl")


@pytest.mark.usefixtures("built")
def test_a_saved_page_has_the_lines_of_the_trace_as_they_are(trace: Trace, unpack: Unpack) -> None:
    parts = unpack(saved_page(trace, "a <title>"))
    assert [json.loads(line) for line in parts["trace"].splitlines()] == [
        json.loads(line) for line in (CASES / "baristas.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    data = json.loads(parts["data"])
    assert (data["kind"], data["title"]) == ("saved", "a <title>")


@pytest.mark.usefixtures("built")
def test_the_same_trace_gives_the_same_page(trace: Trace) -> None:
    assert saved_page(trace, "t") == saved_page(trace, "t")


@pytest.mark.usefixtures("built")
def test_a_live_page_has_no_data(unpack: Unpack) -> None:
    assert {name: json.loads(text) for name, text in unpack(live_page("mine")).items()} == {
        "data": {"kind": "live", "title": "mine", "acts": True}
    }


def test_it_says_why_each_generation_and_epoch_began(trace: Trace) -> None:
    found = {(each["group"], each["number"], each["is_epoch"]): each for each in reasons(trace)}
    assert list(found) == [
        ("baristas", 1, False),
        ("baristas", 2, False),
        ("baristas", 3, False),
        ("modern", 2, True),
        ("modern", 3, True),
    ]
    second = found["baristas", 2, False]
    assert second["text"] == trace.why("baristas", 2)
    assert isinstance(trace[second["seq"]].event, GenerationStarted)


@pytest.mark.usefixtures("built")
def test_every_request_and_answer_has_its_bytes_field_by_field(
    trace: Trace, unpack: Unpack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_page, "PART", 10)
    parts = unpack(saved_page(trace, "t"))
    data = json.loads(parts["data"])
    places = dict(data["bytes"])
    messages = [entry for entry in trace if isinstance(entry.event, RequestReceived | ResponseSent)]
    assert sorted(places) == [entry.seq for entry in messages]
    for entry in messages:
        place = places[entry.seq]
        dissection = json.loads(parts[f"bytes-{place // 10}"])[place % 10]
        assert entry.event.api in dissection["title"]  # type: ignore[attr-defined]
        assert dissection["problem"] is None
        said = dissection_of(entry)
        assert said is not None
        assert len(said.fields) == len(dissection["fields"])


def test_messages_that_differ_in_their_correlation_ids_alone_are_dissected_once(trace: Trace) -> None:
    heartbeats = [entry for entry in trace if getattr(entry.event, "api", "") == "Heartbeat"][:4]
    found = dissections_of(heartbeats)
    assert (len(found.different), len(found.places)) == (3, 4)  # the answers are the same
    assert len(dissections_of([heartbeats[0], heartbeats[0]]).different) == 1


def test_of_many_messages_the_newest_are_dissected(trace: Trace) -> None:
    messages = [entry for entry in trace if isinstance(entry.event, RequestReceived | ResponseSent)]
    found = dissections_of(messages, most=2)
    assert list(found.places) == [messages[-1].seq, messages[-2].seq]


def test_what_is_no_message_has_no_bytes(trace: Trace) -> None:
    assert dissection_of(trace[2]) is None
    request = next(entry for entry in trace if isinstance(entry.event, RequestReceived))
    assert request.event.frame is not None  # type: ignore[attr-defined]
    assert dissection_of(request) == dissect_request(bytes.fromhex(request.event.frame), sized=True)  # type: ignore[attr-defined]


def test_nothing_in_a_trace_can_be_taken_for_html(unpack: Unpack) -> None:
    evil = "</script><script>alert(1)</script><!-- data -->"
    page = embed("<head><!-- data --></head>", {"data": evil})
    assert "alert" not in page
    assert unpack(page) == {"data": evil}


def test_a_page_that_is_not_built_says_what_to_do(built: Path) -> None:
    (built / "page.html").unlink()
    with pytest.raises(PageNotBuiltError, match="the page is not built: `make page` builds it"):
        built_page("page")
