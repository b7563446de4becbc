"""A server whose process stands still for longer than a session: whoever sent a heartbeat in time is still a member afterwards.

A heartbeat counts as sent in time if it is in the socket before the session of its member has passed since the one before was
sent. A member that is silent all the while must be gone: else the pause was too short to show anything.
"""

import contextlib
import random
import signal
import time
from collections.abc import Sequence
from typing import NamedTuple

from groupcoord.protocol.messages import DescribeGroupsRequest
from tests.reliability.fairness import REQUESTS, greedy_clients
from tests.reliability.outcome import Outcome
from tests.reliability.requests import joined
from tests.reliability.served import Served, served
from tests.reliability.talk import Talk
from tests.suspending import suspend

SESSION_MS = 1_000
MEMBERS = 50
GREEDY = 300
PATIENCE_SECONDS = 15.0


def attack(
    count: int = 6, seed: int = 0, *, members: int = MEMBERS, greedy: int = GREEDY, arguments: Sequence[str] = ()
) -> Outcome:
    """``count`` pauses; in the second half of them so many ``greedy`` clients send far ahead, all the time."""
    chance = random.Random(seed)
    problems: list[str] = []
    in_time = 0
    shortest = f"group.min.session.timeout.ms={SESSION_MS}"
    options = ("--quiet", "--dev", "-c", shortest, "--topic", "orders:6", *arguments)
    with served(*options) as server, contextlib.ExitStack() as beside:
        crew = [beside.enter_context(Member(server, f"group-{number}")) for number in range(members)]
        for number in range(count):
            if greedy and number == (count + 1) // 2:
                beside.enter_context(greedy_clients(server, greedy, REQUESTS))()
            came = pause(server, crew, SESSION_MS * chance.uniform(1.1, 1.5), f"silent-{number}")
            which = f"pause {number} of seed {seed}"
            if came.in_time:
                in_time += members
                if came.expired:
                    problems.append(f"{which}: {came.expired} of {members} members expired")
            if not came.silent_expired:
                problems.append(f"{which}: a member that sent nothing did not expire")
    return Outcome(
        tried=f"{count} pauses of the process, each longer than a session of {SESSION_MS} ms, with {members} members",
        result=f"{in_time} heartbeats lay in the sockets in time, {len(problems)} pauses in which a member expired",
        problems=tuple(problems),
    )


class Member(Talk):
    """The one member of ``group``, in a stable generation, and its connection."""

    def __init__(self, server: Served, group: str) -> None:
        super().__init__(server.address, PATIENCE_SECONDS)
        self.group = group
        self.join()

    def join(self) -> None:
        """Join, or join again as somebody new."""
        self._membership = joined(self, self.group, SESSION_MS)

    def send_heartbeat(self) -> None:
        """Send one, and do not wait for the answer."""
        self.send(self._membership.heartbeat())

    def is_member(self) -> bool:
        """Does the answer to the heartbeat say that it still is a member?"""
        return not self.answer().error_code


class Pause(NamedTuple):
    """What came of one: were all heartbeats sent in time, how many members have expired, and has the one that was silent?"""

    in_time: bool
    expired: int
    silent_expired: bool


def pause(server: Served, crew: Sequence[Member], pause_ms: float, name: str) -> Pause:
    """Stop the process for so long, with a heartbeat of everybody in its socket; ``name`` is for the silent member's group."""
    with Member(server, name) as silent:
        renewed_after = time.monotonic()
        for member in crew:
            member.send_heartbeat()
        for member in crew:
            if not member.is_member():  # since the pause before; nobody was in a hurry there
                member.join()
        suspend(server.process)
        for member in crew:
            member.send_heartbeat()
        in_time = time.monotonic() - renewed_after < SESSION_MS / 1_000
        silent.hears(pause_ms / 1_000)  # nothing comes: this is how the time passes
        server.process.send_signal(signal.SIGCONT)
        kept = sum(member.is_member() for member in crew)
        return Pause(in_time, len(crew) - kept, _has_expired(silent))


def _has_expired(member: Member) -> bool:
    """Does the server say, before long, that nobody is in this member's group?"""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        (group,) = member.ask(DescribeGroupsRequest(groups=(member.group,))).groups
        if not group.members:
            return True
    return False
