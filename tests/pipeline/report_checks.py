"""What must be true of the report of any run."""

import json
from pathlib import Path
from typing import Any

from groupcoord.pipeline.report.report_files import render_stored, report_to_json


def check_report(out: Path, tables: dict[str, list[dict[str, Any]]]) -> None:
    """The page of the run in ``out`` is rendered from its ``report.json``, whose numbers are those of the tables."""
    page = (out / "report.html").read_bytes()
    report = render_stored(out)
    assert (out / "report.html").read_bytes() == page
    of = report.overview
    assert of.records == sum(row["records"] for row in tables["record_counts"] if row["what"] == "in")
    assert of.commit_gaps <= len(tables["commit_gaps"])
    for name in ("storms", "zombies"):
        assert getattr(of, name) == len(tables[name]), name
    rebalances = tables["rebalances"] + tables["modern_rebalances"]
    assert of.rebalances == len(rebalances)
    for name in ("moved", "moved_needlessly", "hidden_generations"):
        assert getattr(of, name) == sum(row[name] or 0 for row in rebalances), name
    assert of.commits == sum(row["commits"] for row in tables["commit_rates"])
    assert of.missing == sum(row["missing"] for row in tables["log_partitions"])
    named = ("rebalances", "modern_rebalances", "commit_rates", "lag", "current_groups", "modern_current_groups")
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
