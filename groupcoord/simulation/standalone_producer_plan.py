"""The plan of standalone producers, which run in simulations of failing brokers."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

WRITTEN_TOPIC = "shipments"
"""The topic to which they write."""

ACKS_AND_IDEMPOTENCE = ((0, False), (1, False), (-1, False), (-1, True))
"""The possible pairs of ``acks`` and whether the producer is idempotent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandaloneProducerPlan:
    """A producer without group and transactions, which writes every ``interval_ms``."""

    name: str
    acks: int
    """0: none, 1: the leader, -1: all in-sync replicas."""
    idempotent: bool = False
    interval_ms: int = 3_000

    def text(self) -> str:
        """The producer in one line."""
        acks = "all" if self.acks < 0 else self.acks
        how = ", idempotent" if self.idempotent else ""
        return f"{self.name} writes every {self.interval_ms} ms to {WRITTEN_TOPIC} with acks={acks}{how}"


def draw_standalone_producers(random: Random, intervals_ms: Sequence[int]) -> tuple[StandaloneProducerPlan, ...]:
    """Draw two plans, the first of which has acks=all."""
    kinds = ((-1, random.randrange(0, 2) == 0), random.choice(ACKS_AND_IDEMPOTENCE))
    return tuple(
        StandaloneProducerPlan(
            name=f"w{number}", acks=acks, idempotent=idempotent, interval_ms=random.choice(intervals_ms)
        )
        for number, (acks, idempotent) in enumerate(kinds, 1)
    )
