"""The list of planted defects in coordinators and clients; each must violate an invariant, to show that the checks work.

``python -m tests.simulation.planted_defects leader-stays`` plants one, and prints how the simulation finds it.
"""

import dataclasses
import sys
from typing import Any

from groupcoord.assignors.sticky import sticky_assignors as sticky
from groupcoord.broker.producer_state_manager import ProducerStateManager
from groupcoord.client import error_reactions
from groupcoord.client.error_reactions import ErrorReaction
from groupcoord.client.member import classic_rebalance as member_rebalance
from groupcoord.client.producer.producer_config import ProducerConfig
from groupcoord.client.producer.record_accumulator import RecordAccumulator
from groupcoord.client.producer.sender import Sender
from groupcoord.coordinator import group_coordinator_shard
from groupcoord.coordinator.classic import classic_group, heartbeat
from groupcoord.coordinator.classic.classic_group import ClassicGroup
from groupcoord.coordinator.classic.classic_group_state import Member
from groupcoord.coordinator.consumer import heartbeat as consumer_heartbeat
from groupcoord.coordinator.consumer import member_update as consumer_update
from groupcoord.coordinator.consumer import records as consumer_records
from groupcoord.coordinator.consumer.consumer_group_members_and_epochs import ConsumerGroupTables
from groupcoord.coordinator.consumer.consumer_group_sessions import ConsumerGroupSessions
from groupcoord.coordinator.consumer.member import MemberState
from groupcoord.coordinator.consumer.reconciliation import FREE
from groupcoord.coordinator.offsets.committed_offsets import OffsetManager
from groupcoord.coordinator.runtime.coordinator_shard import EMPTY_RESULT
from groupcoord.coordinator.runtime.shard import ShardTimers
from groupcoord.coordinator.transaction import add_partitions_to_txn
from groupcoord.coordinator.transaction.metadata import TransactionData, TransactionMetadata, TransactionState
from groupcoord.coordinator.transaction.transaction_coordinator_shard import TransactionCoordinatorShard
from groupcoord.core.api_error import ApiError
from groupcoord.core.effects import NO_PRODUCER, Call
from groupcoord.core.java_hash_order import TimelineMap
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.coordinator_records.consumer_group_records import ConsumerGroupCurrentMemberAssignmentValue
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import SyncGroupResponse
from groupcoord.simulation.actions import ActionKind
from groupcoord.simulation.plan import (
    CLASSIC,
    CONSUMER,
    CONSUMER_OPTIONS,
    PRODUCER_OPTIONS,
    TRANSACTION_OPTIONS,
    PlanOptions,
)
from groupcoord.simulation.run import SimulationResult, simulate
from tests.simulation.planted_defect import Patch, PlantedDefect, return_none
from tests.simulation.planted_replication_defects import REPLICATION_DEFECTS

COMPLETED = frozenset({TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})


def _decrease_generation(original: Any) -> Any:
    def prepare(self: Any, ctx: Any, reason: str) -> Any:
        self.generation_id = max(self.generation_id - 1, 0)
        return original(self, ctx, reason)

    return prepare


def _keep_leader(original: Any) -> Any:
    def remove(self: Any, member: Any) -> None:
        leader = self.leader_id
        original(self, member)
        self.leader_id = leader

    return remove


def _first_choice_of_last_member(_: Any) -> Any:
    return lambda self, _: self.members.values()[-1].protocols[0][0]


def _any_metadata(_: Any) -> Any:
    return lambda self, protocol: dict(self.protocols).get(protocol, self.protocols[0][1])


def _never_cancel_syncs(original: Any) -> Any:
    def cancel(self: Any, key: Any) -> None:
        if key.kind != "sync":
            original(self, key)

    return cancel


def _double_timeout(original: Any) -> Any:
    def restart(self: Any, ctx: Any, member: Any, timeout_ms: int | None = None) -> None:
        original(self, ctx, member, 2 * member.session_timeout_ms if timeout_ms is None else timeout_ms)

    return restart


