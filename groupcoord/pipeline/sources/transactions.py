"""Which records a consumer that reads committed does not see: those of transactions that were aborted, or are still open.

The data of a transaction stands in batches that carry its producer's id; its end is a marker, a batch of one control record,
with the same id. So the batches of a producer are decided by the next marker of that producer. Source: KIP-98,
``ProducerStateManager``.
"""

from typing import Any, NamedTuple

import numpy as np

COMMIT = 1
"""The type in the key of a marker, behind its version: 0 aborts, 1 commits."""


class Hidden(NamedTuple):
    """The batches of ``producer_id`` with base offsets from ``first`` to ``last`` are not to be seen; ``is_open``: not yet."""

    producer_id: int
    first: int
    last: int
    is_open: bool


class Transactions:
    """The transactions of one partition, batch by batch in the order of the log."""

    def __init__(self) -> None:
        self._running: dict[int, tuple[int, int]] = {}
        self._aborted: list[Hidden] = []

    def data(self, producer_id: int, base_offset: int) -> None:
        """A batch of a transaction."""
        first, _ = self._running.get(producer_id, (base_offset, 0))
        self._running[producer_id] = first, base_offset

    def end(self, producer_id: int, *, committed: bool) -> None:
        """A marker."""
        running = self._running.pop(producer_id, None)
        if running is not None and not committed:
            self._aborted.append(Hidden(producer_id, *running, is_open=False))

    def hidden(self) -> list[Hidden]:
        """What is not to be seen, if the log ends here."""
        still = [Hidden(producer_id, *running, is_open=True) for producer_id, running in self._running.items()]
        return self._aborted + still


def is_hidden(producer_ids: Any, base_offsets: Any, hidden: list[Hidden]) -> Any:
    """Which batches are, given their producers and base offsets; of batches that are in a transaction at all."""
    found = np.zeros(len(producer_ids), bool)
    for one in hidden:
        found |= (producer_ids == one.producer_id) & (base_offsets >= one.first) & (base_offsets <= one.last)
    return found
