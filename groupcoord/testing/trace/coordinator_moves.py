"""Moves of coordinators that have no records, told in one line: when a broker fails or starts, up to 100 partitions of
``__consumer_offsets`` and ``__transaction_state`` get another leader or other in-sync replicas, and most of them are empty.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from groupcoord.broker.events import IsrChanged, LeaderChanged, ReplicaFetched
from groupcoord.broker.topic_names import CONSUMER_OFFSETS, INTERNAL, TRANSACTION_STATE
from groupcoord.coordinator.events import ShardLoaded
from groupcoord.coordinator.transaction.events import TransactionsLoaded
from groupcoord.core.events import Event, counted
from groupcoord.testing.trace.events import BrokerTaskRun, TraceEntry


@dataclass(frozen=True, slots=True)
class CoordinatorMoves:
    """Consecutive entries about coordinators that have no records."""

    entries: tuple[TraceEntry, ...]

    @property
    def at_ms(self) -> int:
        """When the last one happened: milliseconds since the start of the trace."""
        return self.entries[-1].since_start_ms

    @property
    def words(self) -> str:
        """``broker 1 leads 8 partitions of __consumer_offsets from now on, …``."""
        found = Counter(said for entry in self.entries if (said := _said(entry.event)))
        return "; ".join(text.format(counted(count, noun)) for (text, noun), count in sorted(found.items()))

    def text(self, *, links: bool = True, real: bool = False) -> str:
        """``#175–#224 @9000 broker 1 leads …``, as ``TraceEntry.text``, with the numbers of the first and the last entry."""
        first, last = self.entries[0], self.entries[-1]
        real_time = f" ({last.real_ms} ms)" if real else ""
        return f"{f'#{first.seq}–#{last.seq} ' if links else ''}@{self.at_ms}{real_time} {self.words}"


def _said(event: Event) -> tuple[str, str] | None:
    """What is said of an event, with ``{}`` in place of the count, and what is counted."""
    match event:
        case LeaderChanged(topic=topic, leader=leader):
            who = "nobody leads" if leader < 0 else f"broker {leader} leads"
            return f"{who} {{}} of {topic} from now on", "partition"
        case IsrChanged(topic=topic):
            return f"{{}} of {topic} with other replicas in sync", "partition"
        case ShardLoaded():
            return f"start of {{}} of {CONSUMER_OFFSETS} without records", "coordinator"
        case TransactionsLoaded():
            return f"start of {{}} of {TRANSACTION_STATE} without records", "coordinator"
        case _:
            return None


def with_moves_folded(entries: Sequence[TraceEntry]) -> Iterator[TraceEntry | CoordinatorMoves]:
    """``entries`` in order, with each run of entries about coordinators without records as one CoordinatorMoves."""
    idle = _idle(entries)
    for is_idle, run in groupby(entries, key=lambda entry: entry.seq in idle):
        alike = tuple(run)
        if is_idle and len(alike) > 1:
            yield CoordinatorMoves(alike)
        else:
            yield from alike


def _idle(entries: Iterable[TraceEntry]) -> frozenset[int]:
    """The numbers of the entries about coordinators without records, and of the tasks that led to nothing else."""
    busy: set[tuple[str, int]] = set()
    moves: dict[int, tuple[str, int]] = {}
    tasks: list[TraceEntry] = []
    for entry in entries:
        match entry.event:
            case ReplicaFetched(topic=topic, partition=partition):
                busy.add((topic, partition))
            case LeaderChanged(topic=topic, partition=partition) | IsrChanged(topic=topic, partition=partition):
                if topic in INTERNAL:
                    moves[entry.seq] = topic, partition
            case (
                ShardLoaded(partition=partition, records=records)
                | TransactionsLoaded(partition=partition, records=records)
            ):
                topic = CONSUMER_OFFSETS if isinstance(entry.event, ShardLoaded) else TRANSACTION_STATE
                moves[entry.seq] = topic, partition
                if records:
                    busy.add((topic, partition))
            case BrokerTaskRun():
                tasks.append(entry)
    idle = {seq for seq, where in moves.items() if where not in busy}
    idle |= {task.seq for task in tasks if task.consequences and idle.issuperset(task.consequences)}
    return frozenset(idle)