def _ignore_heartbeats(original: Any) -> Any:
    def restart(self: Any, ctx: Any, member: Any, timeout_ms: int | None = None) -> None:
        if not (isinstance(ctx.origin, Call) and ctx.origin.api.key == ApiKey.HEARTBEAT):
            original(self, ctx, member, timeout_ms)

    return restart


def _answer_twice(original: Any) -> Any:
    def answer_syncs(group: Any, ctx: Any, error: ErrorCode) -> None:
        parked = [member.parked_sync for member in group.members.values() if member.parked_sync is not None]
        original(group, ctx, error)
        for call in parked:
            ctx.reply(call, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, assignment=b""))

    return answer_syncs


def _everything_to_everyone(original: Any) -> Any:
    def written(assignment: Any) -> Any:
        everything = [partition for partitions in assignment.values() for partition in partitions]
        return original(dict.fromkeys(assignment, everything))

    return written


def _first_value_wins(original: Any) -> Any:
    def put(self: Any, key: Any, value: Any) -> None:
        if key not in self:
            original(self, key, value)

    return put


def _forget_assignments(original: Any) -> Any:
    def set_from(self: Any, value: Any) -> None:
        original(self, value)
        for member in self.members.values():
            member.assignment = b""

    return set_from


def _fence_unknown_members(original: Any) -> Any:
    def known_member(group: Any, member_id: str, instance_id: str | None) -> Any:
        try:
            return original(group, member_id, instance_id)
        except ApiError as refusal:
            raise ApiError(ErrorCode.FENCED_INSTANCE_ID, refusal.message) from refusal

    return known_member


def _ignore_rebalances(original: Any) -> Any:
    return lambda code: ErrorReaction.GO_ON if code == ErrorCode.REBALANCE_IN_PROGRESS else original(code)


def _accept_unknown_members(original: Any) -> Any:
    def known_member(group: Any, member_id: str, instance_id: str | None) -> Any:
        try:
            return original(group, member_id, instance_id)
        except ApiError:
            return group.members.values()[0]

    return known_member


def _epoch_back(original: Any) -> Any:
    return lambda group_id, epoch, metadata_hash: original(group_id, epoch - 2 if epoch > 3 else epoch, metadata_hash)


def _keep_topics(original: Any) -> Any:
    def updated(member: Any, call: Any, request: Any) -> Any:
        found = original(member, call, request)
        return dataclasses.replace(found, topics=found.topics | member.topics)

    return updated


def _read_nothing_assigned(original: Any) -> Any:
    def read_value(key: Any, data: Any) -> Any:
        value = original(key, data)
        if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
            return dataclasses.replace(value, assigned_partitions=())
        return value

    return read_value


def _wait_for_ever(original: Any) -> Any:
    def reconcile(member: Any, *args: Any, **named: Any) -> Any:
        waits = member.state is MemberState.UNRELEASED_PARTITIONS
        return member if waits else original(member, *args, **named)

    return reconcile


def _epoch_stays(_: Any) -> Any:
    def next_epoch(self: Any, timeout_ms: int, expected_epoch: int | None, now_ms: int) -> Any:
        del expected_epoch
        return self._initialised(timeout_ms, now_ms, producer_epoch=max(self.data.producer_epoch, 0))

    return next_epoch


def _store_former_epoch(original: Any) -> Any:
    def to_value(self: Any) -> Any:
        value = original(self)
        return dataclasses.replace(value, producer_epoch=value.producer_epoch - (self.state in COMPLETED))

    return to_value


def _no_producer(original: Any) -> Any:
    def apply(self: Any, *args: Any) -> None:
        original(self, *args[:-1], NO_PRODUCER)

    return apply


def _tell_nobody(original: Any) -> Any:
    def expire(self: Any) -> None:
        told = len(self._actions)
        original(self)
        del self._actions[told:]

    return expire


def _to_the_end(_: Any) -> Any:
    def insert(self: Any, batch: Any) -> None:
        self.topics[batch.partition[0]].queue(batch.partition[1]).append(batch)

    return insert


def _lost_is_stored(_: Any) -> Any:
    def request_failed(self: Any, sent: Any, _: Exception, now_ms: int) -> None:
        self.produced(sent, None, now_ms)

    return request_failed


