"""A simulated consumer without a group, which fetches all partitions of a topic up to the high watermark."""

from groupcoord.protocol.apis.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from groupcoord.protocol.batches.record_batch import iter_batch_extents, read_header
from groupcoord.simulation.standalone_client import ClientEnvironment, StandaloneClient

_MAX_BYTES = 1 << 20


class StandaloneConsumer(StandaloneClient):
    """Fetches with isolation level read_uncommitted."""

    def __init__(self, environment: ClientEnvironment, slot_id: int, topic: str, interval_ms: int) -> None:
        super().__init__(environment, slot_id, "reader", topic, interval_ms)
        self.positions: dict[int, int] = {}
        """The position in each partition."""

    def act(self) -> None:
        """Fetch from all leaders."""
        if len(self.leaders) < self._environment.plan.topics[self.topic]:
            self.find_leaders(self._fetch)
        else:
            self._fetch()

    def _fetch(self) -> None:
        for broker in sorted(set(self.leaders.values())):
            wanted = tuple(
                FetchPartition(
                    partition=partition,
                    fetch_offset=self.positions.get(partition, 0),
                    partition_max_bytes=_MAX_BYTES,
                )
                for partition, leader in self.leaders.items()
                if leader == broker
            )
            topics = (FetchTopic(topic=self.topic, partitions=wanted),)
            request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics)
            self.send(broker, request, self._fetched, self.leaders.clear)

    def _fetched(self, response: FetchResponse) -> None:
        partitions = response.responses[0].partitions
        refused = {each.partition_index for each in partitions if each.error_code}
        self.leaders = {partition: leader for partition, leader in self.leaders.items() if partition not in refused}
        for each in partitions:
            data = bytes(each.records or b"")
            for position, size, _ in iter_batch_extents(data):
                header = read_header(data[position : position + size])
                self.positions[each.partition_index] = header.last_offset + 1
