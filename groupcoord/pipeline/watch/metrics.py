"""Metrics for Prometheus, computed from the views after each batch, and the HTTP server that serves them.

The views are small files, read with Arrow without a Spark job. The metrics of the last batch are served, and all are replaced
at once: those of a deleted group disappear.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Self, TypeAlias
from wsgiref.simple_server import WSGIServer

import pyarrow as pa
import pyarrow.compute as pc
from prometheus_client import CollectorRegistry, metrics_core, start_http_server
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from groupcoord.pipeline import schemas
from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.open_and_hanging_transactions import open_transactions
from groupcoord.pipeline.tables.rebalances import APART_S
from groupcoord.pipeline.watch import metric_names as names
from groupcoord.pipeline.watch.batch_outcome import BatchOutcome
from groupcoord.pipeline.watch.metric_names import Metric

Family: TypeAlias = CounterMetricFamily | GaugeMetricFamily
Sample = tuple[Sequence[str], float]
_KEYS = ("group", "topic", "partition")
_OF_PARTITIONS = {
    names.CURRENT_OFFSET: "committed_offset",
    names.GROUP_LAG: "lag",
    names.LAG_SECONDS: "lag_seconds",
    names.RECORDS_LOST: "records_lost",
}
"""Metrics that are columns of the view ``lag``."""


class WatchMetrics(Collector):
    """The metrics as of the last ``update``; none before the first one. A metric has at most ``limit`` series, the first ones
    in the order of their labels. ``say`` is called when series begin to be left out.
    """

    def __init__(self, *, limit: int, hanging_after_s: int, say: Callable[[str], None]) -> None:
        self._limit = limit
        self._hanging_after_s = hanging_after_s
        self._say = say
        self._rebalances = Counter[str]()
        self._batch: tuple[datetime, float] | None = None
        self._families: list[Family] = []
        self._leaves_out = False

    def collect(self) -> Iterable[metrics_core.Metric]:
        """The metrics for a scrape."""
        return self._families

    def update(self, outcome: BatchOutcome) -> None:
        """Compute all metrics from the outcome of a batch."""
        self._rebalances.update(outcome.rebalances)
        if outcome.took_s is not None:
            self._batch = outcome.now + timedelta(seconds=outcome.took_s), outcome.took_s
        made = _Families(self._limit)
        _partitions(made, outcome.view(schemas.LAG, [*_KEYS, *_OF_PARTITIONS.values(), "status"]))
        self._groups(made, outcome)
        self._transactions(made, outcome)
        self._watch(made, outcome)
        for name, count in made.left_out.items():
            made.add(names.LEFT_OUT, [((name,), count)])
        if made.left_out and not self._leaves_out:
            most = max(made.left_out.values())
            self._say(f"metrics: up to {most:,} series of a metric are left out, above --metrics-limit {self._limit:,}")
        self._leaves_out = bool(made.left_out)
        self._families = list(made.families.values())

    def _groups(self, made: "_Families", outcome: BatchOutcome) -> None:
        groups = outcome.view(schemas.CURRENT_GROUPS, ["group", "kind", "state", "members"]).sort_by("group")
        there = groups["group"].to_pylist()
        members = pc.fill_null(pc.list_value_length(groups["members"]), 0).to_pylist()
        states = zip(there, groups["kind"].to_pylist(), groups["state"].to_pylist(), strict=True)
        made.add(names.MEMBERS, (((group,), count) for group, count in zip(there, members, strict=True)))
        made.add(names.STATE, (((group, kind, state), 1) for group, kind, state in states))
        self._rebalances = Counter({group: self._rebalances[group] for group in there})
        made.add(names.REBALANCES, (((group,), self._rebalances[group]) for group in there))
        storms = outcome.view(schemas.STORMS, ["group", "to"]).to_pylist()
        count = Counter(storm["group"] for storm in storms)
        last = outcome.now - timedelta(seconds=APART_S)
        now = {storm["group"] for storm in storms if storm["to"] >= last}
        made.add(names.STORMS, (((group,), count[group]) for group in there))
        made.add(names.STORM, (((group,), float(group in now)) for group in there))

    def _transactions(self, made: "_Families", outcome: BatchOutcome) -> None:
        if not outcome.knows_transactions:
            return
        rows = sorted(
            outcome.view(schemas.OPEN_TRANSACTIONS, schemas.OPEN_TRANSACTIONS.names).to_pylist(),
            key=lambda row: (row["topic"], row["partition"]),
        )
        found = open_transactions(rows)
        hanging = sum(one.hangs(outcome.now, self._hanging_after_s) for one in found)
        made.add(names.OPEN, [((), len(found))])
        made.add(names.HANGING, [((), hanging)])
        places = [((row["topic"], str(row["partition"])), row) for row in rows]
        made.add(names.OPEN_SINCE, ((place, row["since"].timestamp()) for place, row in places if row["since"]))
        made.add(names.STABLE_OFFSET_LAG, ((place, row["end_offset"] - row["stable_offset"]) for place, row in places))

    def _watch(self, made: "_Families", outcome: BatchOutcome) -> None:
        made.add(names.LOG_BEHIND, [((), outcome.behind)])
        made.add(names.RECORDS, [((), outcome.manifest.records)])
        made.add(names.VIEWS_AT, [((), outcome.now.timestamp())])
        if self._batch is not None:
            at, took_s = self._batch
            made.add(names.BATCH_AT, [((), at.timestamp())])
            made.add(names.BATCH_TOOK, [((), took_s)])


class _Families:
    """Collects metrics. ``left_out`` has the number of samples above ``limit`` by metric."""

    def __init__(self, limit: int) -> None:
        self.families: dict[str, Family] = {}
        self.left_out: dict[str, int] = {}
        self.limit = limit

    def add(self, metric: Metric, samples: Iterable[Sample], *, more: int = 0) -> None:
        """Add ``samples`` of ``metric``, up to the limit; ``more`` is the number of further samples that are not passed."""
        kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
        family = self.families.setdefault(metric.name, kind(metric.name, metric.help, labels=metric.labels))
        for number, (labels, value) in enumerate(samples):
            if number < self.limit:
                family.add_metric(labels, value)
            else:
                more += 1
        if more:
            self.left_out[metric.served_name] = more


def _partitions(made: _Families, lag: Any) -> None:
    """Add the metrics of each partition of a group from the view ``lag``; a null is unknown and has no sample."""
    lag = lag.sort_by([(key, "ascending") for key in _KEYS])
    place = pc.index_in(lag["status"], pa.array(list(names.STATUS_NUMBERS), pa.string()))
    lag = lag.append_column("number", pa.array(list(names.STATUS_NUMBERS.values())).take(place))
    for metric, column in (_OF_PARTITIONS | {names.STATUS: "number"}).items():
        known = lag.filter(pc.is_valid(lag[column])).select([*_KEYS, column])
        first = known.slice(0, made.limit).to_pylist()
        samples = (((row["group"], row["topic"], str(row["partition"])), row[column]) for row in first)
        made.add(metric, samples, more=known.num_rows - len(first))
    known = lag.filter(pc.is_valid(lag["lag"]))
    # Summed up as doubles, as Prometheus' numbers are: a sum of integers may overflow.
    known = known.append_column("records", pc.cast(known["lag"], pa.float64(), safe=False))
    sums = known.group_by(["group", "topic"]).aggregate([("records", "sum")])
    rows = sums.sort_by([("group", "ascending"), ("topic", "ascending")]).to_pylist()
    made.add(names.LAG_SUM, (((row["group"], row["topic"]), row["records_sum"]) for row in rows))


class MetricsServer:
    """Serves ``metrics`` at ``/metrics`` on ``host`` and ``port`` (0: any free port), as a context manager.

    Raises PipelineError if it cannot listen there.
    """

    def __init__(self, host: str, port: int, metrics: Collector) -> None:
        registry = CollectorRegistry()
        registry.register(metrics)
        self._server: WSGIServer
        self._thread: threading.Thread
        try:
            self._server, self._thread = start_http_server(port, host, registry)
        except OSError as problem:
            raise PipelineError(
                f"cannot serve metrics at {host}:{port}: {problem.strerror}; choose another --metrics, or port 0 for any"
            ) from None
        bare = f"[{host}]" if ":" in host else host
        self.url = f"http://{bare}:{self._server.server_port}/metrics"
        """The URL of the metrics."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
