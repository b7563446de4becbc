"""ClusterSource: reads ``__consumer_offsets`` from a running cluster, groupcoord's or Kafka's, with Fetch requests."""

import uuid
from collections.abc import Iterator

from groupcoord.broker.topic_names import CONSUMER_OFFSETS
from groupcoord.client.client_errors import BrokerError, ClientError
from groupcoord.client.log_reader import EARLIEST, LATEST, LogReader
from groupcoord.client.option_value_parsing import Address
from groupcoord.offsets_log.log_source import Batch, SourceError, UnreadableData
from groupcoord.protocol.batches.record_batch import BatchError, checksum_matches, iter_batches

FETCH_BYTES = 4 << 20


class ClusterSource:
    """Reads from the cluster of the broker at ``address``. Every method raises SourceError."""

    def __init__(self, address: Address, topic: str = CONSUMER_OFFSETS) -> None:
        self.topic = topic
        self._log = LogReader([address], client_id="groupcoord-offsets")
        broker = f"{address[0]}:{address[1]}"
        try:
            self.partitions = self._log.partitions([topic]).get(topic, [])
            self.topic_id: uuid.UUID | None = self._log.topic_id(topic)
            if not self.partitions:
                raise SourceError(f"{broker} has no topic {topic}: nobody has needed it yet")
        except BaseException as problem:
            self.close()
            if isinstance(problem, BrokerError):
                raise SourceError(f"{broker} does not tell about {topic}: {problem.code.text}") from problem
            if isinstance(problem, ClientError):
                raise SourceError(str(problem)) from problem
            raise

    def close(self) -> None:
        """Close the connections."""
        self._log.close()

    def read(self, partition: int) -> Iterator[Batch | UnreadableData]:
        """The batches from the start of the log to its end at the time of the call."""
        place = (self.topic, partition)
        try:
            offset = self._log.offsets([place], EARLIEST)[place]
            end = self._log.offsets([place], LATEST)[place]
            segment = offset
            while offset < end:
                data = self._log.fetch(place, offset, FETCH_BYTES).records
                found = list(_batches(self.topic, partition, segment, offset, data))
                yield from found
                ends = [each.header.last_offset + 1 for each in found if isinstance(each, Batch)]
                if not ends or len(ends) < len(found):
                    return  # the rest is compacted away, or an unreadable batch is in the way
                offset = ends[-1]
        except ClientError as problem:
            raise SourceError(str(problem)) from problem


def _batches(topic: str, partition: int, segment: int, offset: int, data: bytes) -> Iterator[Batch | UnreadableData]:
    """The complete batches in ``data``, up to the first corrupt one."""
    try:
        for header, batch in iter_batches(data):
            if not checksum_matches(batch, header):
                yield UnreadableData(partition, header.base_offset, "the checksum of the batch is wrong", topic=topic)
                return
            yield Batch(partition, segment, header, batch, topic)
            offset = header.last_offset + 1
    except BatchError as problem:
        yield UnreadableData(partition, offset, problem.reason, topic=topic)
