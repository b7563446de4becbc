"""groupcoord's client with the interface of the other libraries' adapters: it polls in a thread of its own."""

import asyncio
from collections.abc import Iterable
from typing import Any, NamedTuple

from groupcoord.client.consumer import Consumer
from tests.clients.members import HEARTBEAT_MS, POLL_MS, Diary, Flavour, Membership
from tests.clients.support import Record

LIBRARY = "groupcoord"


class GroupcoordAdapter:
    """The consumer, on an event loop that runs whenever this thread polls, which is always.

    The assignors of a flavour are its names with commas between them, the most wanted first.
    """

    def __init__(self, membership: Membership, diary: Diary) -> None:
        self._runner = asyncio.Runner()
        self._consumer = Consumer(
            *membership.topics,
            bootstrap_servers=membership.bootstrap,
            group_id=membership.group,
            partition_assignment_strategy=membership.flavour.assignor.split(","),
            group_instance_id=membership.instance_id,
            client_id=membership.client_id,
            on_assigned=lambda partitions: diary.assigned(named(partitions)),
            on_revoked=lambda partitions: diary.revoked(named(partitions)),
            session_timeout_ms=membership.session_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            metadata_max_age_ms=membership.metadata_age_ms,
            fetch_max_wait_ms=membership.fetch_wait_ms,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        self._runner.run(self._consumer.__aenter__())

    def poll(self) -> list[Record]:
        batches = self._runner.run(self._consumer.getmany(POLL_MS))
        return [told(record) for batch in batches.values() for record in batch]

    def commit(self) -> None:
        self._runner.run(self._consumer.commit())

    def close(self) -> None:
        self._runner.run(self._consumer.__aexit__(None, None, None))
        self._runner.close()


class Place(NamedTuple):
    """A partition as the diary reads it from all libraries."""

    topic: str
    partition: int


def named(partitions: Iterable[tuple[str, int]]) -> list[Place]:
    """Partitions as the diary reads them."""
    return [Place(*partition) for partition in partitions]


def told(record: Any) -> Record:
    """A record in the terms of all libraries."""
    headers = tuple((header.key, header.value) for header in record.headers)
    return Record(record.topic, record.partition, record.offset, record.timestamp_ms, record.key, record.value, headers)


def ours(*assignors: str) -> Flavour:
    """This client with these assignors."""
    return Flavour(LIBRARY, ",".join(assignors))
