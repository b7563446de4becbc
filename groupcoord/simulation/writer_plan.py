"""The plan of producers without transactions, in lives in which brokers fail."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

WRITTEN_TOPIC = "shipments"
"""Where they write."""

WRITERS = ((0, False), (1, False), (-1, False), (-1, True))
"""The ``acks`` that there are, and whether the producer is idempotent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterPlan:
    """A producer without transactions, which writes every ``interval_ms``."""

    name: str
    acks: int
    """0: none, 1: the leader's, -1: those of all replicas in sync."""
    idempotent: bool = False
    interval_ms: int = 3_000

    def text(self) -> str:
        """The producer in one line."""
        acks = "all" if self.acks < 0 else self.acks
        how = ", idempotent" if self.idempotent else ""
        return f"{self.name} writes every {self.interval_ms} ms to {WRITTEN_TOPIC} with acks={acks}{how}"


def draw_writers(random: Random, intervals_ms: Sequence[int]) -> tuple[WriterPlan, ...]:
    """Two, the first of which waits for all replicas."""
    kinds = ((-1, random.randrange(0, 2) == 0), random.choice(WRITERS))
    return tuple(
        WriterPlan(name=f"w{number}", acks=acks, idempotent=idempotent, interval_ms=random.choice(intervals_ms))
        for number, (acks, idempotent) in enumerate(kinds, 1)
    )
