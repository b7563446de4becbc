"""Mutation test of the recordings: one deliberate fault per area, each of one line, and the first story that detects it:
``python -m tests.conformance.faults``.

Each fault is put into a copy of the sources and the stories are told to that, on the virtual clock.
"""

# ruff: noqa: T201 -- a command says what it found
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

SOURCES = Path(__file__).resolve().parents[2] / "groupcoord"
CLASSIC = "coordinator/classic"
CONSUMER = "coordinator/consumer"


class Fault(NamedTuple):
    """In ``file``, ``right`` (found there once) becomes ``wrong``; ``so`` says what is then not as in Kafka.

    ``story`` is one that detects it, and is told before the others: to tell them all would take four times as long.
    """

    file: str
    right: str
    wrong: str
    so: str
    story: str


FAULTS = (
    Fault(
        f"{CLASSIC}/join.py",
        "if instance_id is None and call.version >= MEMBER_ID_REQUIRED_FROM:",
        "if instance_id is None and call.version > MEMBER_ID_REQUIRED_FROM:",
        "JoinGroup v4 takes a newcomer at once, without an id to come back with",
        "every_version_of_joining",
    ),
    Fault(
        f"{CLASSIC}/join.py",
        "if group.state is GroupState.STABLE and not changed and not leads:",
        "if group.state is GroupState.STABLE and not changed:",
        "a leader that joins again starts no rebalance",
        "describing_in_every_version_and_state",
    ),
    Fault(
        f"{CLASSIC}/rebalance.py",
        "if member.parked_join is None and member.instance_id is None:",
        "if member.parked_join is None:",
        "static members that do not come back are out with the rebalance timeout",
        "a_static_member_that_does_not_rejoin_stays",
    ),
    Fault(
        f"{CLASSIC}/rebalance.py",
        "next_remaining = max(remaining_ms - delay_ms, 0)",
        "next_remaining = remaining_ms",
        "the initial delay has no bound",
        "an_extension_that_leaks",
    ),
    Fault(
        f"{CLASSIC}/sync.py",
        'assignments = {member_id: given.get(member_id, b"") for member_id in group.members}',
        "assignments = dict(given)",
        "the record of a generation names members that there are not",
        "odd_assignments",
    ),
    Fault(
        f"{CLASSIC}/heartbeat.py",
        "    group.restart_session(ctx, member)\n",
        "",
        "a heartbeat does not keep the session alive",
        "heartbeats_and_commits_keep_a_session",
    ),
    Fault(
        f"{CLASSIC}/leave.py",
        "if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):",
        "if group.state is GroupState.STABLE:",
        "a leave during the sync phase starts no rebalance",
        "a_parked_sync_of_a_removed_member",
    ),
    Fault(
        f"{CLASSIC}/join.py",
        "skips = version >= SKIP_ASSIGNMENT_FROM",
        "skips = version > SKIP_ASSIGNMENT_FROM",
        "JoinGroup v9 does not tell a returning static leader to skip the assignment",
        "a_leader_is_replaced",
    ),
    Fault(
        f"{CLASSIC}/rebalance.py",
        "if member.has_satisfied_heartbeat:",
        "if False:",
        "a session ends while a request of the member is parked",
        "a_parked_member_is_not_dropped",
    ),
    Fault(
        f"{CLASSIC}/classic_group_state.py",
        "if mapped != member_id:",
        "if mapped != member_id and member_id in group.members:",
        "a stranger with a taken instance id is unknown and not fenced",
        "refusals_of_sync",
    ),
    Fault(
        "coordinator/offsets/commit.py",
        "if metadata and _utf16_length(metadata) > limit:",
        "if metadata and len(metadata.encode()) > limit:",
        "the limit of a commit's metadata counts bytes",
        "metadata_of_every_length",
    ),
    Fault(
        f"{CLASSIC}/classic_group.py",
        "if not self.is_empty and self.protocol_type != CONSUMER_PROTOCOL_TYPE:",
        "if not self.is_empty:",
        "no offset of a live consumer group can be deleted",
        "consumers_by_chance_41",
    ),
    Fault(
        "coordinator/group_admin.py",
        "for shard, group_ids in by_shard(shard_of, request.groups).items()",
        "for shard, group_ids in ((shard_of(group_id), [group_id]) for group_id in request.groups)",
        "described groups come in the order of the request",
        "describing_many",
    ),
    Fault(
        f"{CLASSIC}/classic_group.py",
        "committed.commit_timestamp_ms if since_ms is None else since_ms",
        "committed.commit_timestamp_ms",
        "offsets of an empty group expire by when they were committed",
        "offsets_after_a_minute",
    ),
    Fault(
        f"{CLASSIC}/rebalance.py",
        "current_state_timestamp_ms=self._since(),\n            members=members,",
        "current_state_timestamp_ms=-1,\n            members=members,",
        "the record of a group does not say since when it is in its state",
        "followers_wait_for_the_leader",
    ),
    Fault(
        f"{CONSUMER}/reconciliation.py",
        "case MemberState.UNREVOKED_PARTITIONS if _owns(owned, member.revoking):",
        "case MemberState.UNREVOKED_PARTITIONS if owned and _owns(owned, member.revoking):",
        "a heartbeat that does not say what it owns gives partitions back",
        "more_consumers_by_default",
    ),
    Fault(
        f"{CONSUMER}/reconciliation.py",
        "if partition in own or partition_epoch(topic_id, partition) == FREE",
        "if partition_epoch(topic_id, partition) <= target_epoch",
        "a member gets partitions that another one still has",
        "the_assignor_that_most_consumers_want",
    ),
    Fault(
        f"{CONSUMER}/reconciliation.py",
        "both = {**had, **dict.fromkeys(added[topic_id], target_epoch)}",
        "both = dict.fromkeys([*had, *added[topic_id]], target_epoch)",
        "a partition that stays is assigned at the new epoch (KIP-1251)",
        "the_assignor_that_most_consumers_want",
    ),
    Fault(
        f"{CONSUMER}/member_lookup.py",
        "if not is_greater and epoch == member.previous_member_epoch and _has_all(member, owned):",
        "if not is_greater and epoch == member.previous_member_epoch:",
        "a member may be at its previous epoch with whatever it owns",
        "answers_to_consumers_that_got_lost",
    ),
    Fault(
        f"{CONSUMER}/member_lookup.py",
        "not is_classic and not existing.is_classic and existing.member_epoch != AWAY_EPOCH",
        "not is_classic and not existing.is_classic and existing.member_epoch < AWAY_EPOCH",
        "an instance id is taken over though its member is there",
        "consumers_by_chance_0",
    ),
    Fault(
        f"{CONSUMER}/consumer_group_sessions.py",
        "metadata_hash = self.context.topics.group_hash(counts.topics())",
        "metadata_hash = self.epochs.metadata_hash",
        "the hash of a group's topics stays when the last subscriber of one leaves",
        "the_first_assignor_of_the_broker",
    ),
    Fault(
        f"{CONSUMER}/member_update.py",
        "if before is None or not _is_same(before, after):",
        "if True:",
        "the record of a target is written though it did not change",
        "the_assignor_that_most_consumers_want",
    ),
    Fault(
        f"{CONSUMER}/heartbeat.py",
        "tells_assignment = joins or is_full or updated.assigned != member.assigned",
        "tells_assignment = True",
        "every answer has the assignment",
        "the_assignor_that_most_consumers_want",
    ),
    Fault(
        f"{CONSUMER}/consumer_group_members_and_epochs.py",
        "if generation < epoch:",
        "if generation < member.member_epoch:",
        "a commit with an older epoch is refused for partitions that the member has had since (KIP-1251)",
        "commits_with_the_epoch_before",
    ),
    Fault(
        f"{CONSUMER}/migration.py",
        "records.assignment_epoch(group_id, generation, 0),",
        "records.assignment_epoch(group_id, generation, ctx.now_ms),",
        "a group that becomes a consumer group says when its target was computed",
        "consumers_by_chance_1",
    ),
    Fault(
        f"{CONSUMER}/consumer_group.py",
        "or (waits and not _waits_for_others(self, member))",
        "or waits",
        "a classic member is told to join again while others still have what it waits for",
        "a_classic_member_joins_a_consumer_group",
    ),
    Fault(
        f"{CONSUMER}/regular_expressions.py",
        "filter(expression.fullmatch, names)",
        "filter(expression.search, names)",
        "an expression matches a part of a topic's name",
        "regular_expressions_that_are_refused",
    ),
    Fault(
        "coordinator/offsets/committed_offsets.py",
        "return pending.position > (self._committed_at.get(key) or -1)",
        "return True",
        "what was committed while a transaction was open is overwritten when that ends",
        "plain_commits_beside_pending_ones",
    ),
    Fault(
        "coordinator/offsets/committed_offsets.py",
        "self.pending.remove_all((group, topic, partition))",
        "pass",
        "offsets that were deleted come back with the end of a transaction",
        "deleting_what_is_pending",
    ),
    Fault(
        "coordinator/offsets/fetch.py",
        "is_unstable = view.is_unstable if request.require_stable else _never",
        "is_unstable = _never",
        "who wants stable offsets is told those that a transaction may change",
        "every_version_of_transactional_commits",
    ),
    Fault(
        "coordinator/offsets/removal.py",
        "if over and not is_pending(group.group_id, topic, index):",
        "if over:",
        "an offset expires although a transaction is about to replace it",
        "pending_offsets_are_not_forgotten",
    ),
    Fault(
        "coordinator/transaction/metadata.py",
        'changes["producer_epoch"] = now.producer_epoch + 1',
        'changes["producer_epoch"] = now.producer_epoch',
        "the end of a transaction does not raise the producer's epoch (KIP-890)",
        "transactions_of_version_0",
    ),
    Fault(
        "coordinator/transaction/end_txn.py",
        "if data.state is _COMPLETE[request.committed] and is_repetition:",
        "if False:",
        "an end whose answer was lost is refused when it is asked for again",
        "transactions_by_chance_4",
    ),
    Fault(
        "coordinator/transaction/error_mapping.py",
        "if error is ErrorCode.PRODUCER_FENCED and call.version < PRODUCER_FENCED_FROM:",
        "if False:",
        "an old client is told a code that it does not know",
        "ending_with_the_epoch_of_before",
    ),
    Fault(
        "coordinator/transaction/transaction_coordinator_shard.py",
        "if version == transaction_log.PLAIN_VALUE_VERSION and data.client_version:",
        "if False:",
        "at transaction.version 0 a client of version 2 is served",
        "transactions_of_version_0",
    ),
    Fault(
        f"{CLASSIC}/classic_group.py",
        "if names_member and not (generation < 0 and self.is_empty):",
        "if names_member:",
        "in a transaction, somebody with an unknown member id may not commit for a group without members",
        "transactional_commits_in_every_state",
    ),
)


def noticed_by(fault: Fault) -> str:
    """The first story that differs from its recording with ``fault`` in the sources; empty if none does."""
    with tempfile.TemporaryDirectory(prefix="groupcoord-fault-") as folder:
        copy = Path(folder) / "groupcoord"
        shutil.copytree(SOURCES, copy)  # with what is compiled: but for one file, it fits
        broken = copy / fault.file
        broken.write_text(broken.read_text(encoding="utf-8").replace(fault.right, fault.wrong), encoding="utf-8")
        # The copy goes before what is installed; the tests are those of this folder.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, str(SOURCES.parent)])}
        command = [sys.executable, "-m", "tests.conformance.replay", fault.story]
        finished = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=600
        )
    if finished.returncode not in {0, 1}:
        raise SystemExit(f"{fault.file}: the stories could not be told:\n{finished.stderr}")
    return finished.stdout.strip()


def main() -> int:
    print(f"{len(FAULTS)} faults, one at a time, against the recordings")
    unnoticed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for fault, story in zip(FAULTS, pool.map(noticed_by, FAULTS), strict=True):
            unnoticed += not story
            print(f"{story or 'NOT NOTICED':45}  {fault.file}: {fault.so}", flush=True)
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
