"""A running cluster, read by tasks of Spark: the client's reader of logs, whose errors say whether it may work later."""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Self

from groupcoord.client.addresses import parse_addresses
from groupcoord.client.errors import BrokerError, ClientError, DisconnectedError
from groupcoord.client.log_reader import EARLIEST, LATEST, READ_COMMITTED, FetchedBatches, LogReader
from groupcoord.pipeline.errors import PipelineError
from groupcoord.protocol.errors import ErrorCode

__all__ = ["EARLIEST", "LATEST", "ClusterReader", "ClusterUnavailableError", "FetchedBatches", "OffsetOutOfRangeError"]

CLIENT_ID = "groupcoord-pipeline"
TRIES = 8
FETCH_BYTES = 8 * 1024 * 1024
FETCH_MAX_WAIT_MS = 10


class ClusterUnavailableError(PipelineError):
    """No broker can be reached, the cluster does not recover, or it has no such topic. It may work later."""


class OffsetOutOfRangeError(PipelineError):
    """The partition has no such offset."""


class ClusterReader:
    """What is committed in a cluster, found by any of its brokers. ``bootstrap`` is HOST:PORT, or several with commas.

    Every method raises PipelineError, ClusterUnavailableError if it may work later.
    """

    def __init__(self, bootstrap: str, *, sleep: Callable[[float], None] = time.sleep) -> None:
        try:
            addresses = parse_addresses(bootstrap, default_port=None)
        except ValueError as problem:
            raise PipelineError(str(problem)) from None
        self._log = LogReader(addresses, client_id=CLIENT_ID, isolation_level=READ_COMMITTED, tries=TRIES, sleep=sleep)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._log.close()

    def cluster_id(self) -> str | None:
        """The id of the cluster, where it has one (since Kafka 0.10.1)."""
        with _pipeline_errors():
            return self._log.cluster_id()

    def partitions(self, topic: str) -> list[int]:
        """The partitions of ``topic``; none if it does not exist."""
        with _pipeline_errors():
            return self._log.partitions([topic]).get(topic, [])

    def bounds(self, topic: str, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
        """Partition → its first offset, and the end of what is committed."""
        wanted = {(topic, partition) for partition in partitions}
        first, end = self.offsets(wanted, EARLIEST), self.offsets(wanted, LATEST)
        return {partition: (first[topic, partition], end[topic, partition]) for _, partition in sorted(wanted)}

    def offsets(self, wanted: set[tuple[str, int]], when: int) -> dict[tuple[str, int], int]:
        """(topic, partition) → its offset at LATEST or EARLIEST. Partitions that do not exist are missing."""
        with _pipeline_errors():
            return self._log.offsets(wanted, when)

    def fetch(self, topic: str, partition: int, offset: int) -> FetchedBatches:
        """Batches from ``offset`` on, of which the first may begin before it; none if there are none yet.

        Raises OffsetOutOfRangeError if the log begins after ``offset``, or ends before it.
        """
        with _pipeline_errors():
            return self._log.fetch((topic, partition), offset, FETCH_BYTES, max_wait_ms=FETCH_MAX_WAIT_MS)


@contextlib.contextmanager
def _pipeline_errors() -> Iterator[None]:
    try:
        yield
    except DisconnectedError as problem:
        raise ClusterUnavailableError(f"no broker answers: {problem}") from None
    except BrokerError as problem:
        if problem.code == ErrorCode.OFFSET_OUT_OF_RANGE:
            raise OffsetOutOfRangeError(str(problem)) from None
        if problem.code.retriable:
            raise ClusterUnavailableError(f"the cluster does not recover: {problem}") from None
        raise PipelineError(str(problem)) from None
    except ClientError as problem:
        raise PipelineError(str(problem)) from None
