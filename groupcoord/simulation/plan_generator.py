"""From a seed to a plan. ``PlanOptions`` says what plans are made of. This is the only module that uses ``random``."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from groupcoord.simulation.plan import BROKER_ACTIONS, ActionKind, MemberPlan, PlannedAction, SimulationPlan

EAGER_ASSIGNORS = (("range",), ("roundrobin",), ("sticky",), ("range", "roundrobin"))
ASSIGNOR_MIXES: tuple[tuple[tuple[str, ...], ...], ...] = (
    *((assignors,) for assignors in EAGER_ASSIGNORS),
    (("cooperative-sticky",),),
    (("cooperative-sticky",),),
    # A group that is being upgraded to the cooperative protocol (KIP-429): all members have an assignor in common.
    (("range",), ("cooperative-sticky", "range")),
    (("cooperative-sticky", "range"), ("cooperative-sticky",)),
    (("range", "sticky"), ("sticky", "range"), ("sticky",)),
)
"""The lists of assignors that may meet in one group; each member has one of them."""

SESSION_AND_HEARTBEAT_MS = ((6_000, 2_000), (10_000, 3_000), (30_000, 10_000), (45_000, 3_000), (45_000, 15_000))
"""Pairs of session timeout and heartbeat interval (ms)."""

MAX_POLL_INTERVALS_MS = (10_000, 30_000, 60_000, 300_000)
"""``max.poll.interval.ms``, which is also the rebalance timeout."""

COMMIT_INTERVALS_MS = (120_000, 300_000, 600_000)
"""How often positions are committed. They are also committed before rebalances."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """What plans are made of. A plan takes one of the values of each tuple; pairs of ints are a minimum and a maximum."""

    members: tuple[int, int] = (1, 4)
    faults_ms: int = 3_600_000
    """Actions happen before this time."""
    actions: tuple[int, int] = (4, 14)
    kinds: tuple[ActionKind, ...] = tuple(ActionKind)
    assignor_mixes: tuple[tuple[tuple[str, ...], ...], ...] = ASSIGNOR_MIXES
    session_and_heartbeat_ms: tuple[tuple[int, int], ...] = SESSION_AND_HEARTBEAT_MS
    max_poll_intervals_ms: tuple[int, ...] = MAX_POLL_INTERVALS_MS
    commit_intervals_ms: tuple[int, ...] = COMMIT_INTERVALS_MS
    static_fraction: float = 0.4
    """The fraction of groups that may have static members."""
    brokers: tuple[int, ...] = (1, 1, 3)


DEFAULT_OPTIONS = PlanOptions()

_SPELL_MS = 300_000
_DURATIONS_MS = (50, 500, 2_000, 5_000, 12_000, 35_000, 50_000, 70_000, 120_000)
_BROKER_DURATIONS_MS = (5, 50, 500, 2_000, 7_000)


def plan_from_seed(
    seed: int, *, options: PlanOptions = DEFAULT_OPTIONS, keep: Sequence[int] | None = None
) -> SimulationPlan:
    """The plan of ``seed``; with ``keep`` only the actions with these numbers. Raises ValueError for unknown numbers."""
    plan = generate(Random(seed), options)  # noqa: S311 - not for cryptography
    return plan if keep is None else plan.keep(keep)


def generate(random: Random, options: PlanOptions = DEFAULT_OPTIONS) -> SimulationPlan:
    """Draw a plan. Raises ValueError if none of ``options.kinds`` is possible."""
    topics = {"orders": random.randrange(1, 9), "payments": random.randrange(1, 5)}
    members = _members(random, options)
    brokers = random.choice(options.brokers)
    kinds = tuple(
        kind
        for kind in options.kinds
        if (kind is not ActionKind.MOVE or brokers > 1) and _eligible_members(kind, members)
    )
    if not kinds and options.actions[1]:
        raise ValueError(
            "none of these kinds is possible here: MOVE needs several brokers, TWIN static members, SUBSCRIBE dynamic ones"
        )
    count = random.randrange(options.actions[0], options.actions[1] + 1)
    times = sorted(_time(random, options) for _ in range(count))
    actions = tuple(_action(random, at_ms, random.choice(kinds), members) for at_ms in times)
    key = random.getrandbits(64)
    return SimulationPlan(
        members=members, topics=topics, actions=actions, heal_ms=options.faults_ms, key=key, brokers=brokers
    )


def _members(random: Random, options: PlanOptions) -> tuple[MemberPlan, ...]:
    assignor_mix = random.choice(options.assignor_mixes)
    session_timeout_ms, heartbeat_interval_ms = random.choice(options.session_and_heartbeat_ms)
    # A member learns of a rebalance by its next heartbeat. A group that waits no longer than that rebalances for ever.
    max_poll_interval_ms = max(random.choice(options.max_poll_intervals_ms), 2 * heartbeat_interval_ms)
    commit_interval_ms = random.choice(options.commit_intervals_ms)
    may_be_static = random.randrange(0, 1_000) < options.static_fraction * 1_000
    several_topics = random.randrange(0, 4) == 0
    members = []
    for number in range(random.randrange(options.members[0], options.members[1] + 1)):
        name = "abcdefghijklmnopqrstuvwxyz"[number % 26] + (str(number // 26) if number >= 26 else "")
        static = may_be_static and random.randrange(0, 3) > 0
        topics = random.choice((("orders",), ("orders", "payments"))) if several_topics else ("orders",)
        members.append(
            MemberPlan(
                name=name,
                assignors=random.choice(assignor_mix),
                topics=topics,
                instance_id=f"instance-{name}" if static else None,
                session_timeout_ms=session_timeout_ms,
                heartbeat_interval_ms=heartbeat_interval_ms,
                max_poll_interval_ms=max_poll_interval_ms,
                commit_interval_ms=commit_interval_ms,
                callback_ms=random.choice((0, 0, 20, 2_000)),
            )
        )
    return tuple(members)


def _time(random: Random, options: PlanOptions) -> int:
    """Half of the actions are close together, at the beginning of every fourth spell, so that rebalances overlap."""
    spell = random.randrange(0, max(options.faults_ms // _SPELL_MS, 1))
    if random.randrange(0, 2):
        spell = spell // 4 * 4
        return min(spell * _SPELL_MS + random.randrange(0, 15_000), options.faults_ms)
    return min(spell * _SPELL_MS + random.randrange(0, _SPELL_MS), options.faults_ms)


def _action(random: Random, at_ms: int, kind: ActionKind, members: Sequence[MemberPlan]) -> PlannedAction:
    for_ms = random.choice(_BROKER_DURATIONS_MS if kind in BROKER_ACTIONS else _DURATIONS_MS) + random.randrange(0, 50)
    amount = random.choice((1, 20, 300, 3_000)) + random.randrange(0, 50)
    member = 0 if kind in BROKER_ACTIONS else random.choice(_eligible_members(kind, members))
    return PlannedAction(at_ms=at_ms, kind=kind, member=member, for_ms=for_ms, amount=amount)


def _eligible_members(kind: ActionKind, members: Sequence[MemberPlan]) -> list[int]:
    """The members that ``kind`` can happen to: TWIN needs a static one, SUBSCRIBE a dynamic one.

    A static member that comes back to a Stable group under a new id with another subscription does not trigger a rebalance
    unless that changes the assignor (``updateStaticMemberThenRebalanceOrCompleteJoin``): a new topic gets no owner.
    """
    static = {ActionKind.TWIN: True, ActionKind.SUBSCRIBE: False}.get(kind)
    return [
        number for number, member in enumerate(members) if static is None or static is (member.instance_id is not None)
    ]
