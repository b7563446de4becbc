"""The registered brokers of a cluster in one process: ids, addresses, racks, fencing, and the placement of replicas.

Each broker has its own listener. All of them run in this process, with one store of topics and groups and one clock. The
controller fences a broker that does not run, or
has sent no heartbeat for too long: clients do not see it, and it leads nothing. A single broker is a cluster of one. Source:
``ClusterControlManager`` and ``ReplicationControlManager``.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from groupcoord.broker.leader_election_and_isr import Replicas
from groupcoord.config.broker_config import BrokerConfig
from groupcoord.config.listeners import Endpoint
from groupcoord.core.api_error import ApiError
from groupcoord.core.effects import Call
from groupcoord.core.scala_hash_order import mutable_map_order
from groupcoord.partitioners.java_random import Random
from groupcoord.partitioners.replica_placement import (
    PlacementError,
    UsableBroker,
    check_replication_factor,
    place_replicas,
)
from groupcoord.protocol.errors import ErrorCode


class ClusterBroker(NamedTuple):
    """A broker, and the address under which clients reach it."""

    id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool = False


class BrokerRegistry:
    """``size`` brokers whose ids count from ``first_id``.

    ``racks`` are assigned in turn, starting again if there are fewer than brokers; without any, all have ``broker.rack``.
    ``random`` chooses where the first replica of a new topic goes; a single broker does not need it. Raises ValueError for less
    than one broker, or for more racks than brokers.
    """

    def __init__(
        self, first_id: int = 1, size: int = 1, *, racks: Sequence[str] = (), random: Random | None = None
    ) -> None:
        if size < 1:
            raise ValueError(f"a cluster of {size} brokers is none")
        if len(racks) > size:
            raise ValueError(f"there are more racks ({len(racks)}) than brokers ({size})")
        if size > 1 and random is None:
            raise ValueError("several brokers need chance to place replicas")
        self.ids = range(first_id, first_id + size)
        self.epochs = {broker_id: number for number, broker_id in enumerate(self.ids, 1)}
        """The epoch of each registered broker: the offset of its registration in the metadata log."""
        self.fenced: set[int] = set()
        """The brokers that the controller has fenced, and those that are not registered."""
        self.not_running: set[int] = set()
        """The brokers that were stopped, killed or paused; the controller fences killed and paused ones only when their session
        ends."""
        self.unreachable: set[int] = set()
        """The brokers that run, but are cut off from their clients."""
        self.has_controller = True
        """Is the controller running?"""
        self._racks = tuple(racks)
        self._random = random
        # Where all brokers but the first listen, by broker and listener.
        self._served: dict[tuple[int, int], tuple[str, int]] = {}

    def __len__(self) -> int:
        return len(self.ids)

    # --- ids, addresses and racks

    def id_of(self, call: Call) -> int:
        """The id of the broker that ``call`` came to."""
        return self.ids[call.broker]

    def brokers(
        self, config: BrokerConfig, listener: int = 0, *, include_fenced: bool = False
    ) -> tuple[ClusterBroker, ...]:
        """The brokers that are registered and not fenced, with the addresses of that listener, in the order of Kafka's Java
        map. ``config`` is that of the first broker; the result is empty if the listener is not advertised.
        """
        advertised = config.advertised[listener]
        if advertised is None:
            return ()
        there = (one for one in self._registered() if include_fenced or one not in self.fenced)
        return tuple(self._broker(config, self.ids.index(broker_id), listener, advertised) for broker_id in there)

    def _registered(self) -> list[int]:
        # A Java HashMap created with that capacity iterates in the order of the ids' lowest bits.
        size = 1
        while 3 * size < 4 * len(self.ids):
            size *= 2
        return sorted(self.epochs, key=lambda broker_id: (broker_id % size, broker_id))

    def named(self, config: BrokerConfig, broker_ids: Collection[int], listener: int = 0) -> list[ClusterBroker]:
        """Those of ``broker_ids`` that are registered and not fenced, with the addresses of that listener, in the order of a
        Scala map. ``config`` is that of the first broker; the result is empty if the listener is not advertised.
        """
        advertised = config.advertised[listener]
        if advertised is None:
            return []
        there = [one for one in broker_ids if one in self.ids and one not in self.fenced]
        order = mutable_map_order(there, lambda broker_id: broker_id)
        return [self._broker(config, self.ids.index(broker_id), listener, advertised) for broker_id in order]

    def racks(self, config: BrokerConfig) -> dict[int, str | None]:
        """The rack of every broker by its id, fenced or not."""
        return {broker_id: self._rack(config, number) for number, broker_id in enumerate(self.ids)}

    def config_of(self, config: BrokerConfig, call: Call) -> BrokerConfig:
        """The configuration of the broker that ``call`` came to; ``config`` is that of the first one."""
        if not call.broker and not self._racks:
            return config
        served: list[Endpoint] = []
        advertised: list[Endpoint] = []
        for listener, first in enumerate(config.served):
            host, port = self._served.get((call.broker, listener), (first.host, first.port))
            served.append(Endpoint(first.listener, host, port))
            told = config.advertised[listener]
            if told is not None:
                broker = self._broker(config, call.broker, listener, told)
                advertised.append(Endpoint(first.listener, broker.host, broker.port))
        return config.for_broker(self.ids[call.broker], self._rack(config, call.broker), served, advertised)

    def _rack(self, config: BrokerConfig, number: int) -> str | None:
        return self._racks[number % len(self._racks)] if self._racks else config.broker_rack

    def _broker(self, config: BrokerConfig, number: int, listener: int, advertised: Endpoint) -> ClusterBroker:
        _, host, port = advertised
        if number:
            served = self._served.get((number, listener))
            if (
                served is None or port != config.served[listener].port
            ):  # another port is advertised than that of the listener
                port += number
            else:
                port = served[1]
        broker_id = self.ids[number]
        return ClusterBroker(broker_id, host, port, self._rack(config, number), broker_id in self.fenced)

    def listening_at(self, number: int, host: str, port: int, listener: int = 0) -> None:
        """Broker ``number`` (0 is the first, which is not set here) listens there; advertised, unless advertised.listeners is
        set."""
        self._served[number, listener] = host, port

    # --- placement

    def place(self, config: BrokerConfig, partitions: int, replication_factor: int) -> list[Replicas]:
        """The replicas of that many new partitions, placed over brokers and racks as by KRaft's ``StripedReplicaPlacer``.

        Raises Refused(INVALID_REPLICATION_FACTOR).
        """
        try:
            if self._random is None or len(self.ids) == 1:
                check_replication_factor(replication_factor, unfenced=1 - len(self.fenced), registered=len(self.epochs))
                return [(self.ids[0],)] * partitions
            racks = self.racks(config)
            usable = [UsableBroker(each, racks[each], each in self.fenced) for each in self._registered()]
            return [tuple(placed) for placed in place_replicas(usable, partitions, replication_factor, self._random)]
        except PlacementError as problem:
            raise ApiError(
                problem.code, f"Unable to replicate the partition {replication_factor} time(s): {problem}"
            ) from problem

    def check_new_partition(self, partition: int, broker_ids: Sequence[int], replication_factor: int | None) -> None:
        """Check that ``broker_ids`` can be the replicas of a new partition, and that one can lead it. Raises ApiError."""
        self.check_replicas(broker_ids, replication_factor)
        if self.fenced.issuperset(broker_ids):
            text = (
                f"All brokers specified in the manual partition assignment for partition {partition} are fenced or in "
                "controlled shutdown."
            )
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)

    def check_replicas(self, broker_ids: Sequence[int], replication_factor: int | None) -> None:
        """Check that ``broker_ids`` can be the replicas of a partition with that replication factor. Raises Refused."""
        text = self._fault(broker_ids)
        if text is None and replication_factor not in (None, len(broker_ids)):
            text = (
                f"The manual partition assignment includes a partition with {len(broker_ids)} replica(s), but this is not "
                f"consistent with previous partitions, which have {replication_factor} replica(s)."
            )
        if text is not None:
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)

    def _fault(self, broker_ids: Sequence[int]) -> str | None:
        if not broker_ids:
            return "The manual partition assignment includes an empty replica list."
        previous = None
        for broker_id in sorted(broker_ids):
            if broker_id not in self.epochs:
                return f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
            if broker_id == previous:
                return f"The manual partition assignment includes the broker {broker_id} more than once."
            previous = broker_id
        return None
