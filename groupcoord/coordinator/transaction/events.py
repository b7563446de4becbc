"""The events of the transaction coordinator (state changed, marker written …), for traces and tests."""

import enum

from groupcoord.core.events import Event, counted, event_class, partition_names


class AbortReason(enum.StrEnum):
    """Why a transaction is aborted."""

    ASKED = "its producer asked for it"
    FENCED = "another producer was initialised with its transactional id"
    TIMED_OUT = "it was open for longer than its timeout"
    FORCED = "an administrator wanted it"


@event_class
class TransactionEvent(Event):
    """Something happened to ``transactional_id``."""

    transactional_id: str


@event_class
class TransactionChanged(TransactionEvent):
    """The transaction changed from state ``before`` to ``after`` (Kafka's names), and that is stored.

    ``partitions`` are the partitions in the transaction without a marker. ``reason`` is that of an abort.
    """

    before: str
    after: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[tuple[str, int], ...]
    reason: AbortReason | None = None

    def text(self) -> str:
        among = f" with {partition_names(self.partitions)}" if self.partitions else ""
        why = f", because {self.reason}" if self.reason else ""
        who = f"producer {self.producer_id}, epoch {self.producer_epoch}"
        return f"transaction {self.transactional_id}: {self.before} → {self.after}{among} ({who}){why}"


@event_class
class TransactionRefused(TransactionEvent):
    """A request for ``transactional_id`` was refused with ``error``; ``why`` is the explanation."""

    api: str
    error: str
    why: str

    def text(self) -> str:
        return f"{self.api} of {self.transactional_id!r} refused with {self.error}: {self.why}"


@event_class
class TransactionalIdExpired(TransactionEvent):
    """The transactional id expired: it was idle for ``transactional.id.expiration.ms``."""

    def text(self) -> str:
        return (
            f"transactional id {self.transactional_id} is forgotten: it was not used for transactional.id.expiration.ms"
        )


@event_class
class MarkerWritten(TransactionEvent):
    """The marker of the transaction was written to a partition: ``committed``, or aborted."""

    topic: str
    partition: int
    committed: bool

    def text(self) -> str:
        said = "committed" if self.committed else "aborted"
        return f"{self.topic}-{self.partition} knows that transaction {self.transactional_id} is {said}"


@event_class
class TransactionsLoaded(Event):
    """Partition ``partition`` of ``__transaction_state`` is loaded: its transactional ids are served from now on."""

    partition: int
    records: int
    transactional_ids: int
    took_ms: int

    def text(self) -> str:
        read = f"{counted(self.records, 'record')} of __transaction_state-{self.partition} in {self.took_ms} ms"
        return f"read {read}: {counted(self.transactional_ids, 'transactional id')}"


@event_class
class TransactionsNotLoaded(Event):
    """Partition ``partition`` of ``__transaction_state`` could not be loaded, because of ``why``."""

    partition: int
    records: int
    why: str

    def text(self) -> str:
        return f"__transaction_state-{self.partition} could not be read after {self.records} records: {self.why}"
