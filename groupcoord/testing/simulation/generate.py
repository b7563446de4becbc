"""From chance to a plan: who is in the group, and what is going to happen to it. ``Mix`` says what there may be."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from groupcoord.testing.simulation.plan import OF_BROKERS, Action, Kind, MemberPlan, Plan

T = TypeVar("T")


class Chance(Protocol):
    """What is needed of a ``random.Random``."""

    def randrange(self, start: int, stop: int, /) -> int:
        """A number from ``start`` up to ``stop``."""

    def choice(self, options: Sequence[T], /) -> T:
        """One of ``options``."""

    def getrandbits(self, bits: int, /) -> int:
        """So many bits."""


EAGER = (("range",), ("roundrobin",), ("sticky",), ("range", "roundrobin"))
OFFERS: tuple[tuple[tuple[str, ...], ...], ...] = (
    *((offer,) for offer in EAGER),
    (("cooperative-sticky",),),
    (("cooperative-sticky",),),
    # What a group may be while it is upgraded to the cooperative protocol (KIP-429): all have an assignor in common.
    (("range",), ("cooperative-sticky", "range")),
    (("cooperative-sticky", "range"), ("cooperative-sticky",)),
    (("range", "sticky"), ("sticky", "range"), ("sticky",)),
)
"""What the members of a group offer; each takes one of these."""

PACES = ((6_000, 2_000), (10_000, 3_000), (30_000, 10_000), (45_000, 3_000), (45_000, 15_000))
"""Session timeouts and heartbeat intervals, in ms."""

POLLS = (10_000, 30_000, 60_000, 300_000)
"""``max.poll.interval.ms``, which is the rebalance timeout, too."""

COMMITS = (120_000, 300_000, 600_000)
"""How often positions are committed, beside before rebalances."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """What plans are made of; times are milliseconds."""

    members: tuple[int, int] = (1, 4)
    """At least and at most."""
    faults_ms: int = 3_600_000
    """For so long things are done to the group."""
    actions: tuple[int, int] = (4, 14)
    kinds: tuple[Kind, ...] = tuple(Kind)
    offers: tuple[tuple[tuple[str, ...], ...], ...] = OFFERS
    paces: tuple[tuple[int, int], ...] = PACES
    polls: tuple[int, ...] = POLLS
    commits: tuple[int, ...] = COMMITS
    static: float = 0.4
    """Of so many groups the members may be static."""
    brokers: tuple[int, ...] = (1, 1, 3)


USUAL = Mix()


def generate(chance: Chance, mix: Mix = USUAL) -> Plan:
    """The plan that ``chance`` makes. Raises ValueError for a mix in which nobody can do anything."""
    topics = {"orders": chance.randrange(1, 9), "payments": chance.randrange(1, 5)}
    members = _members(chance, mix)
    brokers = chance.choice(mix.brokers)
    kinds = tuple(kind for kind in mix.kinds if (kind is not Kind.MOVE or brokers > 1) and _able(kind, members))
    if not kinds and mix.actions[1]:
        raise ValueError("none of these kinds can be done here: MOVE is for several brokers, TWIN for static members")
    count = chance.randrange(mix.actions[0], mix.actions[1] + 1)
    times = sorted(_time(chance, mix) for _ in range(count))
    actions = tuple(_action(chance, at_ms, chance.choice(kinds), members) for at_ms in times)
    key = chance.getrandbits(64)
    return Plan(members=members, topics=topics, actions=actions, heal_ms=mix.faults_ms, key=key, brokers=brokers)


def _members(chance: Chance, mix: Mix) -> tuple[MemberPlan, ...]:
    offers = chance.choice(mix.offers)
    pace = chance.choice(mix.paces)
    # A member hears of a rebalance by its next heartbeat. If the group waits no longer than that, groups rebalance for ever.
    poll = max(chance.choice(mix.polls), 2 * pace[1])
    commit = chance.choice(mix.commits)
    may_be_static = chance.randrange(0, 1_000) < mix.static * 1_000
    of_both = chance.randrange(0, 4) == 0
    made = []
    for number in range(chance.randrange(mix.members[0], mix.members[1] + 1)):
        name = "abcdefghijklmnopqrstuvwxyz"[number % 26] + (str(number // 26) if number >= 26 else "")
        static = may_be_static and chance.randrange(0, 3) > 0
        wants = chance.choice((("orders",), ("orders", "payments"))) if of_both else ("orders",)
        made.append(
            MemberPlan(
                name=name,
                assignors=chance.choice(offers),
                topics=wants,
                instance_id=f"instance-{name}" if static else None,
                session_timeout_ms=pace[0],
                heartbeat_interval_ms=pace[1],
                max_poll_interval_ms=poll,
                commit_interval_ms=commit,
                callback_ms=chance.choice((0, 0, 20, 2_000)),
            )
        )
    return tuple(made)


def _time(chance: Chance, mix: Mix) -> int:
    """Half of what happens comes soon after something else, where rebalances meet; see ``_SPELL_MS``."""
    spells = max(mix.faults_ms // _SPELL_MS, 1)
    spell = chance.randrange(0, spells)
    if chance.randrange(0, 2):
        spell = spell // 4 * 4
        return min(spell * _SPELL_MS + chance.randrange(0, 15_000), mix.faults_ms)
    return min(spell * _SPELL_MS + chance.randrange(0, _SPELL_MS), mix.faults_ms)


_SPELL_MS = 300_000

_LENGTHS = (50, 500, 2_000, 5_000, 12_000, 35_000, 50_000, 70_000, 120_000)
_SHORT = (5, 50, 500, 2_000, 7_000)


def _action(chance: Chance, at_ms: int, kind: Kind, members: Sequence[MemberPlan]) -> Action:
    lengths = _SHORT if kind in OF_BROKERS else _LENGTHS
    for_ms = chance.choice(lengths) + chance.randrange(0, 50)
    amount = chance.choice((1, 20, 300, 3_000)) + chance.randrange(0, 50)
    member = 0 if kind in OF_BROKERS else chance.choice(_able(kind, members))
    return Action(at_ms=at_ms, kind=kind, member=member, for_ms=for_ms, amount=amount)


def _able(kind: Kind, members: Sequence[MemberPlan]) -> list[int]:
    """To whom it can be done: a twin is one of a static member, and a static member wants what it has always wanted.

    When it comes back under a new id to a group that is Stable, Kafka compares only which assignor is chosen then, not what
    the member wants (``updateStaticMemberThenRebalanceOrCompleteJoin``): a topic that is new to the group gets no owner.
    """
    wanted = {Kind.TWIN: True, Kind.SUBSCRIBE: False}.get(kind)
    return [
        number for number, member in enumerate(members) if wanted is None or wanted is (member.instance_id is not None)
    ]
