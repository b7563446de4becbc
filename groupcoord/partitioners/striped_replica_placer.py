"""Replica placement as a KRaft controller does it for new topics. Source: ``StripedReplicaPlacer``.

Replicas are striped over racks, leaders go round all brokers that are up, and brokers that are down come last within their
rack. When everybody up has led once, the order is shuffled so that the same sets do not come again.
"""

from collections.abc import Iterable
from typing import NamedTuple

from groupcoord.core.java import compare_key, hash_map_order, string_hash
from groupcoord.partitioners.java_random import Random, shuffle
from groupcoord.partitioners.replica_assignment import PlacementError
from groupcoord.protocol.errors import ErrorCode


class UsableBroker(NamedTuple):
    """A registered broker; ``fenced`` means that it is down, or not up yet."""

    id: int
    rack: str | None = None
    fenced: bool = False


def place_replicas(
    brokers: Iterable[UsableBroker], partitions: int, replication_factor: int, random: Random
) -> list[list[int]]:
    """For each partition its brokers, the preferred leader first. Raises PlacementError."""
    brokers = list(brokers)
    stripes = _Stripes(brokers, random)
    unfenced = sum(not broker.fenced for broker in brokers)
    check_replication_factor(replication_factor, unfenced=unfenced, registered=len(brokers))
    return [stripes.place(replication_factor) for _ in range(partitions)]


def check_replication_factor(replication_factor: int, *, unfenced: int, registered: int) -> None:
    """Can a partition have so many replicas, where so many brokers are up and known? Raises PlacementError."""
    if replication_factor <= 0:
        text = f"Invalid replication factor {replication_factor}: the replication factor must be positive."
    elif unfenced == 0:
        text = "All brokers are currently fenced, or have all their log directories cordoned."
    elif replication_factor > registered:
        text = (
            f"The target replication factor of {replication_factor} cannot be reached because only {registered} broker(s) "
            "are registered or some brokers have all their log directories cordoned."
        )
    else:
        return
    raise PlacementError(ErrorCode.INVALID_REPLICATION_FACTOR, text)


class _Ring:
    """The brokers of one rack that are all up, or all down."""

    def __init__(self, brokers: Iterable[int], random: Random) -> None:
        self.brokers = sorted(brokers)
        self._index = 0
        self._epoch = 0
        self._offset = random.next_int(len(self.brokers)) if self.brokers else 0

    def next(self, epoch: int) -> int | None:
        """The next one; none is named twice in an epoch, and each epoch starts one further on."""
        if self._epoch != epoch and self.brokers:
            self._epoch, self._index = epoch, 0
            self._offset = (self._offset + 1) % len(self.brokers)
        if self._index >= len(self.brokers):
            return None
        self._index += 1
        return self.brokers[(self._index - 1 + self._offset) % len(self.brokers)]


class _Rack(NamedTuple):
    fenced: _Ring
    unfenced: _Ring

    def next(self, epoch: int) -> int | None:
        broker = self.unfenced.next(epoch)
        return self.fenced.next(epoch) if broker is None else broker


class _Stripes:
    def __init__(self, brokers: list[UsableBroker], random: Random) -> None:
        self._random = random
        self._unfenced = sum(not broker.fenced for broker in brokers)
        # Chance is drawn in the order of a HashMap of optional names.
        names = hash_map_order(
            [broker.rack for broker in brokers], lambda name: string_hash(name) if name is not None else 0
        )
        self._racks = {
            name: _Rack(
                *[
                    _Ring([broker.id for broker in brokers if (broker.rack, broker.fenced) == (name, fenced)], random)
                    for fenced in (True, False)
                ]
            )
            for name in names
        }
        self._names = sorted(names, key=lambda name: (name is not None, compare_key(name or "")))
        self._epoch = 0
        self._offset = random.next_int(len(self._names)) if self._names else 0

    def place(self, replication_factor: int) -> list[int]:
        if self._epoch == self._unfenced > 1:
            self._shuffle()
            self._epoch = 0
        if self._offset == len(self._names):
            self._offset = 0
        at, leader = self._offset, self._racks[self._names[self._offset]].unfenced.next(self._epoch)
        while leader is None:
            at = (at + 1) % len(self._names)
            leader = self._racks[self._names[at]].unfenced.next(self._epoch)
        replicas = [leader]
        skip: int | None = at
        at = self._offset
        while len(replicas) < replication_factor:
            if at == skip:
                skip = None  # the leader's rack has had its turn
            elif (broker := self._racks[self._names[at]].next(self._epoch)) is not None:
                replicas.append(broker)
            at = (at + 1) % len(self._names)
        self._epoch += 1
        self._offset += 1
        return replicas

    def _shuffle(self) -> None:
        shuffle(self._names, self._random)
        for rack in self._racks.values():
            shuffle(rack.fenced.brokers, self._random)
            shuffle(rack.unfenced.brokers, self._random)
