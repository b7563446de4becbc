"""SimulationPlan: the members, topics and actions of a run as data, and the generation of a random plan from a seed.

A run is a function of its plan. Only this module uses ``random``; ``PlanOptions`` sets the ranges to draw from.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from groupcoord.simulation.actions import (
    BROKER_ACTIONS,
    CLASSIC_KINDS,
    COORDINATOR_ACTIONS,
    FAILURES,
    GROUP_KINDS,
    TOPIC_ACTIONS,
    ActionKind,
)

WRITTEN_TOPIC = "shipments"
"""The topic to which they write."""

ACKS_AND_IDEMPOTENCE = ((0, False), (1, False), (-1, False), (-1, True))
"""The possible pairs of ``acks`` and whether the producer is idempotent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandaloneProducerPlan:
    """A producer without group and transactions, which writes every ``interval_ms``."""

    name: str
    acks: int
    """0: none, 1: the leader, -1: all in-sync replicas."""
    idempotent: bool = False
    interval_ms: int = 3_000

    def text(self) -> str:
        """The producer in one line."""
        acks = "all" if self.acks < 0 else self.acks
        how = ", idempotent" if self.idempotent else ""
        return f"{self.name} writes every {self.interval_ms} ms to {WRITTEN_TOPIC} with acks={acks}{how}"


def draw_standalone_producers(random: Random, intervals_ms: Sequence[int]) -> tuple[StandaloneProducerPlan, ...]:
    """Draw two plans, the first of which has acks=all."""
    kinds = ((-1, random.randrange(0, 2) == 0), random.choice(ACKS_AND_IDEMPOTENCE))
    return tuple(
        StandaloneProducerPlan(
            name=f"w{number}", acks=acks, idempotent=idempotent, interval_ms=random.choice(intervals_ms)
        )
        for number, (acks, idempotent) in enumerate(kinds, 1)
    )


OUTPUT_TOPIC = "invoices"
"""The topic to which members with transactions or producers write."""

CHANGING_TOPIC = "refunds"
"""The topic that gets partitions, is deleted and created. Only groups of the consumer protocol have it: there the coordinator
notices, while a classic member would have to refresh metadata again and again."""

_FAILING_APPENDS = (ActionKind.FAIL_APPEND, ActionKind.LOSE_APPEND)
_GOODBYES = (ActionKind.LEAVE, ActionKind.BUSY)
"""Actions in which a member leaves. The plan of a consumer group has either these or failing appends, and that of a migrating
group no failing appends: a leave or a migration whose append fails is undone, but its changes of timers are not, as in Kafka,
so that the member would stay forever without a session."""

CLASSIC, CONSUMER = "classic", "consumer"
"""The protocols of members (``group.protocol``)."""

OFFSETS_TOPIC, TRANSACTION_STATE = "__consumer_offsets", "__transaction_state"
"""The topics of the coordinators."""

