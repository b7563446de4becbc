"""A random ``__consumer_offsets``: what coordinators write, in every version, with all that can come of it."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from groupcoord.core.java_hash_order import partition_for
from groupcoord.protocol.batches.record_batch import CONTROL, TRANSACTIONAL, build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    write_assignment,
    write_subscription,
)
from groupcoord.protocol.coordinator_records.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    write_key,
    write_value,
)

START_MS = 1_767_225_600_000
TOPICS = ("orders", "payments")
_MARKERS = {True: b"\0\0\0\1", False: b"\0\0\0\0"}


class RandomLog:
    """The partitions of the log, each a list of batches; the same for the same seed."""

    def __init__(self, seed: int, partitions: int, steps: int, *, with_transactions: bool = True) -> None:
        self._chance = random.Random(seed)
        self._now_ms = START_MS
        self._with_transactions = with_transactions
        self._generations: dict[str, int] = {}
        self._producers = 0
        self.groups = [f"group-{number}" for number in range(12)]
        self.batches: list[list[bytes]] = [[] for _ in range(partitions)]
        self._ends = [0] * partitions
        for _ in range(steps):
            self._step()

    def write(self, directory: Path) -> None:
        """As the folders of a broker."""
        for partition, batches in enumerate(self.batches):
            folder = directory / f"__consumer_offsets-{partition}"
            folder.mkdir(parents=True)
            (folder / f"{0:020d}.log").write_bytes(b"".join(batches))

    def leave_open(self, group: str) -> None:
        """A transaction of producer 999 that never ends, and commits of the same group behind it."""
        key = OffsetCommitKey(group=group, topic=TOPICS[0], partition=0)
        in_transaction, behind = (
            [
                (
                    write_key(key),
                    write_value(OffsetCommitValue(offset=offset, metadata="", commit_timestamp_ms=self._now_ms), 3),
                )
            ]
            for offset in (100, 60)
        )
        self._append(group, in_transaction, producer_id=999, attributes=TRANSACTIONAL)
        self._append(group, behind)

    def _step(self) -> None:
        self._now_ms += self._chance.randrange(1, 30_000)
        group = self._chance.choice(self.groups)
        what = self._chance.random()
        if what < 0.6:
            self._append(group, list(self._commits(group)))
        elif what < 0.85:
            self._append(group, [self._generation(group)])
        elif what < 0.9:
            self._append(group, [(write_key(GroupMetadataKey(group=group)), None)])
        elif self._with_transactions:
            self._transaction(group)

    def _commits(self, group: str) -> Iterator[tuple[bytes, bytes | None]]:
        for _ in range(self._chance.randrange(1, 6)):
            key = OffsetCommitKey(group=group, topic=self._chance.choice(TOPICS), partition=self._chance.randrange(4))
            value = OffsetCommitValue(
                offset=self._chance.randrange(1000),
                leader_epoch=self._chance.randrange(-1, 5),
                metadata=self._chance.choice(["", "m", "größer", "x" * 200]),
                commit_timestamp_ms=self._now_ms,
            )
            is_tombstone = self._chance.random() < 0.2
            yield write_key(key), None if is_tombstone else write_value(value, self._chance.choice([0, 2, 3, 4]))

    def _generation(self, group: str) -> tuple[bytes, bytes | None]:
        generation = self._generations[group] = self._generations.get(group, 0) + self._chance.randrange(1, 3)
        names = [f"{group}-member-{number}" for number in range(self._chance.randrange(4))]
        members = tuple(
            MemberMetadata(
                member_id=name,
                group_instance_id=None,
                client_id=f"client-{number}",
                client_host="/127.0.0.1",
                rebalance_timeout_ms=60_000,
                session_timeout_ms=1_800_000,  # longer than a test takes: nobody is to drop out meanwhile
                subscription=write_subscription(ConsumerProtocolSubscription(topics=TOPICS)),
                assignment=write_assignment(
                    ConsumerProtocolAssignment(
                        assigned_partitions=(TopicPartition(topic="orders", partitions=(number,)),)
                    )
                ),
            )
            for number, name in enumerate(names)
        )
        value = GroupMetadataValue(
            protocol_type="consumer",
            generation=generation,
            protocol="range" if names else None,
            leader=names[0] if names else None,
            current_state_timestamp_ms=self._now_ms - 5,
            members=members,
        )
        return write_key(GroupMetadataKey(group=group)), write_value(value, self._chance.choice([3, 4]))

    def _transaction(self, group: str) -> None:
        self._producers += 1
        records = [(key, value) for key, value in self._commits(group) if value is not None]
        if not records:
            return
        self._append(group, records, producer_id=self._producers, attributes=TRANSACTIONAL)
        self._append(group, list(self._commits(group)))
        marker = [(_MARKERS[self._chance.random() < 0.6], bytes(6))]
        self._append(group, marker, producer_id=self._producers, attributes=TRANSACTIONAL | CONTROL)

    def _append(
        self, group: str, records: Sequence[tuple[bytes, bytes | None]], *, producer_id: int = -1, attributes: int = 0
    ) -> None:
        partition = partition_for(group, len(self.batches))
        end = self._ends[partition]
        batch = build_batch(
            [Record(end + number, self._now_ms, key, value) for number, (key, value) in enumerate(records)],
            attributes=attributes | self._chance.randrange(5),
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            leader_epoch=0,
        )
        self.batches[partition].append(batch)
        self._ends[partition] += len(records)
