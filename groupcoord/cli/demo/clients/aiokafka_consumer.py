"""The consumer process of ``groupcoord demo`` that uses the aiokafka library."""

import asyncio
import contextlib
import sys
from collections.abc import Collection

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError

from groupcoord.cli.demo.clients.consumer_common import Bookkeeping, Parent, ReadRecord, Settings, settings_from

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


class Application(ConsumerRebalanceListener):  # type: ignore[misc] # the library has no types
    """Reads until its parent says to leave. The library requires that it is created in a running event loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.books = Bookkeeping(settings.commit_every_ms)
        self.consumer = AIOKafkaConsumer(
            **settings.keywords(), partition_assignment_strategy=[ASSIGNORS[name] for name in settings.protocols]
        )

    async def run(self, parent: Parent) -> None:
        """Join, read and commit until ``parent`` says to leave."""
        self.consumer.subscribe([self.settings.topic], listener=self)
        try:
            await self.consumer.start()
            while parent.should_run:
                batches = await self.consumer.getmany(timeout_ms=self.settings.poll_ms)
                records = [record for batch in batches.values() for record in batch]
                self.books.read(ReadRecord(r.partition, r.offset, r.key.decode()) for r in records)
                if self.books.commit_is_due:
                    await self.commit()
            await self.commit()
        finally:
            await self.consumer.stop()

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Called by the library before partitions are revoked: the last chance to commit for them."""
        if revoked:
            await self.commit()

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Called by the library after partitions were assigned."""
        self.books.assigned(place.partition for place in assigned)

    async def commit(self) -> None:
        """Commit what was read. An error does no harm: the next owner reads those records again."""
        with contextlib.suppress(KafkaError), self.books.committing() as offsets:
            if offsets:
                await self.consumer.commit({TopicPartition(self.settings.topic, p): at for p, at in offsets.items()})


async def main(settings: Settings) -> None:
    """Wait until the parent says to join, then run."""
    parent = Parent()
    await asyncio.to_thread(parent.wait_until_wanted)
    await Application(settings).run(parent)


if __name__ == "__main__":
    asyncio.run(main(settings_from(sys.argv[1:])))