LOG_ERRORS = ("NOT_ENOUGH_REPLICAS", "NOT_LEADER_OR_FOLLOWER", "KAFKA_STORAGE_ERROR")
"""The append errors from which ``amount`` chooses: those that clients retry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAction:
    """An action at ``at_ms``, for ``for_ms``. ``member`` is an index into the plan; ``kind`` defines ``amount``."""

    at_ms: int
    kind: ActionKind
    member: int = 0
    for_ms: int = 0
    amount: int = 0
    of_transactions: bool = False
    """Does it affect the transaction coordinator or its log (instead of the group coordinator)?"""

    def text(self, members: "tuple[MemberPlan, ...]") -> str:
        """The action in one line."""
        return self.kind.value.format(
            member=members[self.member].name,
            time=duration(self.for_ms),
            amount=self.amount,
            broker=self.amount,
            error=self.error,
            coordinated="transactions" if self.of_transactions else "the group",
            log=TRANSACTION_STATE if self.of_transactions else OFFSETS_TOPIC,
        )

    @property
    def error(self) -> str:
        """The append error, for kinds that have one.

        For ``__transaction_state`` it is always the first: after the others the coordinator waits until another broker takes
        over, as in Kafka (``TransactionMarkerChannelManager.tryAppendToLog``).
        """
        return LOG_ERRORS[0 if self.of_transactions else self.amount % len(LOG_ERRORS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionPlan:
    """How a member consumes, transforms and produces: output and offsets in one transaction. Times are milliseconds."""

    timeout_ms: int = 30_000
    """``transaction.timeout.ms``."""
    processing_ms: int = 0
    """The time from the output to the offset commit, and from that to the end of the transaction."""
    new_id_per_start: bool = False
    """Does each process have its own transactional id? Otherwise each process fences the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducingPlan:
    """How a member produces, independently of what it consumes. Times are milliseconds."""

    every_ms: int = 500
    """The interval at which it sends records."""
    batch_size: int = 200
    linger_ms: int = 5
    max_in_flight: int = 5
    delivery_timeout_ms: int = 30_000

    def text(self) -> str:
        """The settings in one line."""
        return (
            f"and produces every {duration(self.every_ms)}: batches of {self.batch_size} bytes, linger "
            f"{duration(self.linger_ms)}, {self.max_in_flight} in flight, delivery {duration(self.delivery_timeout_ms)}"
        )


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
    protocol: str = CLASSIC
    """Its first protocol. By the consumer protocol (KIP-848) ``assignors`` are ignored: the coordinator assigns."""
    transactions: TransactionPlan | None = None
    """None: it only commits its positions."""
    producing: ProducingPlan | None = None

    def text(self) -> str:
        """The member in one line."""
        static = f", static as {self.instance_id}" if self.instance_id is not None else ""
        which = "consumer protocol" if self.protocol == CONSUMER else f"assignors {', '.join(self.assignors)}"
        return (
            f"{self.name} has the {which}, subscribes to {', '.join(self.topics)}{static}; "
            f"session {duration(self.session_timeout_ms)}, heartbeats every {duration(self.heartbeat_interval_ms)}, "
            f"max.poll.interval {duration(self.max_poll_interval_ms)}, commits every {duration(self.commit_interval_ms)}"
            f"{self._transactions_text()}"
        )

    def _transactions_text(self) -> str:
        plan = self.transactions
        if plan is None:
            return "" if self.producing is None else f", {self.producing.text()}"
        ids = "each process has a transactional id of its own" if plan.new_id_per_start else "always the same id"
        timeout, takes = duration(plan.timeout_ms), duration(2 * plan.processing_ms)
        return f" in transactions with timeout {timeout}, which take {takes}: {ids}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationPlan:
    """All input of a run. From ``heal_ms`` on there are no more actions, and all members are running."""

    members: tuple[MemberPlan, ...]
    topics: Mapping[str, int]
    actions: tuple[PlannedAction, ...]
    heal_ms: int
    key: int = 0
    """The key of the pseudorandom draws of the network and the brokers."""
    brokers: int = 1
    migration_policy: str = "bidirectional"
    """``group.consumer.migration.policy``."""
    replicated: bool = False
    """Does each partition have a replica on every broker, with min.insync.replicas=2?"""
    standalone_producers: tuple[StandaloneProducerPlan, ...] = ()
    kept: tuple[int, ...] | None = None
    """The numbers of the actions in the full plan, if some were left out."""

    @property
    def may_migrate(self) -> bool:
        """May the group have members of both protocols?"""
        kinds = {action.kind for action in self.actions}
        ends_otherwise = self.migration_policy != "bidirectional"  # see ``SimulatedWorld``
        return len({member.protocol for member in self.members}) > 1 or ActionKind.SWITCH in kinds or ends_otherwise

    @property
    def is_transactional(self) -> bool:
        """Do its members consume, transform and produce in transactions?"""
        return any(member.transactions is not None for member in self.members)

    @property
    def is_producing(self) -> bool:
        """Do its members also produce?"""
        return any(member.producing is not None for member in self.members)

    @property
    def last_begin_ms(self) -> int:
        """The latest begin of a transaction, early enough that none is open at the end, even if it must time out."""
        return self.end_ms - _TRANSACTIONS_END_MS

    @property
    def recovery_ms(self) -> int:
        """The time after ``heal_ms`` within which the group must converge.

        A dead member is noticed when its session or a rebalance times out. The first JoinGroup of a new member may keep the
        group waiting for 5 minutes (Kafka's limit). A request without a response times out after 30 seconds, one that waits
        for other members 5 seconds after the rebalance timeout. A cooperative group needs a second rebalance.
        """
        sessions = max(member.session_timeout_ms for member in self.members)
        rebalances = max(member.max_poll_interval_ms for member in self.members)
        return 300_000 + 2 * sessions + 3 * rebalances

    @property
    def end_ms(self) -> int:
        """When the run ends."""
        return self.heal_ms + self.recovery_ms

    def keep(self, numbers: Collection[int]) -> "SimulationPlan":
        """The plan with only these actions, numbered from 0 in the full plan. Raises ValueError for unknown numbers."""
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


