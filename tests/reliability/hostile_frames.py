"""Hundreds of thousands of hostile frames over raw sockets, beside a client that behaves.

``python -m tests.reliability.hostile_frames SEED CASE`` shows what one connection sent.
"""

import contextlib
import errno
import itertools
import re
import selectors
import socket
import struct
import sys
import tempfile
import time
import uuid
from pathlib import Path

from groupcoord.protocol.apis.delete_topics import DeleteTopicState
from groupcoord.protocol.messages import DeleteGroupsRequest, DeleteTopicsRequest, ListGroupsRequest, MetadataRequest
from tests.reliability import quiet
from tests.reliability.hostile import LAST_CORRELATION_ID, TOPIC, Case, Frames
from tests.reliability.outcome import Outcome
from tests.reliability.quiet import Quiet
from tests.reliability.requests import create, describe
from tests.reliability.served import Served, served
from tests.reliability.talk import Address, Talk

AT_ONCE = 48
"""So many hostile connections at a time."""
PATIENCE_SECONDS = 0.4
"""A peer whose request waits for others (JoinGroup, Fetch) goes away after so long."""
TIDY_SECONDS = 2.0
MOST_MB = 400
MOST_PROBLEMS = 20
SERVE = (
    "-q", "--dev", f"--topic={TOPIC}:2",
    "-c", "offsets.topic.num.partitions=4",
    "-c", "group.max.session.timeout.ms=6000",
    "-c", "producer.id.expiration.ms=5000",
    "-c", "producer.id.expiration.check.interval.ms=1000",
    "-c", "log.retention.bytes=20000000",
    "-c", "log.retention.ms=-1",
    "-c", "log.segment.bytes=4194304",
    "-c", "log.retention.check.interval.ms=1000",
)  # fmt: skip
_RESET = struct.pack("ii", 1, 0)
_BLAMED = re.compile(r"unexpected error in (\w+) v(-?\d+) of (?:h(\d{9}))?")