_CONSUMERS = dataclasses.replace(CONSUMER_OPTIONS, members=(2, 4), protocols=((CONSUMER,),))
"""Members of the consumer protocol only."""

_SUBSCRIPTIONS = dataclasses.replace(_CONSUMERS, kinds=(ActionKind.SUBSCRIBE,), static_fraction=0)

_RELOADS = dataclasses.replace(_CONSUMERS, kinds=(ActionKind.RELOAD, ActionKind.PAUSE))

_PAUSES = PlanOptions(members=(2, 4), kinds=(ActionKind.PAUSE,), actions=(12, 14), commit_intervals_ms=(15_000,))
"""Plans in which members are removed while they are paused, and commit when they resume."""

_LATE = PlanOptions(
    members=(1, 2),
    kinds=(ActionKind.SLOW, ActionKind.RESET, ActionKind.REJOIN),
    actions=(120, 120),
    faults_ms=900_000,
    session_and_heartbeat_ms=((45_000, 3_000),),
    max_poll_intervals_ms=(60_000,),
    commit_intervals_ms=(500,),
    static_fraction=0,
)
"""Plans with commits in flight on a lost connection while their member joins the next generation."""

_TRANSACTIONS = dataclasses.replace(TRANSACTION_OPTIONS, members=(2, 3))

_ZOMBIES = dataclasses.replace(
    _TRANSACTIONS, protocols=((CLASSIC,),), kinds=(ActionKind.PAUSE, ActionKind.CRASH), commit_intervals_ms=(15_000,)
)
"""Plans with zombies: removed classic members that continue their transaction."""

_LATE_PRODUCERS = dataclasses.replace(
    _TRANSACTIONS,
    kinds=(ActionKind.SLOW, ActionKind.RESET, ActionKind.PARTITION),
    actions=(60, 60),
    commit_intervals_ms=(2_000,),
    faults_ms=240_000,
)
"""Plans with records in flight on a lost connection while their transaction ends."""

_CRASHES = dataclasses.replace(_ZOMBIES, kinds=(ActionKind.CRASH,), actions=(20, 20), faults_ms=120_000)
"""Plans with producers that crash during a transaction."""

_PRODUCERS = dataclasses.replace(
    PRODUCER_OPTIONS,
    kinds=(ActionKind.LOSE_ANSWERS, ActionKind.RESET, ActionKind.MOVE_OUTPUT, ActionKind.SLOW),
    brokers=(3,),
)
"""Plans with batches whose responses are lost, or that are refused because the leader has moved."""

