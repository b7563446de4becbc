"""Replica placement: the brokers of each partition, as assigned by ``AdminUtils`` and by ``StripedReplicaPlacer``.

``AdminUtils``, which brokers used with ZooKeeper and command-line tools still use: first replicas rotate over the brokers; the
others follow at a distance that grows by one each round, so that the partitions of a broker do not all have their second
replica on the same other broker. ``StripedReplicaPlacer``, of the KRaft controller for new topics: replicas are striped over
racks, leaders rotate over all unfenced brokers, and fenced brokers come last within their rack. When all have led once, the
order is shuffled so that the same sets do not repeat.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from groupcoord.core.grouping import grouped
from groupcoord.core.java_hash_order import compare_key, hash_map_order, string_hash
from groupcoord.partitioners.java_random import Random, shuffle
from groupcoord.protocol.errors import ErrorCode


class BrokerRack(NamedTuple):
    """A broker, and its rack if it has one."""

    id: int
    rack: str | None = None


class PlacementError(Exception):
    """There is no valid placement; ``code`` is the error of a broker."""

    def __init__(self, code: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.code = code


def assign_replicas(
    brokers: Sequence[BrokerRack],
    partitions: int,
    replication_factor: int,
    *,
    start: int,
    shift: int,
    first_partition: int = 0,
) -> dict[int, list[int]]:
    """Partition → its brokers, the preferred leader first; for ``partitions`` partitions from ``first_partition`` on.

    Kafka draws ``start`` and ``shift`` at random, each below the number of brokers. If any broker has a rack all need one, and
    the replicas of a partition are spread over as many racks as possible. Raises PlacementError.
    """
    if partitions <= 0:
        raise PlacementError(ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0.")
    if replication_factor <= 0:
        raise PlacementError(ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0.")
    if replication_factor > len(brokers):
        text = f"Replication factor: {replication_factor} larger than available brokers: {len(brokers)}."
        raise PlacementError(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    racks = {broker.id: broker.rack for broker in brokers if broker.rack is not None}
    if racks and len(racks) < len(brokers):
        text = "Not all brokers have rack information for replica rack aware assignment."
        raise PlacementError(ErrorCode.UNKNOWN_SERVER_ERROR, text)
    row = rack_alternated(racks) if racks else [broker.id for broker in brokers]
    placed: dict[int, list[int]] = {}
    for partition in range(max(0, first_partition), max(0, first_partition) + partitions):
        if partition > 0 and partition % len(row) == 0:
            shift += 1
        first = (partition + start) % len(row)
        if racks:
            placed[partition] = _spread_over_racks(row, racks, first, shift, replication_factor)
        else:
            others = [_follower(first, shift, number, row) for number in range(replication_factor - 1)]
            placed[partition] = [row[first], *others]
    return placed


def rack_alternated(racks: Mapping[int, str]) -> list[int]:
    """The brokers in an order with neighbours in different racks: one of each rack in turn, racks by name, brokers by id."""
    by_rack = grouped((racks[broker], broker) for broker in sorted(racks))
    longest = max([len(brokers) for brokers in by_rack.values()], default=0)
    return [by_rack[rack][ctx] for ctx in range(longest) for rack in sorted(by_rack) if ctx < len(by_rack[rack])]


def _spread_over_racks(row: Sequence[int], racks: Mapping[int, str], first: int, shift: int, factor: int) -> list[int]:
    """Skip a broker that has a replica, and a rack that has one while another has none."""
    number_of_racks = len(set(racks.values()))
    replicas = [row[first]]
    used = {racks[row[first]]}
    number = 0
    while len(replicas) < factor:
        broker = _follower(first, shift * number_of_racks, number, row)
        number += 1
        if broker not in replicas and (racks[broker] not in used or len(used) == number_of_racks):
            replicas.append(broker)
            used.add(racks[broker])
    return replicas


def _follower(first: int, shift: int, number: int, row: Sequence[int]) -> int:
    return row[(first + 1 + (shift + number) % (len(row) - 1)) % len(row)]


class UsableBroker(NamedTuple):
    """A registered broker; ``fenced`` ones are down or starting."""

    id: int
    rack: str | None = None
    fenced: bool = False


def place_replicas(
    brokers: Iterable[UsableBroker], partitions: int, replication_factor: int, random: Random
) -> list[list[int]]:
    """The brokers of each partition, the preferred leader first. Raises PlacementError."""
    brokers = list(brokers)
    stripes = _Stripes(brokers, random)
    unfenced = sum(not broker.fenced for broker in brokers)
    check_replication_factor(replication_factor, unfenced=unfenced, registered=len(brokers))
    return [stripes.place(replication_factor) for _ in range(partitions)]


def check_replication_factor(replication_factor: int, *, unfenced: int, registered: int) -> None:
    """Check that a partition can have that many replicas with these numbers of brokers. Raises PlacementError."""
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
    """The brokers of one rack that are all fenced, or all unfenced."""

    def __init__(self, brokers: Iterable[int], random: Random) -> None:
        self.brokers = sorted(brokers)
        self._index = 0
        self._epoch = 0
        self._offset = random.next_int(len(self.brokers)) if self.brokers else 0

    def next(self, epoch: int) -> int | None:
        """The next broker; none twice in an epoch, and each epoch starts with the next one."""
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
        # Random numbers are drawn in the order of a HashMap of optional names.
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
                skip = None  # the leader's rack was used
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
