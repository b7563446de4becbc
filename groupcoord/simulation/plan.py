"""The plan of a run: the members of the group and all actions, as data. A run is a function of its plan."""

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace


class ActionKind(enum.Enum):
    """What can happen to a member or to the brokers. The value is the text, with placeholders."""

    CRASH = "{member} crashes, and is started again {time} later"
    LEAVE = "{member} closes its consumer, and is started again {time} later"
    PAUSE = "{member} is suspended for {time}: it sends and reads nothing, no timer runs"
    BUSY = "{member} does not poll for {time}: heartbeats go on, callbacks wait"
    RESET = "the connections of {member} are reset, and it notices at once"
    LOSE_REQUESTS = "the connections of {member} break without its noticing; requests under way are lost"
    LOSE_ANSWERS = "the connections of {member} break without its noticing; responses under way are lost"
    SLOW = "messages of {member} take up to {amount} ms, for {time}"
    PARTITION = "{member} is cut off from all brokers for {time}; messages arrive late"
    BLACKOUT = "{member} is cut off from all brokers for {time}; messages are lost"
    TWIN = "another process starts with the instance id of {member}, for {time}"
    SUBSCRIBE = "{member} changes its subscription"
    REJOIN = "{member} asks for a rebalance"
    RELOAD = "the coordinator resigns; {time} later it comes back and reads its log for {amount} ms"
    MOVE = "another broker becomes the coordinator, and reads its log for {amount} ms"
    FAIL_APPEND = "the next append to __consumer_offsets fails: {error}"
    HOLD_APPEND = "the next append to __consumer_offsets takes {time}"
    LOSE_APPEND = "the next append to __consumer_offsets takes {time}, and then fails: {error}"


BROKER_ACTIONS = frozenset(
    {ActionKind.RELOAD, ActionKind.MOVE, ActionKind.FAIL_APPEND, ActionKind.HOLD_APPEND, ActionKind.LOSE_APPEND}
)
"""The actions that happen to the brokers. All others happen to a member."""

LOG_ERRORS = ("NOT_ENOUGH_REPLICAS", "NOT_LEADER_OR_FOLLOWER", "KAFKA_STORAGE_ERROR")
"""The log errors that ``amount`` chooses from: those that clients retry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAction:
    """An action at ``at_ms``, for ``for_ms``. ``member`` is an index into the plan; ``amount`` means what ``kind`` says."""

    at_ms: int
    kind: ActionKind
    member: int = 0
    for_ms: int = 0
    amount: int = 0

    def text(self, members: "tuple[MemberPlan, ...]") -> str:
        """The action in one line."""
        return self.kind.value.format(
            member=members[self.member].name, time=duration(self.for_ms), amount=self.amount, error=self.error
        )

    @property
    def error(self) -> str:
        """The log error, for kinds that have one."""
        return LOG_ERRORS[self.amount % len(LOG_ERRORS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberPlan:
    """One member, which may be started several times. Times are milliseconds; ``assignors`` in order of preference."""

    name: str
    assignors: tuple[str, ...]
    topics: tuple[str, ...]
    instance_id: str | None = None
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 60_000
    commit_interval_ms: int = 60_000
    callback_ms: int = 0
    """How long rebalance callbacks take."""

    def text(self) -> str:
        """The member in one line."""
        static = f", static as {self.instance_id}" if self.instance_id is not None else ""
        return (
            f"{self.name} has the assignors {', '.join(self.assignors)}, subscribes to {', '.join(self.topics)}{static}; "
            f"session {duration(self.session_timeout_ms)}, heartbeats every {duration(self.heartbeat_interval_ms)}, "
            f"max.poll.interval {duration(self.max_poll_interval_ms)}, commits every {duration(self.commit_interval_ms)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationPlan:
    """Everything about a run. From ``heal_ms`` on there are no more actions, and all members are running."""

    members: tuple[MemberPlan, ...]
    topics: Mapping[str, int]
    actions: tuple[PlannedAction, ...]
    heal_ms: int
    key: int = 0
    """The key of all random draws of the network and the brokers."""
    brokers: int = 1
    kept: tuple[int, ...] | None = None
    """The numbers of the actions within the full plan, if some were left out."""

    @property
    def recovery_ms(self) -> int:
        """The time after ``heal_ms`` within which the group must converge.

        A member that is gone is noticed when its session or a rebalance ends. The first JoinGroup of a newcomer may keep the
        group waiting for 5 minutes (Kafka's limit). A request without a response is given up after 30 seconds, one that waits
        for other members 5 seconds after the rebalance timeout. A cooperative group rebalances once more.
        """
        sessions = max(member.session_timeout_ms for member in self.members)
        rebalances = max(member.max_poll_interval_ms for member in self.members)
        return 300_000 + 2 * sessions + 3 * rebalances

    @property
    def end_ms(self) -> int:
        """When the run ends."""
        return self.heal_ms + self.recovery_ms

    def keep(self, numbers: Collection[int]) -> "SimulationPlan":
        """The plan with only these actions, counted from 0 in the full plan. Raises ValueError for unknown numbers."""
        known = self.kept if self.kept is not None else tuple(range(len(self.actions)))
        if not set(numbers) <= set(known):
            raise ValueError(f"the plan has only the actions {', '.join(map(str, known)) or '(none)'}")
        kept = tuple(number for number in known if number in set(numbers))
        return replace(self, actions=tuple(self.actions[known.index(number)] for number in kept), kept=kept)

    def numbered(self) -> list[tuple[int, PlannedAction]]:
        """The actions with their numbers."""
        return list(zip(self.kept if self.kept is not None else range(len(self.actions)), self.actions, strict=True))


def duration(ms: int) -> str:
    """Milliseconds as text."""
    return f"{ms} ms" if ms < 1_000 else f"{ms / 1_000:g} s"
