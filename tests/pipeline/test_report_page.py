"""The page: well-formed, whole without anything else, the same bytes for the same report, and proof against names."""

import hashlib
import re
from base64 import b64encode
from html.parser import HTMLParser

import pytest

from groupcoord.pipeline.report.build_report import build_report
from groupcoord.pipeline.report.charts import CAUSE_LINES, cause_line
from groupcoord.pipeline.report.formatting import (
    amount,
    axis_label,
    duration,
    iso_time,
    moment,
    number,
    shortened,
    visible,
)
from groupcoord.pipeline.report.report_files import render_page
from groupcoord.pipeline.schemas import CAUSE_KINDS, EPOCH_CAUSES, TABLES
from tests.pipeline.plain_reader import PlainReader, Tables
from tests.pipeline.report_tables import (
    START,
    add,
    add_commits,
    add_generation,
    add_group,
    add_owner,
    at,
    empty,
    history,
    what_if,
)

HOSTILE = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "<!--",
    "]]><style>*{display:none}</style>",
    "\u202egpj.exe\u2066",
    "שלום עולם",
    "a\x00b\x1b[31m\r\n\u2028",
    "\ud800 half",
    "x" * 300,
    "&lt;b&gt;",
    "",
    "javascript:alert(1)",
]
VOID = {"meta", "br"}


