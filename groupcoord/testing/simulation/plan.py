"""The plan of a run: who is in the group, and everything that is going to be done to them. Text and numbers, no behaviour.

A run is a function of its plan. The seed makes the plan, and a failure is explained by a plan with as few actions as possible.
"""

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace


class Kind(enum.Enum):
    """What can be done to a member, or to the brokers. The value says it; who and how long are filled in."""

    CRASH = "{member} crashes, and is started again {time} later"
    LEAVE = "{member} closes its consumer, and is started again {time} later"
    PAUSE = "{member} stands still for {time}: nothing is sent, answers lie unread, no timer runs"
    BUSY = "{member} is busy with records for {time}: heartbeats go on, callbacks wait"
    RESET = "the connections of {member} are reset; it is told at once"
    LOSE_REQUESTS = "the connections of {member} break without its noticing; what it has sent is lost"
    LOSE_ANSWERS = "the connections of {member} break without its noticing; what it is answered is lost"
    SLOW = "messages of {member} take up to {amount} ms, for {time}"
    PARTITION = "{member} is cut off from all brokers for {time}; what was sent arrives late"
    BLACKOUT = "{member} is cut off from all brokers for {time}; what was sent is lost"
    TWIN = "somebody else starts with the instance id of {member}, for {time}"
    SUBSCRIBE = "{member} wants other topics than before"
    REJOIN = "{member} asks for a rebalance"
    RELOAD = "the coordinator resigns; {time} later it comes back and reads its log for {amount} ms"
    MOVE = "another broker becomes the coordinator, and reads its log for {amount} ms"
    FAIL_APPEND = "the next append to __consumer_offsets fails: {error}"
    HOLD_APPEND = "the next append to __consumer_offsets takes {time}"
    LOSE_APPEND = "the next append to __consumer_offsets takes {time}, and fails then: {error}"


OF_BROKERS = frozenset({Kind.RELOAD, Kind.MOVE, Kind.FAIL_APPEND, Kind.HOLD_APPEND, Kind.LOSE_APPEND})
"""What is not done to a member."""

LOG_ERRORS = ("NOT_ENOUGH_REPLICAS", "NOT_LEADER_OR_FOLLOWER", "KAFKA_STORAGE_ERROR")
"""The errors of the log that ``amount`` chooses from: those after which a client tries again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something is done at ``at_ms`` for ``for_ms``, to ``member`` (its place in the plan); ``amount`` is as ``kind`` says."""

    at_ms: int
    kind: Kind
    member: int = 0
    for_ms: int = 0
    amount: int = 0

    def text(self, members: "tuple[MemberPlan, ...]") -> str:
        """The action in one line."""
        return self.kind.value.format(
            member=members[self.member].name,
            time=duration(self.for_ms),
            amount=self.amount,
            error=self.error,
        )

    @property
    def error(self) -> str:
        """The error of the log, for those kinds that have one."""
        return LOG_ERRORS[self.amount % len(LOG_ERRORS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberPlan:
    """One member, which may have several lives. Times are milliseconds; ``assignors`` are what it offers, best first."""

    name: str
    assignors: tuple[str, ...]
    topics: tuple[str, ...]
    instance_id: str | None = None
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 60_000
    commit_interval_ms: int = 60_000
    callback_ms: int = 0
    """How long the user's callbacks take."""

    def text(self) -> str:
        """The member in one line."""
        static = f", static as {self.instance_id}" if self.instance_id is not None else ""
        return (
            f"{self.name} offers {', '.join(self.assignors)}, wants {', '.join(self.topics)}{static}; "
            f"session {duration(self.session_timeout_ms)}, heartbeats every {duration(self.heartbeat_interval_ms)}, "
            f"max.poll.interval {duration(self.max_poll_interval_ms)}, commits every {duration(self.commit_interval_ms)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything about a run. From ``heal_ms`` on nothing is done to anybody any more, and everybody is up again."""

    members: tuple[MemberPlan, ...]
    topics: Mapping[str, int]
    actions: tuple[Action, ...]
    heal_ms: int
    key: int = 0
    """Of all that the network and the brokers draw."""
    brokers: int = 1
    kept: tuple[int, ...] | None = None
    """Which of the actions that a seed makes these are, if they are not all."""

    @property
    def recovery_ms(self) -> int:
        """So long after healing the group is as it should be.

        A member that is gone is noticed when its session is over, or when a rebalance is; a newcomer's first JoinGroup may keep
        the group waiting for as long as Kafka lets it (5 minutes); a request without an answer is given up after 30 seconds,
        one that waits for others 5 seconds after the rebalance timeout; and a cooperative group rebalances once more.
        """
        sessions = max(member.session_timeout_ms for member in self.members)
        rebalances = max(member.max_poll_interval_ms for member in self.members)
        return 300_000 + 2 * sessions + 3 * rebalances

    @property
    def end_ms(self) -> int:
        """When the run is over."""
        return self.heal_ms + self.recovery_ms

    def keep(self, numbers: Collection[int]) -> "Plan":
        """The plan with only the actions of these numbers, counted from 0 as the seed made them.

        Raises ValueError for numbers that there are none of.
        """
        names = self.kept if self.kept is not None else tuple(range(len(self.actions)))
        if not set(numbers) <= set(names):
            raise ValueError(f"there are only the actions {', '.join(map(str, names)) or '(none)'}")
        kept = tuple(name for name in names if name in set(numbers))
        return replace(self, actions=tuple(self.actions[names.index(name)] for name in kept), kept=kept)

    def numbered(self) -> list[tuple[int, Action]]:
        """The actions with their numbers."""
        return list(zip(self.kept if self.kept is not None else range(len(self.actions)), self.actions, strict=True))


def duration(ms: int) -> str:
    """Milliseconds for people."""
    return f"{ms} ms" if ms < 1_000 else f"{ms / 1_000:g} s"
