"""The consumer process of ``groupcoord demo`` that uses confluent-kafka (the C library librdkafka)."""

import contextlib

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from groupcoord.cli.demo.clients.consumer_common import Bookkeeping, Parent, ReadRecord, Settings, main


class Application:
    """Reads until its parent says to leave."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.books = Bookkeeping(settings.commit_every_ms)
        self.consumer = Consumer(
            settings.properties() | {"partition.assignment.strategy": ",".join(settings.protocols)}
        )

    def run(self, parent: Parent) -> None:
        """Join, read and commit until ``parent`` says to leave."""
        self.consumer.subscribe([self.settings.topic], on_assign=self.on_assign, on_revoke=self.on_revoke)
        try:
            while parent.should_run:
                messages = self.consumer.consume(500, self.settings.poll_ms / 1000)
                self.books.read(map(read, messages))
                if self.books.commit_is_due:
                    self.commit()
            self.commit()
        finally:
            self.consumer.close()

    def on_assign(self, _consumer: Consumer, assigned: list[TopicPartition]) -> None:
        """Called by the library after partitions were assigned."""
        self.books.assigned(place.partition for place in assigned)

    def on_revoke(self, _consumer: Consumer, _revoked: list[TopicPartition]) -> None:
        """Called by the library before partitions are revoked: the last chance to commit for them."""
        self.commit()

    def commit(self) -> None:
        """Commit what was read. An error does no harm: the next owner reads those records again."""
        with contextlib.suppress(KafkaException), self.books.committing() as offsets:
            if offsets:
                positions = [TopicPartition(self.settings.topic, number, at) for number, at in offsets.items()]
                self.consumer.commit(offsets=positions, asynchronous=False)


def read(message: Message) -> ReadRecord:
    """The record in ``message``. Raises KafkaException if it is an error instead."""
    partition, offset, key = message.partition(), message.offset(), message.key()
    if message.error() or partition is None or offset is None or key is None:
        raise KafkaException(message.error())
    return ReadRecord(partition, offset, key.decode())


if __name__ == "__main__":
    main(Application)