class Page(HTMLParser):
    """Notes every element with its attributes and text; fails where elements are not closed in turn."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs)
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self._open[-1] if self._open else "", []).append(data)

    def all(self, wanted: str) -> list[dict[str, str | None]]:
        return [attributes for element, attributes in self.elements if element == wanted]

    @property
    def words(self) -> str:
        shown = (texts for element, texts in self.texts.items() if element not in {"style", "script"})
        return " ".join(" ".join(texts) for texts in shown)


def html(tables: Tables) -> str:
    return render_page(build_report(PlainReader(tables), {"source": "segments:data", "as_of": None, "now": None}))


def hostile(names: list[str]) -> Tables:
    """Every name that somebody chooses is one of ``names``."""
    tables = empty()
    for index, said in enumerate(names):
        add_group(tables, said, rebalances=len(names) - index, protocol=said, commits=3)
        add_generation(tables, said, 1, 0, {said: 2, f"{said}-2": 1}, f"{said} joined")
        tables["skew"][-1]["client_id"] = said
        add_owner(tables, said, 0, 0, said, topic=said)
        add_commits(tables, said, 1, 2)
        lag = {"committed_offset": 1, "end_offset": 9, "lag": 8, "last_commit_ts": at(1), "status": said or None}
        add(tables, "lag", group=said, topic=said, partition=0, **lag)
        add(tables, "bad_records", log_partition=0, log_offset=index, reason=said)
        add(tables, "generations", group=said, problem=said)
        add(tables, "source_warnings", where=said, what=said)
        times = {"from": at(0), "to": at(1)}
        add(tables, "storms", group=said, rebalances=5, hidden_generations=0, likely_causes=[said] * 5, **times)
        gap = {"from_ts": at(0), "gap_seconds": 90.0, "usual_seconds": 1.0}
        add(tables, "commit_gaps", group=said, topic=said, partition=0, **gap)
        figures = {"generations": 1, "problems": 0, "moved": 1, "moved_needlessly": 0, "pauses": 1, "rebalances": 1}
        add(tables, "what_if_summary", group=said, assignor=said, **figures)
    return tables


def test_the_page_says_what_the_tables_say() -> None:
    tables = history()
    what_if(tables)
    page = Page(html(tables))
    assert "History is whole from" in page.words
    assert "26 offsets have no record" in page.words
    assert "storms of rebalances 5.0 (seen once)" in page.words
    assert {"overview", "groups", "details", "storms", "lag", "what-if", "quality", "g1", "g4"} <= {
        attributes.get("id") for _, attributes in page.elements
    }
    titles = page.texts["title"]
    assert any(
        "generation 3, 2026-01-01 00:01:30.000 UTC: a left or timed out; 1 → 1 member; 4 of 4 partitions moved, 3 needlessly"
        in said
        for said in titles
    )
    assert "a: from 2026-01-01 00:00:00 UTC to 2026-01-01 00:01:30 UTC, 2 to 4 partitions" in titles
    assert "b: from 2026-01-01 00:00:30 UTC on, not seen leaving, 2 to 4 partitions" in titles
    assert "orders-1: nobody" in titles
    assert "as it was" in page.words


def test_what_if_is_a_section_only_if_it_was_asked_for() -> None:
    assert 'id="what-if"' not in html(history())


def test_every_figure_and_table_names_tables_that_there_are() -> None:
    tables = history()
    what_if(tables)
    page = Page(html(tables))
    for attributes in page.all("table") + page.all("figure"):
        named = (attributes["data-from"] or "").split()
        assert named
        assert set(named) <= TABLES.keys()
    code = set(page.texts["code"])
    assert set(TABLES) & code >= {"group_health", "rebalances", "commits", "lag", "record_counts", "what_if_summary"}


def test_nothing_is_loaded_and_nothing_else_can_run() -> None:
    source = html(hostile(HOSTILE))
    page = Page(source)
    assert len(page.all("script")) == len(page.all("style")) == 1
    assert page.all("img") == page.all("iframe") == page.all("link") == []
    for _, attributes in page.elements:
        assert not any(key.startswith("on") or key in {"src", "style", "srcset"} for key in attributes)
        assert (attributes.get("href") or "#").startswith("#")
    policy = next(one["content"] for one in page.all("meta") if one.get("http-equiv") == "Content-Security-Policy")
    [script], [style] = page.texts["script"], page.texts["style"]
    for content in (script, style):
        digest = b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in (policy or "")
    assert "default-src 'none'" in (policy or "")
    assert "url(" not in style
    assert "@import" not in style
    assert not re.search(r"https?://(?!www\.w3\.org)", source)


@pytest.mark.parametrize("said", HOSTILE)
def test_no_name_is_more_than_text(said: str) -> None:
    source = html(hostile([said]))
    page = Page(source)
    plain = Page(html(hostile(["plain"])))
    expected = [element for element, _ in plain.elements if element not in {"i", "bdi"}]
    assert [element for element, _ in page.elements if element not in {"i", "bdi"}] == expected
    assert source.encode("utf-8")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u200e\u200f\u2028\u202a-\u202e\u2066-\u2069]", source)


def test_long_names_keep_both_ends_and_are_whole_in_a_title() -> None:
    said = "begin" + "x" * 300 + "end"
    source = html(hostile([said]))
    assert f'title="{said}"' in source
    assert "…xxxxxxxxxxxxxxxxxend" in source


def test_the_same_tables_give_the_same_bytes_in_whatever_order_rows_are() -> None:
    tables = hostile([said for said in HOSTILE if said])
    turned = {table: rows[::-1] for table, rows in tables.items()}
    assert html(tables) == html(turned)


def test_identities_are_unique_and_links_lead_somewhere() -> None:
    page = Page(html(history()))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    targets = {attributes["href"] for attributes in page.all("a")}
    assert targets <= {f"#{one}" for one in ids}
    drawings = [one for one in page.all("svg") if one.get("role") == "img"]
    assert drawings
    assert all(one["aria-labelledby"] in ids for one in drawings)
    assert all(one.get("role") == "img" or one.get("aria-hidden") == "true" for one in page.all("svg"))


def test_an_empty_log_has_a_page() -> None:
    page = Page(html(empty()))
    assert "No record has a time." in page.words
    assert "There are no groups." in page.words
    assert "There are no storms." in page.words
    assert page.all("figure") == []


def test_a_log_of_commits_alone_has_a_page() -> None:
    tables = empty()
    add_group(tables, "simple", kind="simple", state="Empty", protocol=None, generation=0, members=0, commits=3)
    add_commits(tables, "simple", 1, 2, 3)
    read = {"records": 3, "missing": 0, "first_ts": at(1), "last_ts": at(3)}
    add(tables, "log_partitions", log_partition=0, first_offset=0, last_offset=2, **read)
    page = Page(html(tables))
    assert "History is whole: no offset is missing." in page.words
    assert "No member is known" in page.words
    assert "1 commit from 2026-01-01 00:00:01.000 UTC on" in page.texts["title"]


@pytest.mark.slow
def test_thousands_of_groups_and_members_make_no_endless_page() -> None:
    tables = empty()
    for one in range(3000):
        add_group(tables, f"g{one}", rebalances=2)
    for one in range(120):
        members = {f"m{member}-1": (one + member) % 7 for member in range(5000 if one == 119 else 50)}
        add_generation(tables, "g0", one, one, members)
    add_group(tables, "huge", rebalances=9, score=99.0)
    source = html(tables)
    assert "2,801 more groups with lower scores" in source
    assert len(source) < 3_000_000
    Page(source)


def test_times_that_no_clock_shows() -> None:
    tables = history()
    for row in tables["rebalances"][:1]:
        row["at"] = -62_135_596_800_000  # the year 1
    tables["log_partitions"][0]["last_ts"] = 253_402_300_799_999  # the year 9999
    assert "0001-01-01" in html(tables)


def test_numbers_and_moments_in_words() -> None:
    assert [number(None), number(12345), number(1.25)] == ["–", "12,345", "1.2"]
    assert [amount(1, "records"), amount(2, "records"), amount(None, "records")] == [
        "1 record",
        "2 records",
        "– records",
    ]
    assert moment(START) == "2026-01-01 00:00:00"
    assert moment(START + 7, with_ms=True) == "2026-01-01 00:00:00.007"
    assert moment(None) == "–"
    assert moment(10**18) == "1,000,000,000,000,000,000 ms since 1970"
    assert [iso_time(START), iso_time(10**18), iso_time(None)] == ["2026-01-01T00:00:00.000Z", None, None]
    assert [duration(7), duration(1500), duration(2000), duration(61_000), duration(3_600_000)] == [
        "7 ms",
        "1.5 s",
        "2 s",
        "1 min 1 s",
        "1 h",
    ]
    assert duration(90_061_000) == "1 d 1 h"
    assert [axis_label(START, 10_000), axis_label(START, 60_000), axis_label(START, 10**9)] == [
        "00:00:00.000",
        "00:00:00",
        "2026-01-01 00:00",
    ]
    assert shortened("abcdefghi", 6) == "abc…hi"
    assert [visible("plain"), visible("é\u00a0\u202e")] == ["plain", "é \\u202e"]


def test_a_line_shows_the_kind_of_the_cause_and_not_the_names_in_it() -> None:
    tables = empty()
    add_group(tables, "g", rebalances=3)
    for generation, (cause, kind) in enumerate(
        [
            ("joined-app restarted: the same client ids and hosts under new member ids", "members_restarted"),
            ("joined-1 left or timed out", "members_left"),
            ("left or timed out-1 joined", "members_joined"),
        ]
    ):
        add_generation(tables, "g", generation + 1, 10 * generation, {"joined-1": 1}, cause, kind)
    page = Page(html(tables))
    drawn = [one["class"] for one in page.all("line") if one.get("vector-effect")]
    assert drawn[:3] == ["r-else", "r-lost", "r-came"]
    assert {cause_line(kind) for kind in (*CAUSE_KINDS, *EPOCH_CAUSES)} == set(CAUSE_LINES)
