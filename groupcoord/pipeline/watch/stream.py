"""What is watched: a source that goes on. ``kafka:HOST:PORT``, or ``connector:HOST:PORT`` where Spark's connector is."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.sources import connector, kafka
from groupcoord.pipeline.sources.ends import ends_of_cluster
from groupcoord.pipeline.sources.wire import Cluster

MOST = "500000"
"""So many offsets are read a batch, at most, unless the option ``maxrecords`` says otherwise."""

Positions = dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Stream:
    """``identity`` tells one source from another. ``load`` gives LOG, for ever. ``positions`` are where each partition of the
    log is at, as Spark's checkpoint says it. ``bounds`` and ``ends`` ask the cluster: the first offsets and ends of the log,
    and, at a time in milliseconds, the ends of the topics and partitions in a frame; None where there is no way to ask.
    """

    said: str
    identity: dict[str, str]
    load: Callable[[SparkSession], DataFrame]
    positions: Callable[[str], Positions]
    bounds: Callable[[], kafka.Bounds] | None = None
    ends: Callable[[DataFrame, int], DataFrame] | None = None


def stream_of(said: str, options: Mapping[str, str]) -> Stream:
    """What ``said`` names. Raises PipelineError if it is nothing that goes on, or does not answer."""
    kind, _, bootstrap = said.partition(":")
    if kind == "kafka" and bootstrap:
        return _kafka(said, bootstrap, options)
    if kind == "connector" and bootstrap:
        return _connector(said, bootstrap, options)
    raise PipelineError(f"{said!r} cannot be watched; kafka:HOST:PORT and connector:HOST:PORT can")


def _kafka(said: str, bootstrap: str, options: Mapping[str, str]) -> Stream:
    asked = {"maxrecords": MOST, **options, "bootstrap": bootstrap}
    with Cluster(bootstrap) as cluster:
        identity = {"topic": asked.get("topic", kafka.TOPIC), "of cluster": cluster.cluster_id() or bootstrap}

    def load(spark: SparkSession) -> DataFrame:
        spark.dataSource.register(kafka.OffsetsSource)
        return spark.readStream.format(kafka.NAME).options(**asked).load()

    return Stream(
        said=said,
        identity=identity,
        load=load,
        positions=json.loads,
        bounds=partial(kafka.bounds, asked),
        ends=lambda wanted, now_ms: ends_of_cluster(wanted, bootstrap, now_ms),
    )


def _connector(said: str, bootstrap: str, options: Mapping[str, str]) -> Stream:
    asked = {"maxOffsetsPerTrigger": MOST, **options}
    return Stream(
        said=said,
        identity={"topic": connector.TOPIC, "by the connector at": bootstrap},
        load=partial(connector.stream, bootstrap=bootstrap, options=asked),
        positions=lambda text: dict(json.loads(text)[connector.TOPIC]),
    )
