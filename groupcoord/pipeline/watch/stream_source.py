"""The log as a stream, for ``watch``. ``kafka:HOST:PORT``, or ``connector:HOST:PORT`` where Spark's connector is."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.sources import connector_source, kafka_source
from groupcoord.pipeline.sources.cluster_reader import ClusterReader
from groupcoord.pipeline.sources.end_offsets import ends_of_cluster

MOST = "500000"
"""How many offsets are read a batch, at most, unless the option ``maxrecords`` says otherwise."""

Positions = dict[str, int]


@dataclass(frozen=True, kw_only=True)
class StreamSource:
    """``identity`` tells one source from another. ``load`` gives LOG, for ever. ``positions`` are where each partition of the
    log is at, as Spark's checkpoint says it. ``bounds`` and ``ends`` ask the cluster: the first offsets and ends of the log,
    and, at a time in milliseconds, the ends of the topics and partitions in a frame; None where there is no way to ask.
    """

    spec: str
    identity: dict[str, str]
    load: Callable[[SparkSession], DataFrame]
    positions: Callable[[str], Positions]
    bounds: Callable[[], kafka_source.Bounds] | None = None
    ends: Callable[[DataFrame, int], DataFrame] | None = None


def open_stream(spec: str, options: Mapping[str, str]) -> StreamSource:
    """The stream that ``spec`` names. Raises PipelineError if it is no stream, or does not answer."""
    kind, _, bootstrap = spec.partition(":")
    if kind == "kafka" and bootstrap:
        return _kafka(spec, bootstrap, options)
    if kind == "connector" and bootstrap:
        return _connector(spec, bootstrap, options)
    raise PipelineError(f"{spec!r} cannot be watched; kafka:HOST:PORT and connector:HOST:PORT can")


def _kafka(spec: str, bootstrap: str, options: Mapping[str, str]) -> StreamSource:
    asked = {"maxrecords": MOST, **options, "bootstrap": bootstrap}
    with ClusterReader(bootstrap) as cluster:
        identity = {"topic": asked.get("topic", kafka_source.TOPIC), "of cluster": cluster.cluster_id() or bootstrap}

    def load(spark: SparkSession) -> DataFrame:
        spark.dataSource.register(kafka_source.OffsetsSource)
        return spark.readStream.format(kafka_source.NAME).options(**asked).load()

    return StreamSource(
        spec=spec,
        identity=identity,
        load=load,
        positions=json.loads,
        bounds=partial(kafka_source.bounds, asked),
        ends=lambda wanted, now_ms: ends_of_cluster(wanted, bootstrap, now_ms),
    )


def _connector(spec: str, bootstrap: str, options: Mapping[str, str]) -> StreamSource:
    asked = {"maxOffsetsPerTrigger": MOST, **options}
    return StreamSource(
        spec=spec,
        identity={"topic": connector_source.TOPIC, "by the connector at": bootstrap},
        load=partial(connector_source.stream, bootstrap=bootstrap, options=asked),
        positions=lambda text: dict(json.loads(text)[connector_source.TOPIC]),
    )
