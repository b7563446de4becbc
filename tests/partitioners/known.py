"""Loads the known results of Kafka's partitioners; tests/assignors/ORIGIN.md says where they are from."""

import json
from pathlib import Path
from typing import Any

from groupcoord.partitioners.java_random import JavaRandom, Random, bounded

KNOWN: dict[str, Any] = json.loads((Path(__file__).parent / "partitioner-placement-vectors.json").read_text())


class MockRandom:
    """The generator of Kafka's own tests."""

    def __init__(self) -> None:
        self._state = 17

    def next_bits(self, bits: int) -> int:
        self._state = self._state * 2862933555777941757 + 3037000493 & (1 << 64) - 1
        return self._state >> 64 - bits

    def next_int(self, bound: int) -> int:
        return bounded(self.next_bits, bound)


def chance(name: str) -> Random:
    """``java.util.Random(SEED)`` or ``MockRandom(17)``."""
    seed = int(name[name.index("(") + 1 : -1])
    return JavaRandom(seed) if name.startswith("java") else MockRandom()