class Peer:
    """One hostile connection."""

    def __init__(self, case: Case, address: Address, now: float) -> None:
        self.case = case
        self.until = now + PATIENCE_SECONDS
        self.answers = 0
        self.lived = False
        """Was the valid request at the end answered?"""
        self._left = case.data
        self._received = bytearray()
        self.socket = socket.socket()
        self.socket.setblocking(False)
        problem = self.socket.connect_ex(address)
        if problem not in (0, errno.EINPROGRESS):
            self.socket.close()
            raise OSError(problem, f"cannot connect: {errno.errorcode.get(problem)}")

    def move(self, events: int) -> bool:
        """Send and receive what can be; is it at its end?"""
        try:
            if events & selectors.EVENT_WRITE:
                self._left = self._left[self.socket.send(self._left) :]
                if not self._left and self.case.leaves:
                    return True
            if events & selectors.EVENT_READ:
                data = self.socket.recv(1 << 18)
                if not data:
                    return True
                self._received += data
                return self._count()
        except BlockingIOError:
            return False
        except OSError:
            return True
        return False

    @property
    def sends(self) -> bool:
        """Is there more to send?"""
        return bool(self._left)

    def end(self) -> None:
        """Go away at once, as a process that is killed."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.socket.close()

    @property
    def handled(self) -> int:
        """How many of its frames the server has surely looked at."""
        return min(len(self.case.frames), self.answers + 1)

    def _count(self) -> bool:
        at, data = 0, self._received
        while len(data) - at >= 8:
            size, correlation_id = struct.unpack_from(">ii", data, at)
            if len(data) - at < 4 + size:
                break
            at += 4 + size
            if correlation_id == LAST_CORRELATION_ID:
                self.lived = True
            else:
                self.answers += 1
        del data[:at]
        return self.lived


class Attack:
    """All cases of one run against one server."""

    def __init__(self, server: Served, frames: Frames) -> None:
        self.problems: list[str] = []
        self.handled = self.answered = self.closed = self.lived = self.waited = self.cases = 0
        self.most_mb = 0
        self._server, self._frames = server, frames
        self._selector = selectors.DefaultSelector()
        self._peers: set[Peer] = set()
        self._numbers = itertools.count()
        self._read_to = 0

    def run(self, count: int) -> None:
        """Until ``count`` frames were looked at by the server, or too much is wrong."""
        tidy_at = said_at = time.monotonic()
        try:
            while self.handled < count and len(self.problems) < MOST_PROBLEMS:
                now = time.monotonic()
                while len(self._peers) < AT_ONCE:
                    self._begin(now)
                for key, events in self._selector.select(PATIENCE_SECONDS):
                    self._move(key.data, events)
                for peer in [peer for peer in self._peers if peer.until < now]:
                    self.waited += 1
                    self._end(peer)
                if now >= tidy_at:
                    self._look()
                    tidy_at = time.monotonic() + TIDY_SECONDS
                if now >= said_at + 10:
                    said_at = now
                    sys.stderr.write(f"  {self.handled:,} hostile frames, {self.most_mb} MB\n")
        except OSError as error:
            self.problems.append(f"the server is gone, or does not answer: {error!r}")
        finally:
            for peer in tuple(self._peers):
                self._end(peer)
            self._selector.close()

    def _begin(self, now: float) -> None:
        peer = Peer(self._frames.case(next(self._numbers)), self._server.address, now)
        self.cases += 1
        self._peers.add(peer)
        self._selector.register(peer.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, peer)

    def _move(self, peer: Peer, events: int) -> None:
        if peer.move(events):
            self._end(peer)
            if peer.lived:
                self.lived += 1
            elif not peer.case.leaves:
                self.closed += 1
        elif events & selectors.EVENT_WRITE and not peer.sends:
            self._selector.modify(peer.socket, selectors.EVENT_READ, peer)

    def _end(self, peer: Peer) -> None:
        self._selector.unregister(peer.socket)
        self._peers.discard(peer)
        peer.end()
        self.handled += peer.handled
        self.answered += peer.answers

    def _look(self) -> None:
        """Is all well? And remove topics and groups that the frames have made: they are not what must stay bounded."""
        self.look_at_log()
        self.most_mb = max(self.most_mb, self._server.memory_bytes // 1_000_000)
        if self.most_mb > MOST_MB:
            self.problems.append(f"seed {self._frames.seed}, after case {self.cases}: {self.most_mb} MB of memory")
        tidy(self._server.address)

    def look_at_log(self) -> None:
        """Every error that nobody meant to raise is a problem, with the frames of its case."""
        with self._server.log.open(encoding="utf-8", errors="replace") as log:
            log.seek(self._read_to)
            text = log.read()
            self._read_to = log.tell()
        if "unexpected error" not in text and "Traceback" not in text:
            return
        for part in text.split("unexpected error in ")[1:]:
            self._blame(f"unexpected error in {part}")
        if "unexpected error" not in text:
            self.problems.append(f"a traceback in the log: {text[-3_000:]}")

    def _blame(self, part: str) -> None:
        trace = [line for line in part.splitlines() if line.startswith((" ", "Traceback"))]
        said = next((line for line in part.splitlines()[1:] if line and not line.startswith((" ", "Traceback"))), "")
        where = next((line.strip() for line in reversed(trace) if line.startswith("  File")), "")
        found = _BLAMED.match(part)
        frames = ""
        if found and found[3]:
            case = self._frames.case(int(found[3]))
            frames = f"; case {case.number}: {' '.join(frame.hex() for frame in case.frames)}"
        self.problems.append(f"seed {self._frames.seed}: {part.splitlines()[0][:300]}: {said} ({where}){frames}")


def tidy(address: Address) -> None:
    """Remove all topics and groups but those of the attack. Raises OSError."""
    kept = {TOPIC, quiet.TOPIC, "__consumer_offsets"}
    with Talk(address) as talk:
        topics = talk.ask(MetadataRequest(topics=None)).topics
        # One by one: others should wait for what the frames do, and not for this.
        for doomed in (DeleteTopicState(topic_id=topic.topic_id) for topic in topics if topic.name not in kept):
            talk.ask(DeleteTopicsRequest(topics=(doomed,), timeout_ms=1_000))
        groups = talk.ask(ListGroupsRequest()).groups
        for group in groups:
            if group.group_id not in kept:
                talk.ask(DeleteGroupsRequest(groups_names=(group.group_id,)))


def topic_id_at(address: Address) -> uuid.UUID:
    """The id of the topic that frames are about."""
    with Talk(address) as talk:
        talk.ask(create(TOPIC, 2))
        about = talk.ask(describe(TOPIC))
    topic_id: uuid.UUID = about.topics[0].topic_id
    return topic_id


def attack(count: int, seed: int) -> Outcome:
    """``count`` hostile frames at a server with a data directory."""
    with (
        tempfile.TemporaryDirectory(prefix="hostile-") as folder,
        served(*SERVE, "--data-dir", f"{folder}/data", log=Path(folder) / "log") as server,
    ):
        run = Attack(server, Frames(seed, topic_id_at(server.address)))
        before_mb = server.memory_bytes // 1_000_000
        with Quiet(server, "use") as beside:
            began = time.monotonic()
            run.run(count)
            seconds = time.monotonic() - began
        with contextlib.suppress(OSError):
            tidy(server.address)
        run.look_at_log()
        after_mb = server.memory_bytes // 1_000_000 if server.lives else 0
    problems = run.problems
    if beside.problem is not None:
        problems.append(f"seed {seed}: the client that behaves: {beside.problem}")
    return Outcome(
        tried=f"{run.handled:,} frames in {run.cases:,} connections",
        result=(
            f"{run.handled / seconds:,.0f}/s; {run.answered:,} answered, {run.closed:,} connections closed by the server; "
            f"memory {before_mb} to {after_mb} MB, at most {run.most_mb} (bound: {MOST_MB}); a client beside waited at most "
            f"{beside.longest_ms:.0f} ms in {beside.rounds:,} rounds"
        ),
        problems=tuple(problems),
    )


if __name__ == "__main__":
    shown = Frames(int(sys.argv[1]), uuid.UUID(int=1)).case(int(sys.argv[2]))
    sys.stdout.write("".join(f"{frame.hex()}\n" for frame in shown.frames))
