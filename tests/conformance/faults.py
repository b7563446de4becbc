"""Would the recordings notice? One deliberate fault per area, each of one line, and the first story that it makes differ:
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


class Fault(NamedTuple):
    """In ``file``, ``right`` (found there once) becomes ``wrong``; ``so`` says what is then not as in Kafka."""

    file: str
    right: str
    wrong: str
    so: str


FAULTS = (
    Fault(
        f"{CLASSIC}/join.py",
        "if instance_id is None and call.version >= MEMBER_ID_REQUIRED_FROM:",
        "if instance_id is None and call.version > MEMBER_ID_REQUIRED_FROM:",
        "JoinGroup v4 takes a newcomer at once, without an id to come back with",
    ),
    Fault(
        f"{CLASSIC}/join.py",
        "if group.state is GroupState.STABLE and not changed and not leads:",
        "if group.state is GroupState.STABLE and not changed:",
        "a leader that joins again starts no rebalance",
    ),
    Fault(
        f"{CLASSIC}/rebalance.py",
        "if member.parked_join is None and member.instance_id is None:",
        "if member.parked_join is None:",
        "static members that do not come back are out with the rebalance timeout",
    ),
    Fault(
        f"{CLASSIC}/rebalance.py",
        "next_remaining = max(remaining_ms - delay_ms, 0)",
        "next_remaining = remaining_ms",
        "the initial delay has no bound",
    ),
    Fault(
        f"{CLASSIC}/sync.py",
        'assignments = {member_id: given.get(member_id, b"") for member_id in group.members}',
        "assignments = dict(given)",
        "the record of a generation names members that there are not",
    ),
    Fault(
        f"{CLASSIC}/heartbeat.py",
        "    group.restart_session(ctx, member)\n",
        "",
        "a heartbeat does not keep the session alive",
    ),
    Fault(
        f"{CLASSIC}/leave.py",
        "if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):",
        "if group.state is GroupState.STABLE:",
        "a leave during the sync phase starts no rebalance",
    ),
    Fault(
        f"{CLASSIC}/static.py",
        "skips = version >= SKIP_ASSIGNMENT_FROM",
        "skips = version > SKIP_ASSIGNMENT_FROM",
        "JoinGroup v9 does not tell a returning static leader to skip the assignment",
    ),
    Fault(
        f"{CLASSIC}/rebalance.py",
        "if member.has_satisfied_heartbeat:",
        "if False:",
        "a session ends while a request of the member is parked",
    ),
    Fault(
        f"{CLASSIC}/validate.py",
        "if mapped != member_id:",
        "if mapped != member_id and member_id in group.members:",
        "a stranger with a taken instance id is unknown and not fenced",
    ),
    Fault(
        "coordinator/offsets/commit.py",
        "if _utf16_length(metadata) > limit:",
        "if len(metadata.encode()) > limit:",
        "the limit of a commit's metadata counts bytes",
    ),
    Fault(
        f"{CLASSIC}/group.py",
        "if not self.is_empty and self.protocol_type != CONSUMER_PROTOCOL_TYPE:",
        "if not self.is_empty:",
        "no offset of a live consumer group can be deleted",
    ),
    Fault(
        "coordinator/group_admin.py",
        "for shard, group_ids in _by_shard(shard_of, request.groups).items()",
        "for shard, group_ids in ((shard_of(group_id), [group_id]) for group_id in request.groups)",
        "described groups come in the order of the request",
    ),
    Fault(
        f"{CLASSIC}/group.py",
        "committed.commit_timestamp_ms if since_ms is None else since_ms",
        "committed.commit_timestamp_ms",
        "offsets of an empty group expire by when they were committed",
    ),
    Fault(
        f"{CLASSIC}/rebalance.py",
        "current_state_timestamp_ms=self._since(),\n            members=members,",
        "current_state_timestamp_ms=-1,\n            members=members,",
        "the record of a group does not say since when it is in its state",
    ),
)


def noticed_by(fault: Fault) -> str:
    """The first story that differs from its recording with ``fault`` in the sources; empty if none does."""
    with tempfile.TemporaryDirectory(prefix="groupcoord-fault-") as folder:
        copy = Path(folder) / "groupcoord"
        shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("__pycache__"))
        broken = copy / fault.file
        broken.write_text(broken.read_text(encoding="utf-8").replace(fault.right, fault.wrong), encoding="utf-8")
        # The copy goes before what is installed; the tests are those of this folder.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, str(SOURCES.parent)])}
        command = [sys.executable, "-m", "tests.conformance.replay"]
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
