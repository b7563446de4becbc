"""Randomness from a seed: the same cluster gives the same ids."""

import random
import uuid


class SeededRandomSource:
    """A ``cluster_core.RandomSource`` that draws from ``seed``; with None, it differs from run to run."""

    def __init__(self, seed: int | None) -> None:
        self._random = random.Random(seed)  # noqa: S311 - not for secrets

    def uuid(self) -> uuid.UUID:
        """An id of which Kafka's text does not start with a dash, as Kafka draws them (``Uuid.randomUuid``)."""
        while (drawn := uuid.UUID(int=self._random.getrandbits(128), version=4)).bytes[0] >> 2 == 0b111110:
            pass
        return drawn

    def session_id(self) -> int:
        """An int32 above 0."""
        return self._random.randrange(1, 1 << 31)

    def next_int(self, bound: int) -> int:
        """An int from 0 up to ``bound``: where the replicas of a new topic begin."""
        return self._random.randrange(bound)

    def fraction(self) -> float:
        """A number from 0 up to 1: what spreads the back-offs of members."""
        return self._random.random()
