"""Applies the user's key and value deserializers to records before the consumer returns them."""

from collections.abc import Callable
from typing import Any

from groupcoord.assignors import TopicPartition
from groupcoord.client.assigned_partitions import AssignedPartitions
from groupcoord.client.client_errors import RecordDeserializationError
from groupcoord.client.completed_fetch import ConsumerRecord


class RecordDeserializer:
    """Deserializes the records taken from ``partitions``; None stays None. Source: ``CompletedFetch.parseRecord``."""

    def __init__(
        self,
        partitions: AssignedPartitions,
        of_keys: Callable[[bytes], Any] | None,
        of_values: Callable[[bytes], Any] | None,
    ) -> None:
        self._partitions = partitions
        self._of_keys = of_keys
        self._of_values = of_values

    def one(self, record: ConsumerRecord) -> ConsumerRecord:
        """``record`` deserialized. Raises RecordDeserializationError; the position then stays at the record."""
        if self._of_keys is None and self._of_values is None:
            return record
        try:
            return self._deserialized(record)
        except RecordDeserializationError:
            self._go_back_to(record)
            raise

    def many(self, taken: dict[TopicPartition, list[ConsumerRecord]]) -> dict[TopicPartition, list[ConsumerRecord]]:
        """The records of ``taken`` deserialized, of each partition up to the first that fails; the position stays there.

        Raises RecordDeserializationError if no record is left.
        """
        if self._of_keys is None and self._of_values is None:
            return taken
        done: dict[TopicPartition, list[ConsumerRecord]] = {}
        problem: RecordDeserializationError | None = None
        for partition, records in taken.items():
            for record in records:
                try:
                    done.setdefault(partition, []).append(self._deserialized(record))
                except RecordDeserializationError as error:
                    problem = error
                    self._go_back_to(record)
                    break
        found = {partition: records for partition, records in done.items() if records}
        if problem is not None and not found:
            raise problem
        return found

    def _deserialized(self, record: ConsumerRecord) -> ConsumerRecord:
        part = "key"
        try:
            key, value = record.key, record.value
            if self._of_keys is not None and key is not None:
                key = self._of_keys(key)
            part = "value"
            if self._of_values is not None and value is not None:
                value = self._of_values(value)
        except Exception as error:
            raise RecordDeserializationError((record.topic, record.partition), record.offset, part) from error
        return record._replace(key=key, value=value)

    def _go_back_to(self, record: ConsumerRecord) -> None:
        """Move the position back to ``record``, which the user did not get."""
        state = self._partitions[record.topic, record.partition]
        settled = state.settled, state.settled_epoch
        state.move_to(record.offset)
        state.settled, state.settled_epoch = settled
