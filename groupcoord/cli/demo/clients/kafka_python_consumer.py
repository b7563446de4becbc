"""The consumer process of ``groupcoord demo`` that uses the kafka-python library."""

import contextlib
from collections.abc import Collection, Mapping

from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.consumer.subscription_state import AsyncConsumerRebalanceListener
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaError

from groupcoord.cli.demo.clients.consumer_common import Bookkeeping, Parent, ReadRecord, Settings, main

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


class Application(AsyncConsumerRebalanceListener):  # type: ignore[misc] # the library has no types
    """Reads until its parent says to leave. Rebalances run in the library's own thread, hence the asynchronous listener."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.books = Bookkeeping(settings.commit_every_ms)
        self.consumer = KafkaConsumer(
            **settings.keywords(), partition_assignment_strategy=[ASSIGNORS[name] for name in settings.protocols]
        )

    def run(self, parent: Parent) -> None:
        """Join, read and commit until ``parent`` says to leave."""
        self.consumer.subscribe([self.settings.topic], listener=self)
        # A kafka-python 3.0 leader without metadata of the topic assigns nothing, and may not notice when it gets the metadata.
        self.consumer.topics()
        try:
            while parent.should_run:
                batches = self.consumer.poll(timeout_ms=self.settings.poll_ms)
                records = [record for batch in batches.values() for record in batch]
                self.books.read(ReadRecord(r.partition, r.offset, r.key.decode()) for r in records)
                if self.books.commit_is_due:
                    self.commit()
            self.commit()
        finally:
            self.consumer.close(autocommit=False)

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Called by the library before partitions are revoked: the last chance to commit for them."""
        if revoked:
            with contextlib.suppress(KafkaError), self.books.committing() as offsets:
                if offsets:
                    await self.consumer.commit_async(self.positions(offsets))

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Called by the library after partitions were assigned."""
        self.books.assigned(place.partition for place in assigned)

    def commit(self) -> None:
        """Commit what was read. An error does no harm: the next owner reads those records again."""
        with contextlib.suppress(KafkaError), self.books.committing() as offsets:
            if offsets:
                self.consumer.commit(self.positions(offsets))

    def positions(self, offsets: Mapping[int, int]) -> dict[TopicPartition, OffsetAndMetadata]:
        """``offsets`` in the library's types."""
        return {TopicPartition(self.settings.topic, p): OffsetAndMetadata(at, "", -1) for p, at in offsets.items()}


if __name__ == "__main__":
    main(Application)
