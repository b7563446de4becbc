"""Replica placement as Kafka's command line does it, and brokers did while there was ZooKeeper. Source: ``AdminUtils``.

First replicas go round the brokers; the others follow at a distance that grows by one each time round, so that a broker's
partitions do not all have their second replica on the same other broker.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from groupcoord.protocol.errors import ErrorCode


class BrokerRack(NamedTuple):
    """A broker, and its rack if it says."""

    id: int
    rack: str | None = None


class PlacementError(Exception):
    """There is no placement; ``code`` is what a broker would answer."""

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

    ``start`` and ``shift`` are drawn at random by Kafka, each below the number of brokers. If any broker has a rack all need
    one, and the replicas of a partition are spread over as many racks as there are. Raises PlacementError.
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
    """The brokers such that neighbours are in different racks: one of each rack in turn, racks by name, brokers by id."""
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker], []).append(broker)
    longest = max([len(brokers) for brokers in by_rack.values()], default=0)
    return [by_rack[rack][ctx] for ctx in range(longest) for rack in sorted(by_rack) if ctx < len(by_rack[rack])]


def _spread_over_racks(row: Sequence[int], racks: Mapping[int, str], first: int, shift: int, factor: int) -> list[int]:
    """Pass over a broker that has a replica, and a rack that has one as long as another has none."""
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
