"""Metrics for Prometheus, made from the views after each batch, and the HTTP server that they are got from.

The views are small files, read with Arrow: no job of Spark is needed for them. What is served is what was true after the last
batch, and it is replaced as a whole: what belongs to a group that is gone is gone.
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
from groupcoord.pipeline.hanging_transactions import open_transactions
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
"""The columns of the view ``lag`` that are metrics as they are."""


class WatchMetrics(Collector):
    """The metrics as of the last ``update``; none before the first. No metric has more than ``limit`` series: those that come
    first in the order of their labels are there, and ``say`` is told when it begins that some are left out.
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
        """What a scrape gets."""
        return self._families

    def update(self, outcome: BatchOutcome) -> None:
        """Make them anew."""
        self._rebalances.update(outcome.rebalances)
        if outcome.took_s is not None:
            self._batch = outcome.now, outcome.took_s
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
        last = outcome.read_until - timedelta(seconds=APART_S)
        now = {storm["group"] for storm in storms if storm["to"] >= last}
        made.add(names.STORMS, (((group,), count[group]) for group in there))
        made.add(names.STORM, (((group,), float(group in now)) for group in there))

    def _transactions(self, made: "_Families", outcome: BatchOutcome) -> None:
        if outcome.behind is None:
            return  # the source can ask nothing of the cluster: that there are none is not known
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
        if outcome.behind is not None:
            made.add(names.LOG_BEHIND, [((), outcome.behind)])
        made.add(names.RECORDS, [((), outcome.manifest.records)])
        made.add(names.VIEWS_AT, [((), outcome.now.timestamp())])
        if self._batch is not None:
            at, took_s = self._batch
            made.add(names.BATCH_AT, [((), at.timestamp())])
            made.add(names.BATCH_TOOK, [((), took_s)])


class _Families:
    """Metrics that are being made. ``left_out``: of which metric how many samples were above ``limit``."""

    def __init__(self, limit: int) -> None:
        self.families: dict[str, Family] = {}
        self.left_out: dict[str, int] = {}
        self.limit = limit

    def add(self, metric: Metric, samples: Iterable[Sample], *, more: int = 0) -> None:
        """Add ``samples`` of ``metric``, of which there are ``more``."""
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
    """What is of a partition of a group, from the view ``lag``; what is null is unknown and has no sample."""
    lag = lag.sort_by([(key, "ascending") for key in _KEYS])
    place = pc.index_in(lag["status"], pa.array(list(names.STATUS_NUMBERS), pa.string()))
    lag = lag.append_column("number", pa.array(list(names.STATUS_NUMBERS.values())).take(place))
    for metric, column in (_OF_PARTITIONS | {names.STATUS: "number"}).items():
        known = lag.filter(pc.is_valid(lag[column])).select([*_KEYS, column])
        first = known.slice(0, made.limit).to_pylist()
        samples = (((row["group"], row["topic"], str(row["partition"])), row[column]) for row in first)
        made.add(metric, samples, more=known.num_rows - len(first))
    known = lag.filter(pc.is_valid(lag["lag"]))
    # As a sum of doubles, which Prometheus' numbers are: that of integers may not fit.
    known = known.append_column("records", pc.cast(known["lag"], pa.float64(), safe=False))
    sums = known.group_by(["group", "topic"]).aggregate([("records", "sum")])
    rows = sums.sort_by([("group", "ascending"), ("topic", "ascending")]).to_pylist()
    made.add(names.LAG_SUM, (((row["group"], row["topic"]), row["records_sum"]) for row in rows))


class MetricsServer:
    """Serves ``metrics`` at ``/metrics`` of ``host`` and ``port`` (0: any that is free), as a context manager.

    Raises PipelineError if that cannot be.
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
        """Where they are."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
