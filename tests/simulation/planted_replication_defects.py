"""The list of planted defects in replication, for clusters whose brokers fail."""

import dataclasses
from typing import Any

from groupcoord.broker import fetch, leader_election_and_isr, produce
from groupcoord.broker.broker import Broker
from groupcoord.broker.leader_election_and_isr import NO_LEADER, Election
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.producer_state_manager import ProducerStateManager
from groupcoord.broker.topic_store import Topic
from groupcoord.cluster.controller import ClusterController
from groupcoord.cluster.coordinator_partition_writer import CoordinatorPartitionWriter
from groupcoord.cluster.replica_fetcher import ReplicaFetcher
from groupcoord.simulation.actions import ActionKind
from groupcoord.simulation.plan import FAILURE_OPTIONS
from tests.simulation.planted_defect import Patch, PlantedDefect, return_none

_NO_SUCH_ACKS = 2


def _complete_at_once(original: Any) -> Any:
    def store(self: Any, append: Any, now_ms: int) -> Any:
        effects = original(self, append, now_ms)
        if self._shard(append).awaits(append.append_id):
            effects += self._runtimes[append.topic].appended(append, now_ms)
        return effects

    return store


def _hear_of_high_watermark_with_next_records(_: Any) -> Any:
    def replicate(self: Any, ctx: Any, topic: Any, partition: int) -> None:
        if self._broker.is_led(topic, partition):
            for follower in self._followers(topic, partition):
                self._catch_up(ctx, topic, partition, follower)

    return replicate


def _truncate_at_once(original: Any) -> Any:
    def leader_changed(self: Any, ctx: Any, topic: Any, partition: int, *before: Any) -> None:
        leader = topic.metadata.leaders[partition]
        for broker_id, copy in topic.copies[partition].items():
            if leader != NO_LEADER and broker_id not in (leader, *self.cluster.not_running):
                copy.truncate_to(copy.high_watermark, ctx.now_ms)
        original(self, ctx, topic, partition, *before)

    return leader_changed


def _same_epoch(original: Any) -> Any:
    def set_state(self: Any, partition: int, state: Any, **options: Any) -> None:
        before = self.metadata.partitions[partition].leader_epoch
        original(self, partition, state, **options)
        states = list(self.metadata.partitions)
        states[partition] = states[partition]._replace(leader_epoch=before)
        self.metadata = dataclasses.replace(self.metadata, partitions=tuple(states))

    return set_state


def _truncate_first(original: Any) -> Any:
    def fetch(self: Any, ctx: Any, topic: Any, partition: int, follower: int) -> Any:
        copy = topic.copies[partition][follower]
        if copy.leader_epoch != topic.metadata.partitions[partition].leader_epoch:
            copy.truncate_to(copy.high_watermark, ctx.now_ms)
        return original(self, ctx, topic, partition, follower)

    return fetch


def _elect_anybody(original: Any) -> Any:
    return lambda state, isr, elr, may_lead, _: original(state, isr, elr, may_lead, Election.UNCLEAN)


def _alone_in_sync(original: Any) -> Any:
    def appended(self: Any, ctx: Any, topic: Any, partition: int) -> None:
        original(self, ctx, topic, partition)
        leader = topic.metadata.leaders[partition]
        if self.is_cut_off(leader):
            self.high_watermarks.isr_changed(ctx, topic.partitions[partition], leader, (leader,), 1)

    return appended


_BEHIND = dataclasses.replace(
    FAILURE_OPTIONS,
    kinds=(ActionKind.KILL_BROKER, ActionKind.PAUSE_REPLICATION),
    actions=(40, 40),
    spell_ms=15_000,
    failures_ms=(5_000, 12_000),
    write_intervals_ms=(1_000,),
    commit_intervals_ms=(2_000,),
    transactional=False,
)
"""Plans in which leaders die while in-sync followers are behind."""

_FAR_BEHIND = dataclasses.replace(_BEHIND, failures_ms=(25_000, 60_000))
"""Plans in which all brokers die except one that has long left the ISR."""

