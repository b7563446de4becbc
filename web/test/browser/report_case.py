"""Writes what the tests of the report's page look at: pages of several histories, and names that the pipeline has."""

import json
import sys
from pathlib import Path

from groupcoord.pipeline.report.build_report import build_report
from groupcoord.pipeline.report.report_files import render_page
from groupcoord.pipeline.schemas import CAUSE_KINDS, EPOCH_CAUSES, TABLES
from tests.pipeline.plain_reader import PlainReader
from tests.pipeline.report_tables import HOSTILE, add, at, crowd, empty, history, hostile, what_if

out = Path(sys.argv[1])
with_what_if = history()
what_if(with_what_if)
for partition in range(5):
    held_up = {"stable_offset": 10, "end_offset": 20 + partition, "producer_id": 8, "since": at(20), "groups": ["app"]}
    add(with_what_if, "open_transactions", topic="ledger", partition=partition, **held_up)
cases = {
    "history": with_what_if,
    "plain": history(),
    "empty": empty(),
    "hostile": hostile(HOSTILE),
    "crowd": crowd(5_000),
    "five": crowd(5),
    "four hundred": crowd(400),
}
for name, tables in cases.items():
    report = build_report(PlainReader(tables), {"source": "segments:data", "as_of": None, "now": None})
    (out / f"{name}.html").write_text(render_page(report), encoding="utf-8")
names = {"tables": sorted(TABLES), "causes": sorted({*CAUSE_KINDS, *EPOCH_CAUSES})}
(out / "names.json").write_text(json.dumps(names))
