"""The page: the built one with the report in it, the same bytes for the same report, and proof against names."""

import json
import re
from pathlib import Path

import pytest

from groupcoord.cli.main import main
from groupcoord.page import html_embedding
from groupcoord.page.html_embedding import PageNotBuiltError
from groupcoord.pipeline.health_symptoms import SYMPTOMS
from groupcoord.pipeline.report.build_report import RANKED, build_report
from groupcoord.pipeline.report.report_files import iso_time, render_page, report_from_json, report_to_json
from groupcoord.pipeline.report.report_model import Report
from groupcoord.pipeline.schemas import CAUSE_KINDS, MEMBER_EVENTS
from tests.page.conftest import Unpack
from tests.pipeline.plain_reader import PlainReader, Tables
from tests.pipeline.report_tables import (
    HOSTILE,
    START,
    add_generation,
    add_group,
    empty,
    history,
    hostile,
    what_if,
)


def report(tables: Tables) -> Report:
    return build_report(PlainReader(tables), {"source": "segments:data", "as_of": None, "now": None})


def html(tables: Tables) -> str:
    return render_page(report(tables))


def test_the_page_has_the_document_and_the_words_of_the_pipeline(unpack: Unpack) -> None:
    tables = history()
    what_if(tables)
    found = unpack(html(tables))
    assert found["report"] == report_to_json(report(tables))
    words = json.loads(found["vocabulary"])
    assert words["member_events"] == MEMBER_EVENTS
    assert words["cause_kinds"] == CAUSE_KINDS
    assert [one["points"] for one in words["symptoms"]] == [one.points for one in SYMPTOMS]
    assert set(json.loads(found["report"])["groups"][0]["points"]) == {one["column"] for one in words["symptoms"]}


def test_what_if_is_there_only_if_it_was_asked_for() -> None:
    assert report(history()).what_if is None


def test_no_name_is_more_than_data(unpack: Unpack) -> None:
    source = html(hostile(HOSTILE))
    assert source.encode("ascii")
    assert source.count("<script") == 2
    assert not re.search("alert|onerror|display:none", source)
    [whole] = [json.loads(text) for name, text in unpack(source).items() if name == "report"]
    assert {one["group"] for one in whole["groups"]} == set(HOSTILE)


def test_the_same_tables_give_the_same_bytes_in_whatever_order_rows_are() -> None:
    tables = hostile([said for said in HOSTILE if said])
    turned = {table: rows[::-1] for table, rows in tables.items()}
    assert html(tables) == html(turned)


def test_an_empty_log_has_a_page(unpack: Unpack) -> None:
    document = json.loads(unpack(html(empty()))["report"])
    assert document["overview"]["activity"] is None
    assert document["groups"] == document["details"] == document["storms"] == []


@pytest.mark.slow
def test_thousands_of_groups_and_members_make_no_endless_report() -> None:
    tables = empty()
    for one in range(RANKED + 100):
        add_group(tables, f"g{one}", rebalances=2)
    for one in range(120):
        members = {f"m{member}-1": (one + member) % 7 for member in range(5000 if one == 119 else 50)}
        add_generation(tables, "g0", one, one, members)
    add_group(tables, "huge", rebalances=9, score=99.0)
    found = report(tables)
    assert found.groups_left_out == 101
    assert len(report_to_json(found)) < 9_000_000
    assert len(render_page(found)) < 500_000


def test_times_that_no_clock_shows() -> None:
    tables = history()
    tables["rebalances"][0]["at"] = -62_135_596_800_000  # the year 1
    tables["log_partitions"][0]["last_ts"] = 10**18
    document = report_to_json(report(tables))
    assert "0001-01-01T00:00:00.000Z" in document
    assert "1000000000000000000 ms since 1970" in document
    assert report_from_json(document, "there") == report(tables)
    assert [iso_time(START), iso_time(10**18), iso_time(None)] == ["2026-01-01T00:00:00.000Z", None, None]


def test_a_page_that_is_not_built_is_said_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(html_embedding, "STATIC", tmp_path / "nowhere")
    with pytest.raises(PageNotBuiltError):
        html(empty())
    (tmp_path / "report.json").write_text(report_to_json(report(history())))
    assert main(["pipeline", "report", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        "groupcoord pipeline: the page is not built: `make page` builds it, with Node 20 and npm\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
