"""Shows where a pipeline run spends its time, from Spark's event log: ``python -m bench.spark_event_log DIR``.

``groupcoord pipeline run`` writes one with ``--conf spark.eventLog.enabled=true --conf spark.eventLog.compress=false
--conf spark.eventLog.dir=DIR``.
"""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from bench.table import Table


class TimeSpent(NamedTuple):
    """Times are in seconds. Queries and jobs run side by side, so that sums of them may exceed ``whole``."""

    whole: float
    before_first: float
    """Until the first query begins."""
    queries: int
    jobs: int
    tasks: int
    in_queries: float
    """From the beginning to the end of each query."""
    in_jobs: float
    """From the beginning to the end of each job; the rest of the queries is planning and compiling."""
    in_tasks: float
    processor_of_tasks: float
    """Processor time of tasks in Java, without that of Python."""


def time_spent(directory: Path) -> TimeSpent:
    """What the newest event log in ``directory`` says. Raises FileNotFoundError if there is none."""
    logs = [path for path in directory.rglob("events_*") if path.suffix != ".crc"]
    if not logs:
        raise FileNotFoundError(f"there is no event log in {directory}")
    newest = max(logs, key=lambda path: path.stat().st_mtime)
    events = [json.loads(line) for line in newest.read_text(encoding="utf-8").splitlines()]
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        by_kind.setdefault(event["Event"].rpartition(".")[2].removeprefix("SparkListener"), []).append(event)

    def sum_of(begin: str, end: str, key: str, begun: str, ended: str) -> float:
        ends = {event[key]: event[ended] for event in by_kind.get(end, [])}
        took = [ends[event[key]] - event[begun] for event in by_kind.get(begin, []) if event[key] in ends]
        return float(sum(took)) / 1000

    began = by_kind["ApplicationStart"][0]["Timestamp"]
    queries, tasks = by_kind.get("SQLExecutionStart", []), by_kind.get("TaskEnd", [])
    measures = [event.get("Task Metrics") or {} for event in tasks]
    return TimeSpent(
        whole=(by_kind["ApplicationEnd"][0]["Timestamp"] - began) / 1000,
        before_first=(min(event["time"] for event in queries) - began) / 1000,
        queries=len(queries),
        jobs=len(by_kind.get("JobStart", [])),
        tasks=len(tasks),
        in_queries=sum_of("SQLExecutionStart", "SQLExecutionEnd", "executionId", "time", "time"),
        in_jobs=sum_of("JobStart", "JobEnd", "Job ID", "Submission Time", "Completion Time"),
        in_tasks=sum(task["Task Info"]["Finish Time"] - task["Task Info"]["Launch Time"] for task in tasks) / 1000,
        processor_of_tasks=sum(one.get("Executor CPU Time", 0) for one in measures) / 1e9,
    )


def table_of(title: str, found: dict[str, TimeSpent]) -> Table:
    """A row for each run."""
    table = Table(
        title,
        "records",
        "whole, s",
        "before the first query, s",
        "queries",
        "jobs",
        "tasks",
        "in queries, s",
        "in jobs, s",
        "in tasks, s",
        "processor of tasks, s",
    )
    for name, spent in found.items():
        table.add(name, *(f"{value:,}" if isinstance(value, int) else f"{value:.1f}" for value in spent))
    return table


if __name__ == "__main__":
    print(table_of("where the time of a run went", {sys.argv[1]: time_spent(Path(sys.argv[1]))}))