_CUT_OFF = dataclasses.replace(_BEHIND, kinds=(ActionKind.CUT_CONTROLLER,), failures_ms=(12_000, 25_000))
"""Plans in which leaders are cut off from the controller until long after they are fenced."""

_WITHOUT_DISK = dataclasses.replace(_FAR_BEHIND, kinds=(ActionKind.LOSE_DISK, ActionKind.STOP_BROKER))
"""Plans in which brokers return without their disks while all others are down."""

REPLICATION_DEFECTS = (
    PlantedDefect(
        "truncates-to-high-watermark",
        "When the leader changes, a follower truncates its log to the high watermark that it knows, as before KIP-101.",
        "read-stays",
        [
            Patch(ReplicaFetcher, "replicate", _hear_of_high_watermark_with_next_records),
            Patch(Broker, "_leader_changed", _truncate_at_once),
            Patch(ReplicaFetcher, "_fetch", _truncate_first),
            Patch(fetch, "_check_divergence", return_none),
        ],
        _BEHIND,
        first_seed=79,
    ),
    PlantedDefect(
        "epochs-not-compared",
        "A leader does not check the epoch of a follower's last record, so the follower keeps records that the leader lacks.",
        "replicas-converge",
        [Patch(fetch, "_check_divergence", return_none)],
        _BEHIND,
        first_seed=4,
    ),
    PlantedDefect(
        "leader-acknowledges",
        "A Produce with acks=all is acknowledged when only the leader has stored it.",
        "acknowledged-stays",
        [Patch(produce, "_ALL", lambda _: _NO_SUCH_ACKS)],
        _BEHIND,
        first_seed=19,
    ),
    PlantedDefect(
        "anybody-leads",
        "When no in-sync replica is left, a replica that lags behind becomes the leader.",
        "acknowledged-stays",
        [Patch(leader_election_and_isr, "_elect", _elect_anybody)],
        _FAR_BEHIND,
    ),
    PlantedDefect(
        "all-is-read",
        "Consumers get records that not all in-sync replicas have.",
        "read-stays",
        [Patch(PartitionLog, "high_watermark_position", lambda _: property(lambda self: self.end_position))],
        _BEHIND,
        first_seed=4,
    ),
    PlantedDefect(
        "epoch-goes-on",
        "A new leader does not increase the leader epoch.",
        "one-leader",
        [Patch(Topic, "set_state", _same_epoch)],
        _BEHIND,
    ),
    PlantedDefect(
        "sequences-forgotten",
        "A batch that an idempotent producer sends again is written again.",
        "written-once",
        [
            Patch(ProducerStateManager, "duplicate_of", return_none),
            Patch(ProducerStateManager, "_check_sequence", return_none),
        ],
        _BEHIND,
        first_seed=4,
    ),
    PlantedDefect(
        "leader-commits",
        "A commit is acknowledged when only the leader has stored it.",
        "commit-durability",
        [Patch(CoordinatorPartitionWriter, "_store", _complete_at_once)],
        _BEHIND,
        first_seed=5,
    ),
    PlantedDefect(
        "out-of-sync-for-ever",
        "A follower whose replication resumes never returns to the ISR.",
        "replicas-converge",
        [Patch(ClusterController, "resume_replication", return_none)],
        _BEHIND,
        first_seed=1,
    ),
    PlantedDefect(
        "alone-in-sync",
        "A leader that is cut off from the controller treats itself as the only in-sync replica.",
        "acknowledged-stays",
        [Patch(Broker, "appended", _alone_in_sync)],
        _CUT_OFF,
    ),
    PlantedDefect(
        "eligible-without-disk",
        "A broker that was killed, or lost its disk, stays an eligible leader replica.",
        "acknowledged-stays",
        [Patch(ClusterController, "_shut_down_uncleanly", return_none)],
        _WITHOUT_DISK,
        first_seed=19,
    ),
)
