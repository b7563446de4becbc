"""A consumer application in a thread of its own, which polls a real client and records assignments and records.

The three libraries differ in names only, so a test that is about groups is written once for all of them. Each adapter
below keeps the library's own client untouched and is only ever called from the thread of its ``Member``.
"""

import asyncio
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, ClassVar, Protocol

import aiokafka
import confluent_kafka
import kafka
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AiokafkaRange
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as AiokafkaRoundRobin
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as AiokafkaSticky
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from tests.clients.support import PATIENCE_S, Partition, Record, news

POLL_MS = 100
HEARTBEAT_MS = 100
SESSION_MS = 20_000


@dataclass(frozen=True)
class Flavour:
    """A library and the assignor it is told to use, by the name that goes over the wire."""

    library: str
    assignor: str
    protocol: str = "classic"

    def __str__(self) -> str:
        return f"{self.library}-{self.assignor}{'' if self.protocol == 'classic' else f'-{self.protocol}'}"

    @property
    def cooperative(self) -> bool:
        return self.assignor == "cooperative-sticky"


FLAVOURS = (
    Flavour("aiokafka", "range"),
    Flavour("aiokafka", "roundrobin"),
    Flavour("aiokafka", "sticky"),
    Flavour("kafka-python", "range"),
    Flavour("kafka-python", "cooperative-sticky"),
    Flavour("confluent", "range"),
    Flavour("confluent", "cooperative-sticky"),
)


@dataclass(frozen=True, kw_only=True)
class Membership:
    """How an application takes part: what every library calls by another name."""

    bootstrap: str
    flavour: Flavour
    group: str
    topics: tuple[str, ...]
    client_id: str
    instance_id: str | None = None
    session_ms: int = SESSION_MS
    metadata_age_ms: int = 300_000
    fetch_wait_ms: int = 500


@dataclass
class Diary:
    """What a member's client told its application, in order: ``("assigned" | "revoked", partitions)``, never without any."""

    entries: list[tuple[str, frozenset[Partition]]] = field(default_factory=list)
    owned: frozenset[Partition] = frozenset()

    def assigned(self, partitions: Iterable[Any]) -> None:
        """These came to those that it has."""
        self._write("assigned", partitions)
        self.owned |= named(partitions)
        news()

    def revoked(self, partitions: Iterable[Any]) -> None:
        """These went."""
        self._write("revoked", partitions)
        self.owned -= named(partitions)
        news()

    def _write(self, what: str, partitions: Iterable[Any]) -> None:
        if partitions:
            self.entries.append((what, named(partitions)))


def named(partitions: Iterable[Any]) -> frozenset[Partition]:
    """Partitions of any library, by topic and number."""
    return frozenset((partition.topic, partition.partition) for partition in partitions)


class Adapter(Protocol):
    """One library's consumer in a group."""

    def poll(self) -> list[Record]: ...
    def commit(self) -> None: ...
    def close(self) -> None: ...


class TransactionalAdapter(Adapter, Protocol):
    """Its ``member`` is that for which its library's producer is to commit offsets."""

    def member(self) -> Any: ...


class AiokafkaAdapter:
    """aiokafka on an event loop that runs whenever this thread polls, which is always."""

    ASSIGNORS: ClassVar = {"range": AiokafkaRange, "roundrobin": AiokafkaRoundRobin, "sticky": AiokafkaSticky}

    def __init__(self, membership: Membership, diary: Diary) -> None:
        self._group = membership.group
        self._runner = asyncio.Runner()
        self._runner.run(self._start(membership, diary))

    async def _start(self, membership: Membership, diary: Diary) -> None:
        class Listener(aiokafka.abc.ConsumerRebalanceListener):  # type: ignore[misc]
            def on_partitions_assigned(self, assigned: Any) -> None:
                diary.assigned(assigned)

            def on_partitions_revoked(self, revoked: Any) -> None:
                diary.revoked(revoked)

        self._consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=membership.bootstrap,
            client_id=membership.client_id,
            group_id=membership.group,
            group_instance_id=membership.instance_id,
            partition_assignment_strategy=(self.ASSIGNORS[membership.flavour.assignor],),
            session_timeout_ms=membership.session_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            metadata_max_age_ms=membership.metadata_age_ms,
            fetch_max_wait_ms=membership.fetch_wait_ms,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        self._consumer.subscribe(membership.topics, listener=Listener())
        await self._consumer.start()

    def poll(self) -> list[Record]:
        batches = self._runner.run(self._consumer.getmany(timeout_ms=POLL_MS))
        return [told_by_python(record) for batch in batches.values() for record in batch]

    def member(self) -> Any:
        return self._group  # aiokafka 0.14 does not know KIP-447

    def commit(self) -> None:
        self._runner.run(self._consumer.commit())

    def close(self) -> None:
        self._runner.run(self._consumer.stop())
        self._runner.close()


class KafkaPythonAdapter:
    """kafka-python."""

    ASSIGNORS: ClassVar = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }

    def __init__(self, membership: Membership, diary: Diary) -> None:
        class Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
            def on_partitions_assigned(self, assigned: Any) -> None:
                diary.assigned(assigned)

            def on_partitions_revoked(self, revoked: Any) -> None:
                diary.revoked(revoked)

        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=membership.bootstrap,
            client_id=membership.client_id,
            group_id=membership.group,
            group_instance_id=membership.instance_id,
            partition_assignment_strategy=(self.ASSIGNORS[membership.flavour.assignor],),
            session_timeout_ms=membership.session_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            metadata_max_age_ms=membership.metadata_age_ms,
            fetch_max_wait_ms=membership.fetch_wait_ms,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        self._consumer.subscribe(membership.topics, listener=Listener())
        # A leader that learns of the topic only after it joined joins again; and kafka-python 3.0 forgets what a rebalance
        # gives it if it is one for such news, and a poll ends in the middle of it. So let it learn of the topic first.
        self._consumer.topics()

    def poll(self) -> list[Record]:
        batches = self._consumer.poll(timeout_ms=POLL_MS)
        return [told_by_python(record) for batch in batches.values() for record in batch]

    def member(self) -> Any:
        return self._consumer.group_metadata()

    def commit(self) -> None:
        self._consumer.commit()

    def close(self) -> None:
        self._consumer.close(autocommit=False)


