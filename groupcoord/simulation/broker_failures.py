"""Broker failures and recoveries: brokers are killed, stopped, suspended or cut off, lose disks, or stop replicating."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence

from groupcoord.broker.leader_election_and_isr import PartitionState
from groupcoord.broker.topic_store import TopicStore
from groupcoord.cluster.broker_status import BrokerState
from groupcoord.cluster.controller import ClusterController
from groupcoord.cluster.network_cuts import CONTROLLER, Peer
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.simulation.actions import ActionKind

_Act = Callable[[ClusterController, HandlerContext, int], None]
Change = Callable[[str, Callable[[ClusterController, HandlerContext], None]], None]
"""Applies a function to the cluster controller; the text describes the change."""

_BREAKS: dict[ActionKind, _Act] = {
    ActionKind.KILL_BROKER: ClusterController.kill,
    ActionKind.STOP_BROKER: ClusterController.stop,
    ActionKind.PAUSE_BROKER: ClusterController.pause,
    ActionKind.PAUSE_REPLICATION: ClusterController.pause_replication,
}
_CUTS = frozenset({ActionKind.CUT_BROKERS, ActionKind.CUT_CONTROLLER})
_STAYS_IN_SYNC = frozenset({ActionKind.PAUSE_REPLICATION, ActionKind.CUT_BROKERS})
"""Failures after which a leader still runs and reaches the controller."""
_CLOSES_CONNECTIONS = frozenset({ActionKind.KILL_BROKER, ActionKind.STOP_BROKER})


class BrokerFailures:
    """Applies failures to brokers and ends them; a failure that is impossible in the state of the broker is skipped."""

    def __init__(self, controller: ClusterController, change: Change, ids: Sequence[int], topics: TopicStore) -> None:
        self._controller, self._change, self._ids, self._topics = controller, change, ids, topics

    def fail(self, kind: ActionKind, broker_id: int) -> bool:
        """Apply the failure ``kind`` to a broker. Returns whether its connections are closed now."""
        state = self._controller.state_of(broker_id)
        if kind is ActionKind.LOSE_DISK:
            return self._lose_disk(broker_id, state)
        kills = kind is ActionKind.KILL_BROKER and state is not BrokerState.STOPPED
        if possible := (kills or state is BrokerState.RUNNING) and self._may_fail(kind, broker_id):
            if kind in _CUTS:
                self._network("cut off", ClusterController.cut_off, kind, broker_id)
            else:
                self._act(_BREAKS[kind], broker_id)
        return possible and kind in _CLOSES_CONNECTIONS

    def _lose_disk(self, broker_id: int, state: BrokerState) -> bool:
        """Kill the broker and delete its disk; returns whether that killed it.

        It is done only if every partition has another in-sync replica on a broker that runs and reaches the controller.
        Otherwise Kafka, too, may lose acknowledged records: with the last disk that had them, because the last leader is
        elected again when no other replica is eligible, even without its disk.
        """
        if self._is_last(broker_id, self._partitions()):
            return False
        if kills := state is not BrokerState.STOPPED:
            self._act(ClusterController.kill, broker_id)
        self._act(ClusterController.lose_disk, broker_id)
        return kills

    def _may_fail(self, kind: ActionKind, broker_id: int) -> bool:
        """Whether the failure leaves each partition a replica in sync with a disk, for the reason told in ``_lose_disk``.

        The controller learns only when the session of a broker expires, or when it starts, that its disk is lost; until then
        it is in sync.
        """
        without_disk = {one for one in self._ids if self._controller.condition_of(one).lost_disk}
        partitions = (each for each in self._partitions() if not without_disk.isdisjoint(each.isr))
        return kind in _STAYS_IN_SYNC or not self._is_last(broker_id, partitions)

    def _partitions(self) -> Iterator[PartitionState]:
        return (each for topic in self._topics.all() for each in topic.metadata.partitions)

    def _is_last(self, broker_id: int, partitions: Iterable[PartitionState]) -> bool:
        """Whether, for one of the partitions, no other broker in sync runs and reaches the controller."""
        others = {
            one
            for one in self._ids
            if one not in (broker_id, *self._controller.cuts.stale)
            and self._controller.state_of(one) is BrokerState.RUNNING
        }
        return any(others.isdisjoint(each.isr) for each in partitions)

    def mend(self, kind: ActionKind, broker_id: int) -> None:
        """End the failure ``kind`` of a broker."""
        if kind is ActionKind.PAUSE_REPLICATION:
            self._act(ClusterController.resume_replication, broker_id)
        elif kind in _CUTS:
            with contextlib.suppress(
                ValueError
            ):  # a broker that was stopped or started meanwhile is not cut off any more
                self._network("reconnect", ClusterController.reconnect, kind, broker_id)
        else:
            self.revive(broker_id)

    def revive(self, broker_id: int) -> None:
        """Start or resume a broker that was stopped, killed or suspended."""
        state = self._controller.state_of(broker_id)
        if state is BrokerState.STOPPED:
            self._act(ClusterController.start, broker_id)
        elif state is BrokerState.PAUSED:
            self._act(ClusterController.resume, broker_id)

    def _network(
        self,
        action: str,
        act: Callable[[ClusterController, HandlerContext, int, Peer], None],
        kind: ActionKind,
        broker_id: int,
    ) -> None:
        following = self._ids[(self._ids.index(broker_id) + 1) % len(self._ids)]
        peer: Peer = CONTROLLER if kind is ActionKind.CUT_CONTROLLER else following
        self._change(
            f"{action} broker {broker_id} and {peer}", lambda controller, ctx: act(controller, ctx, broker_id, peer)
        )

    def _act(self, act: _Act, broker_id: int) -> None:
        action = f"{act.__name__} broker {broker_id}"
        self._change(action, lambda controller, ctx: act(controller, ctx, broker_id))