EAGER_ASSIGNORS = (("range",), ("roundrobin",), ("sticky",), ("range", "roundrobin"))
ASSIGNOR_MIXES: tuple[tuple[tuple[str, ...], ...], ...] = (
    *((assignors,) for assignors in EAGER_ASSIGNORS),
    (("cooperative-sticky",),),
    (("cooperative-sticky",),),
    # A group during the upgrade to the cooperative protocol (KIP-429): all members have an assignor in common.
    (("range",), ("cooperative-sticky", "range")),
    (("cooperative-sticky", "range"), ("cooperative-sticky",)),
    (("range", "sticky"), ("sticky", "range"), ("sticky",)),
)
"""The mixes of assignor lists in a group; each member has one list of the mix."""

SESSION_AND_HEARTBEAT_MS = ((6_000, 2_000), (10_000, 3_000), (30_000, 10_000), (45_000, 3_000), (45_000, 15_000))
"""Pairs of session timeout and heartbeat interval (ms)."""

MAX_POLL_INTERVALS_MS = (10_000, 30_000, 60_000, 300_000)
"""``max.poll.interval.ms``, which is also the rebalance timeout."""

COMMIT_INTERVALS_MS = (120_000, 300_000, 600_000)
"""The interval of periodic commits. Positions are also committed before rebalances."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """The ranges from which plans are drawn: one value of each tuple; pairs of ints are a minimum and a maximum."""

    members: tuple[int, int] = (1, 4)
    faults_ms: int = 3_600_000
    """Actions happen before this time."""
    spell_ms: int = 300_000
    """Half of the actions happen close together, at the start of every fourth period of this length."""
    actions: tuple[int, int] = (4, 14)
    kinds: tuple[ActionKind, ...] = CLASSIC_KINDS
    assignor_mixes: tuple[tuple[tuple[str, ...], ...], ...] = ASSIGNOR_MIXES
    session_and_heartbeat_ms: tuple[tuple[int, int], ...] = SESSION_AND_HEARTBEAT_MS
    max_poll_intervals_ms: tuple[int, ...] = MAX_POLL_INTERVALS_MS
    commit_intervals_ms: tuple[int, ...] = COMMIT_INTERVALS_MS
    static_fraction: float = 0.4
    """The fraction of groups that may have static members."""
    brokers: tuple[int, ...] = (1, 1, 3)
    protocols: tuple[tuple[str, ...], ...] = ()
    """The mixes of protocols in a group; each member has one of the mix. Empty: all members have the classic protocol."""
    migration_policies: tuple[str, ...] = ("bidirectional",)
    transactional: bool = False
    """Do members consume, transform and produce in transactions?"""
    producing: bool = False
    """Do members also produce?"""
    replicated: bool = False
    """Are all topics replicated, with standalone producers? Every second plan then has members with transactions."""
    failures_ms: tuple[int, ...] = (500, 5_000, 12_000, 25_000, 60_000)
    """How long brokers fail. A dead broker is fenced after 9 seconds; one that does not replicate leaves the ISR after 10."""
    write_intervals_ms: tuple[int, ...] = (3_000, 8_000)
    """The intervals at which standalone producers write."""


DEFAULT_OPTIONS = PlanOptions()
"""Classic groups."""

CONSUMER_OPTIONS = PlanOptions(
    faults_ms=600_000,
    actions=(4, 10),
    kinds=GROUP_KINDS,
    protocols=((CONSUMER,), (CLASSIC, CONSUMER)),
    migration_policies=("bidirectional", "bidirectional", "upgrade", "downgrade", "disabled"),
)
"""Consumer groups (KIP-848), and groups that migrate from one protocol to the other and back."""

_TRANSACTIONS_END_MS = 120_000
TRANSACTION_TIMEOUTS_MS = (8_000, 20_000, 60_000)
PROCESSING_MS = (0, 200, 1_000, 3_000)
"""Twice any of these is less than any transaction timeout, so that only faults make transactions time out."""

TRANSACTION_OPTIONS = PlanOptions(
    members=(1, 3),
    assignor_mixes=tuple(((assignor,),) for assignor in ("range", "sticky", "cooperative-sticky")),
    faults_ms=480_000,
    actions=(6, 14),
    kinds=tuple(kind for kind in ActionKind if kind not in {*TOPIC_ACTIONS, *FAILURES, ActionKind.SWITCH}),
    session_and_heartbeat_ms=((10_000, 3_000), (30_000, 10_000), (45_000, 15_000)),
    max_poll_intervals_ms=(10_000, 30_000, 60_000),
    commit_intervals_ms=(15_000, 40_000, 90_000),
    brokers=(1, 3),
    protocols=((CLASSIC,), (CONSUMER,)),
    transactional=True,
)
"""Groups of either protocol whose members consume, transform and produce in transactions."""

PRODUCER_OPTIONS = PlanOptions(
    members=(1, 3),
    assignor_mixes=((("range",),),),
    faults_ms=240_000,
    actions=(10, 24),
    kinds=(
        ActionKind.CRASH,
        ActionKind.LEAVE,
        ActionKind.PAUSE,
        ActionKind.RESET,
        ActionKind.LOSE_REQUESTS,
        ActionKind.LOSE_ANSWERS,
        ActionKind.SLOW,
        ActionKind.PARTITION,
        ActionKind.BLACKOUT,
        ActionKind.RESTART,
        ActionKind.MOVE_OUTPUT,
    ),
    session_and_heartbeat_ms=((10_000, 3_000),),
    max_poll_intervals_ms=(10_000, 30_000),
    commit_intervals_ms=(15_000, 40_000),
    static_fraction=0,
    brokers=(1, 3),
    producing=True,
)
"""Groups whose members also produce, idempotently, to partitions whose leaders move."""

FAILURE_OPTIONS = PlanOptions(
    members=(1, 3),
    assignor_mixes=tuple(((assignor,),) for assignor in ("range", "sticky", "cooperative-sticky")),
    faults_ms=240_000,
    spell_ms=30_000,
    actions=(4, 10),
    kinds=(
        *(kind for kind in ActionKind if kind in FAILURES for _ in range(3)),
        *(ActionKind.CRASH, ActionKind.LEAVE, ActionKind.PAUSE, ActionKind.RESET, ActionKind.REJOIN),
        *(ActionKind.LOSE_ANSWERS, ActionKind.SLOW, ActionKind.PARTITION, ActionKind.BLACKOUT),
    ),
    session_and_heartbeat_ms=((10_000, 3_000), (30_000, 10_000), (45_000, 15_000)),
    max_poll_intervals_ms=(10_000, 30_000, 60_000),
    commit_intervals_ms=(10_000, 30_000, 90_000),
    brokers=(3,),
    protocols=((CLASSIC,), (CONSUMER,)),
    transactional=True,
    replicated=True,
)
"""Clusters whose brokers fail, with groups of either protocol and standalone producers."""

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
    transactional = options.transactional and not (options.replicated and random.randrange(0, 2))
    protocols = random.choice(options.protocols) if options.protocols else (CLASSIC,)
    policy = random.choice(options.migration_policies) if len(protocols) > 1 else "bidirectional"
    if protocols == (CONSUMER,):
        topics[CHANGING_TOPIC] = random.randrange(1, 4)
    members = _members(random, options, protocols)
    brokers = random.choice(options.brokers)
    has_output = transactional or options.producing
    possible = {ActionKind.MOVE: brokers > 1, ActionKind.SWITCH: len(protocols) > 1}
    possible |= {
        ActionKind.RESTART: has_output,
        ActionKind.MOVE_OUTPUT: has_output and brokers > 1,
    }
    possible |= dict.fromkeys(TOPIC_ACTIONS, CHANGING_TOPIC in topics)
    possible |= dict.fromkeys(FAILURES, options.replicated and brokers > 1)
    if options.protocols:
        appends_fail = len(protocols) == 1 and random.randrange(0, 2) == 0
        possible |= dict.fromkeys(_FAILING_APPENDS, appends_fail) | dict.fromkeys(_GOODBYES, not appends_fail)
    kinds = tuple(kind for kind in options.kinds if possible.get(kind, True) and _eligible_members(kind, members))
    if not kinds and options.actions[1]:
        raise ValueError(
            "none of these kinds is possible here: MOVE needs several brokers, TWIN static members, SUBSCRIBE dynamic ones, "
            "SWITCH two protocols, a topic that changes needs members of the consumer protocol only, and brokers fail where "
            "there are several, and replicas"
        )
    count = random.randrange(options.actions[0], options.actions[1] + 1)
    times = sorted(_time(random, options) for _ in range(count))
    actions = tuple(_action(random, at_ms, random.choice(kinds), members, brokers, options) for at_ms in times)
    key = random.getrandbits(64)
    if transactional:
        topics[OUTPUT_TOPIC] = random.randrange(1, 4)
        members, actions = _with_transactions(random, members, actions)
    if options.producing:
        topics[OUTPUT_TOPIC] = random.randrange(1, 4)
        members = tuple(replace(member, producing=_producing(random)) for member in members)
    standalone_producers: tuple[StandaloneProducerPlan, ...] = ()
    if options.replicated:
        topics[WRITTEN_TOPIC] = random.randrange(1, 4)
        standalone_producers = draw_standalone_producers(random, options.write_intervals_ms)
    return SimulationPlan(
        members=members,
        topics=topics,
        actions=actions,
        heal_ms=options.faults_ms,
        key=key,
        brokers=brokers,
        migration_policy=policy,
        replicated=options.replicated,
        standalone_producers=standalone_producers,
    )


def _members(random: Random, options: PlanOptions, protocols: tuple[str, ...]) -> tuple[MemberPlan, ...]:
    assignor_mix = random.choice(options.assignor_mixes)
    session_timeout_ms, heartbeat_interval_ms = random.choice(options.session_and_heartbeat_ms)
    # A member learns of a rebalance by its next heartbeat; with a rebalance timeout shorter than that, it never ends.
    max_poll_interval_ms = max(random.choice(options.max_poll_intervals_ms), 2 * heartbeat_interval_ms)
    commit_interval_ms = random.choice(options.commit_intervals_ms)
    may_be_static = random.randrange(0, 1_000) < options.static_fraction * 1_000
    several_topics = random.randrange(0, 4) == 0
    members = []
    for number in range(random.randrange(options.members[0], options.members[1] + 1)):
        name = "abcdefghijklmnopqrstuvwxyz"[number % 26] + (str(number // 26) if number >= 26 else "")
        static = may_be_static and random.randrange(0, 3) > 0
        topics = random.choice((("orders",), ("orders", "payments"))) if several_topics else ("orders",)
        if protocols == (CONSUMER,) and random.randrange(0, 2):
            topics = (*topics, CHANGING_TOPIC)
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
                protocol=random.choice(protocols) if len(protocols) > 1 else protocols[0],
            )
        )
    return tuple(members)


def _producing(random: Random) -> ProducingPlan:
    return ProducingPlan(
        every_ms=random.choice((200, 500, 2_000)),
        batch_size=random.choice((0, 200, 16_384)),
        linger_ms=random.choice((0, 5, 400)),
        max_in_flight=random.choice((1, 2, 5, 5)),
        delivery_timeout_ms=random.choice((12_000, 30_000, 120_000)),
    )


def _with_transactions(
    random: Random, members: tuple[MemberPlan, ...], actions: tuple[PlannedAction, ...]
) -> tuple[tuple[MemberPlan, ...], tuple[PlannedAction, ...]]:
    timeout_ms, new_ids = random.choice(TRANSACTION_TIMEOUTS_MS), random.randrange(0, 3) == 0
    return (
        tuple(
            replace(
                member,
                transactions=TransactionPlan(
                    timeout_ms=timeout_ms, processing_ms=random.choice(PROCESSING_MS), new_id_per_start=new_ids
                ),
            )
            for member in members
        ),
        tuple(
            replace(action, of_transactions=action.kind in COORDINATOR_ACTIONS and random.randrange(0, 2) > 0)
            for action in actions
        ),
    )


def _time(random: Random, options: PlanOptions) -> int:
    """Half of the actions are close together, at the start of every fourth ``spell_ms``, so that rebalances overlap."""
    spell_ms = options.spell_ms
    spell = random.randrange(0, max(options.faults_ms // spell_ms, 1))
    if random.randrange(0, 2):
        spell = spell // 4 * 4
        return min(spell * spell_ms + random.randrange(0, 15_000), options.faults_ms)
    return min(spell * spell_ms + random.randrange(0, spell_ms), options.faults_ms)


def _action(
    random: Random, at_ms: int, kind: ActionKind, members: Sequence[MemberPlan], brokers: int, options: PlanOptions
) -> PlannedAction:
    if kind in FAILURES:
        for_ms = random.choice(options.failures_ms) + random.randrange(0, 50)
        return PlannedAction(at_ms=at_ms, kind=kind, for_ms=for_ms, amount=random.randrange(1, brokers + 1))
    for_ms = random.choice(_BROKER_DURATIONS_MS if kind in BROKER_ACTIONS else _DURATIONS_MS) + random.randrange(0, 50)
    amount = random.choice((1, 20, 300, 3_000)) + random.randrange(0, 50)
    member = 0 if kind in BROKER_ACTIONS else random.choice(_eligible_members(kind, members))
    return PlannedAction(at_ms=at_ms, kind=kind, member=member, for_ms=for_ms, amount=amount)


def _eligible_members(kind: ActionKind, members: Sequence[MemberPlan]) -> list[int]:
    """The members to which ``kind`` can apply: TWIN needs a static member, SUBSCRIBE a dynamic one.

    A static member that rejoins a Stable group under a new id with another subscription triggers no rebalance, unless the
    assignor changes (``updateStaticMemberThenRebalanceOrCompleteJoin``), so that a new topic would get no owner.
    """
    static = {ActionKind.TWIN: True, ActionKind.SUBSCRIBE: False}.get(kind)
    return [
        number for number, member in enumerate(members) if static is None or static is (member.instance_id is not None)
    ]