class ConfluentAdapter:
    """confluent-kafka, that is librdkafka."""

    def __init__(self, membership: Membership, diary: Diary) -> None:
        instance = {"group.instance.id": membership.instance_id} if membership.instance_id else {}
        of_protocol: dict[str, Any]
        if membership.flavour.protocol == "consumer":
            of_protocol = {"group.protocol": "consumer", "group.remote.assignor": membership.flavour.assignor}
        else:
            of_protocol = {
                "partition.assignment.strategy": membership.flavour.assignor,
                "session.timeout.ms": membership.session_ms,
                "heartbeat.interval.ms": HEARTBEAT_MS,
            }
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": membership.bootstrap,
                "client.id": membership.client_id,
                "group.id": membership.group,
                "topic.metadata.refresh.interval.ms": membership.metadata_age_ms,
                "fetch.wait.max.ms": membership.fetch_wait_ms,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **of_protocol,
                **instance,
            }
        )
        self._consumer.subscribe(
            list(membership.topics),
            on_assign=lambda _, assigned: diary.assigned(assigned),
            on_revoke=lambda _, revoked: diary.revoked(revoked),
        )

    def poll(self) -> list[Record]:
        return [told_by_confluent(message) for message in self._consumer.consume(500, POLL_MS / 1000)]

    def member(self) -> Any:
        return self._consumer.consumer_group_metadata()

    def commit(self) -> None:
        self._consumer.commit(asynchronous=False)

    def close(self) -> None:
        self._consumer.close()


TRANSACTIONAL_ADAPTERS: dict[str, Callable[[Membership, Diary], TransactionalAdapter]] = {
    "aiokafka": AiokafkaAdapter,
    "kafka-python": KafkaPythonAdapter,
    "confluent": ConfluentAdapter,
}
ADAPTERS: dict[str, Callable[[Membership, Diary], Adapter]] = {**TRANSACTIONAL_ADAPTERS}


class Member:
    """A running application; ends when it leaves. What fails in its thread is raised to whoever asks it anything."""

    def __init__(self, membership: Membership) -> None:
        self.membership = membership
        self.diary = Diary()
        self.quiet = False  # did its last poll find nothing, so that it is waiting for more?
        self._received: list[Record] = []
        self._wishes: SimpleQueue[tuple[Callable[[Adapter], None], Future[None]]] = SimpleQueue()
        self._leaving = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=membership.client_id, daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"<{self.membership.client_id} owns {sorted(self.diary.owned)} after {self.diary.entries}>"

    @property
    def owned(self) -> frozenset[Partition]:
        """The partitions it has been given."""
        self._raise_failure()
        return self.diary.owned

    @property
    def received(self) -> list[Record]:
        """Every record it was ever handed, in the order of partition and offset."""
        self._raise_failure()
        return sorted(self._received, key=lambda record: record[:3])

    @property
    def failure(self) -> BaseException | None:
        """Why it stopped by itself, if it did."""
        return self._failure

    def commit(self) -> None:
        """Commit the position of all it owns, and wait until that is done. Raises what the library raises."""
        wished: Future[None] = Future()
        self._wishes.put((lambda adapter: adapter.commit(), wished))
        wished.result(PATIENCE_S)

    def leave(self) -> None:
        """Close the client as an application that ends does; a static member stays in the group."""
        self.end()
        self._raise_failure()

    def end(self) -> None:
        """Leave, whatever happened to it before."""
        self._leaving.set()
        self._thread.join(PATIENCE_S)
        if self._thread.is_alive():
            raise AssertionError(f"{self} did not close within {PATIENCE_S:g} s")

    def _run(self) -> None:
        try:
            adapter = ADAPTERS[self.membership.flavour.library](self.membership, self.diary)
        except BaseException as failure:
            self._failure = failure
            news()
            return
        try:
            while not self._leaving.is_set():
                self._live(adapter)
        except BaseException as failure:
            self._failure = failure
        finally:
            adapter.close()
            news()

    def _live(self, adapter: Adapter) -> None:
        if not self._wishes.empty():
            wish, wished = self._wishes.get()
            try:
                wished.set_result(wish(adapter))
            except BaseException as failure:
                wished.set_exception(failure)
        received = adapter.poll()
        self.quiet = not received
        self._received += received
        if received:
            news()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise AssertionError(f"{self.membership.client_id} failed: {self._failure!r}") from self._failure


def told_by_python(record: Any) -> Record:
    """A record as aiokafka and kafka-python tell it."""
    headers = tuple((key, value) for key, value in record.headers)
    return Record(record.topic, record.partition, record.offset, record.timestamp, record.key, record.value, headers)


def told_by_confluent(message: Any) -> Record:
    """A record as confluent-kafka tells it. Raises KafkaException if it is not one but an error."""
    if message.error():
        raise confluent_kafka.KafkaException(message.error())
    _, timestamp_ms = message.timestamp()
    return Record(
        message.topic(),
        message.partition(),
        message.offset(),
        timestamp_ms,
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
    )
