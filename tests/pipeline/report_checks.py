"""What must be true of the report of any run."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from groupcoord.pipeline.report.build_report import MOST_AFFECTED
from groupcoord.pipeline.report.report_files import render_stored, report_to_json
from groupcoord.pipeline.report.report_model import CauseCount
from groupcoord.pipeline.schemas import CAUSE_KINDS


def check_report(out: Path, tables: dict[str, list[dict[str, Any]]]) -> None:
    """The page of the run in ``out`` is rendered from its ``report.json``, whose numbers are those of the tables."""
    page = (out / "report.html").read_bytes()
    report = render_stored(out)
    assert (out / "report.html").read_bytes() == page
    of = report.overview
    assert of.records == sum(row["records"] for row in tables["record_counts"] if row["what"] == "in")
    assert of.commit_gaps == len(tables["commit_pauses"]) <= len(tables["commit_gaps"])
    for name in ("storms", "zombies"):
        assert getattr(of, name) == len(tables[name]), name
    rebalances = tables["rebalances"]
    assert of.rebalances == len(rebalances)
    for name in ("moved", "moved_needlessly", "hidden_generations"):
        assert getattr(of, name) == sum(row[name] or 0 for row in rebalances), name
    check_causes(report.causes, rebalances)
    assert of.commits == sum(row["commits"] for row in tables["commit_rates"])
    assert of.missing == sum(row["missing"] for row in tables["log_partitions"])
    named = ("rebalances", "commit_rates", "lag", "current_groups")
    groups = {row["group"] for name in named for row in tables[name]}
    assert {row["group"] for row in tables["group_health"]} == groups
    assert (of.groups, len(report.groups) + report.groups_left_out) == (len(groups), len(groups))
    assert sum(one.partitions for one in report.statuses) == of.partitions == len(tables["lag"])
    assert report.quality.adds_up
    for detail in report.details:
        assert len(detail.rebalances) + detail.rebalances_left_out == detail.group.rebalances
        times = [moment for one in detail.members for piece in one.spans for moment in piece[:2]]
        times += [one.at_ms for one in detail.rebalances]
        assert all(detail.start_ms <= moment <= detail.end_ms for moment in times)
    assert json.loads(report_to_json(report))["overview"]["groups"] == len(groups)


def check_causes(causes: Sequence[CauseCount], rebalances: Sequence[dict[str, Any]]) -> None:
    """Each of ``rebalances`` counts under its kind and under no other; the groups named beside a kind have most of them."""
    assert sum(one.count for one in causes) == len(rebalances)
    assert {one.cause_kind: one.count for one in causes} == Counter(row["cause_kind"] for row in rebalances)
    assert {one.cause_kind for one in causes} <= CAUSE_KINDS.keys()
    assert [(-one.count, one.cause_kind) for one in causes] == sorted((-one.count, one.cause_kind) for one in causes)
    for one in causes:
        in_groups = Counter(row["group"] for row in rebalances if row["cause_kind"] == one.cause_kind)
        most = sorted(in_groups.items(), key=lambda item: (-item[1], item[0].encode(errors="surrogatepass")))
        assert [(affected.group, affected.count) for affected in one.groups] == most[:MOST_AFFECTED]
        assert one.in_other_groups == sum(count for _, count in most[MOST_AFFECTED:])