_ALL = (
    PlantedDefect(
        "generation-back",
        "A rebalance sets the generation back by one.",
        "generations-grow",
        [Patch(ClassicGroup, "prepare_rebalance", _decrease_generation)],
    ),
    PlantedDefect(
        "leader-stays",
        "A removed leader remains the leader.",
        "leader-is-member",
        [Patch(ClassicGroup, "discard_member", _keep_leader)],
    ),
    PlantedDefect(
        "no-vote",
        "The assignor is the first choice of the last member, even if other members do not support it.",
        "common-protocol",
        [
            Patch(ClassicGroup, "select_protocol", _first_choice_of_last_member),
            Patch(Member, "metadata_of", _any_metadata),
        ],
        first_seed=12,
    ),
    PlantedDefect(
        "no-static-members",
        "A JoinGroup with an instance id that is taken adds another member.",
        "unique-instance-ids",
        [Patch(ClassicGroup, "static_member", return_none)],
    ),
    PlantedDefect(
        "sync-timer-stays",
        "The timer for missing SyncGroups is never cancelled.",
        "timers-match-state",
        [Patch(ShardTimers, "cancel", _never_cancel_syncs)],
    ),
    PlantedDefect(
        "no-join-timer",
        "A rebalance waits for its members without a timeout.",
        "timers-match-state",
        [Patch(ClassicGroup, "_schedule_join", return_none)],
    ),
    PlantedDefect(
        "heartbeat-ignored",
        "A heartbeat does not renew the session.",
        "session-timeouts",
        [Patch(ClassicGroup, "restart_session", _ignore_heartbeats)],
    ),
    PlantedDefect(
        "long-sessions",
        "A session lasts twice its timeout.",
        "session-timeouts",
        [Patch(ClassicGroup, "restart_session", _double_timeout)],
    ),
    PlantedDefect(
        "answered-again",
        "Waiting SyncGroups get two responses.",
        "one-response",
        [Patch(ClassicGroup, "answer_syncs", _answer_twice)],
    ),
    PlantedDefect(
        "all-to-all",
        "The leader assigns every partition to every member.",
        "single-owner",
        [Patch(member_rebalance, "encode_assignments", _everything_to_everyone)],
    ),
    PlantedDefect(
        "one-step",
        "cooperative-sticky assigns a partition to its new owner before the old one has revoked it.",
        "client-ownership",
        [Patch(sticky, "withhold", lambda _: lambda assignment, _: assignment)],
    ),
    PlantedDefect(
        "unfenced-commits",
        "A commit is accepted from unknown members and with any generation.",
        "commit-fencing",
        [
            Patch(classic_group, "known_member", _accept_unknown_members),
            Patch(classic_group, "current_generation", return_none),
        ],
        _PAUSES,
    ),
    PlantedDefect(
        "any-generation",
        "A commit of a member is accepted with any generation.",
        "commit-fencing",
        [Patch(classic_group, "current_generation", return_none)],
        _LATE,
    ),
    PlantedDefect(
        "first-commit-stays",
        "A committed offset is never replaced by a later one.",
        "commit-durability",
        [Patch(TimelineMap, "put", _first_value_wins)],
    ),
    PlantedDefect(
        "log-without-assignments",
        "A coordinator that loads its log ignores assignments.",
        "replay-matches-state",
        [Patch(ClassicGroup, "set_from", _forget_assignments)],
    ),
    PlantedDefect(
        "unknown-is-fenced",
        "A heartbeat of an unknown member gets FENCED_INSTANCE_ID.",
        "no-unexpected-exit",
        [Patch(heartbeat, "known_member", _fence_unknown_members)],
    ),
    PlantedDefect(
        "rebalance-ignored",
        "A member ignores that a rebalance has started.",
        "converges",
        [Patch(error_reactions, "to_heartbeat", _ignore_rebalances)],
        first_seed=22,
    ),
    PlantedDefect(
        "epoch-back",
        "The epoch of a consumer group decreases by one when it should increase.",
        "epochs-grow",
        [Patch(consumer_records, "group_epoch", _epoch_back)],
        _CONSUMERS,
    ),
    PlantedDefect(
        "nothing-is-owned",
        "A consumer group treats every partition as free.",
        "one-owner-told",
        [Patch(ConsumerGroupTables, "partition_epoch", lambda _: lambda *_: FREE)],
        _CONSUMERS,
    ),
    PlantedDefect(
        "topics-stay",
        "Topics that a member of a consumer group removes stay in its subscription.",
        "only-subscribed",
        [Patch(consumer_heartbeat, "_updated", _keep_topics)],
        _SUBSCRIPTIONS,
        first_seed=4,
    ),
    PlantedDefect(
        "no-revocation-timer",
        "A member of a consumer group has no timeout for revoking partitions.",
        "consumer-timers",
        [Patch(ConsumerGroupSessions, "start_revocation_timer", return_none)],
        _CONSUMERS,
    ),
    PlantedDefect(
        "log-without-owners",
        "A coordinator that loads its log ignores the partitions of members of consumer groups.",
        "consumer-replay",
        [Patch(group_coordinator_shard, "read_value", _read_nothing_assigned)],
        _RELOADS,
    ),
    PlantedDefect(
        "waits-for-ever",
        "A member of a consumer group never gets partitions that others had to revoke.",
        "settles",
        [Patch(consumer_update, "reconcile", _wait_for_ever)],
        _CONSUMERS,
    ),
    PlantedDefect(
        "zombies-commit",
        "Offsets in a transaction are accepted from any member, with any generation.",
        "commit-fencing",
        [Patch(ClassicGroup, "validate_transactional_offset_commit", return_none)],
        _ZOMBIES,
        first_seed=1,
    ),
    PlantedDefect(
        "old-epoch-stored",
        "The record of a completed transaction has the previous producer epoch.",
        "transaction-replay",
        [Patch(TransactionData, "to_value", _store_former_epoch)],
        _TRANSACTIONS,
        first_seed=4,
    ),
    PlantedDefect(
        "epoch-stays",
        "InitProducerId does not increase the producer epoch.",
        "one-transaction",
        [Patch(TransactionMetadata, "next_epoch", _epoch_stays)],
        _TRANSACTIONS,
        first_seed=1,
    ),
    PlantedDefect(
        "old-epochs-write",
        "Neither partitions nor the transaction coordinator check the producer epoch of writes.",
        "fenced-writes",
        [
            Patch(ProducerStateManager, "_check_epoch", return_none),
            Patch(add_partitions_to_txn, "_check_producer", return_none),
        ],
        _LATE_PRODUCERS,
        first_seed=10,
    ),
    PlantedDefect(
        "all-is-stable",
        "Open transactions do not hold the last stable offset back.",
        "stable-offset",
        [Patch(ProducerStateManager, "first_unstable_offset", lambda _: property(lambda _: None))],
        _TRANSACTIONS,
    ),
    PlantedDefect(
        "no-transaction-timeout",
        "Transactions do not time out.",
        "transactions-end",
        [Patch(TransactionCoordinatorShard, "_time_out", lambda _: lambda *_: EMPTY_RESULT)],
        _CRASHES,
        first_seed=13,
    ),
    PlantedDefect(
        "aborts-forgotten",
        "A partition does not know which transactions were aborted.",
        "only-committed",
        [Patch(ProducerStateManager, "aborted_by", return_none)],
        _TRANSACTIONS,
        first_seed=24,
    ),
    PlantedDefect(
        "offsets-at-once",
        "Offsets in a transaction are committed as soon as they are stored.",
        "exactly-once",
        [Patch(OffsetManager, "apply", _no_producer)],
        _TRANSACTIONS,
        first_seed=2,
    ),
    PlantedDefect(
        "not-idempotent",
        "The batches of a producer have no sequence numbers.",
        "stored-once",
        [Patch(ProducerConfig, "is_idempotent", lambda _: property(lambda _: False))],
        _PRODUCERS,
        first_seed=11,
    ),
    PlantedDefect(
        "retries-at-the-end",
        "A batch without a sequence number is appended to the end of the queue when it is sent again.",
        "records-in-order",
        [
            Patch(ProducerConfig, "is_idempotent", lambda _: property(lambda _: False)),
            Patch(RecordAccumulator, "_insert", _to_the_end),
        ],
        _PRODUCERS,
        first_seed=4,
    ),
    PlantedDefect(
        "lost-is-stored",
        "A producer treats a request without a response as acknowledged.",
        "acknowledged-is-stored",
        [Patch(Sender, "request_failed", _lost_is_stored)],
        _PRODUCERS,
        first_seed=13,
    ),
    PlantedDefect(
        "given-up-silently",
        "The application is not notified of records that the producer gives up.",
        "records-end",
        [Patch(Sender, "_expire", _tell_nobody)],
        dataclasses.replace(PRODUCER_OPTIONS, kinds=(ActionKind.BLACKOUT, ActionKind.PARTITION, ActionKind.PAUSE)),
        first_seed=5,
    ),
    *REPLICATION_DEFECTS,
)

PLANTED_DEFECTS = {defect.name: defect for defect in _ALL}
"""All planted defects by name."""

SEEDS = 25


def found(name: str) -> SimulationResult:
    """The first violation of any invariant by the code with the defect ``name``; raises LookupError if no seed finds one."""
    defect = PLANTED_DEFECTS[name]
    with defect.applied():
        for seed in range(defect.first_seed, defect.first_seed + SEEDS):
            result = simulate(seed, options=defect.options)
            if not result.ok:
                return result
    raise LookupError(f"no invariant was violated with {SEEDS} seeds")


if __name__ == "__main__":
    print(found(sys.argv[1]).text())  # noqa: T201 - it is a command
