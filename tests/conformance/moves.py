"""The moves of random stories, each one line of a story's source.

A move *is* a line of a story. So what was drawn, what is told to a server and what is printed to be pasted are one text.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MEMBERS = ("a", "b", "c", "d", "e", "f")
INSTANCES = {"e": "i", "f": "j"}
"""The static ones, and what their instance ids are."""

OFFER = '{"range": subscription(topic)}'
"""What members offer unless told otherwise."""

OFFERS = (
    f"protocols_of({OFFER})",
    'protocols_of({"range": subscription(topic, user_data=b"new")})',
    'protocols_of({"sticky": b"x", "range": subscription(topic)})',
    'protocols_of({"range": subscription(topic), "sticky": b"x"})',
    'protocols_of({"roundrobin": b"", "sticky": b"y", "range": subscription("other")})',
    'protocols_of({"range": subscription()})',
)
"""What members may offer instead and still come together; the first is what they offer unless told otherwise."""

ODD_OFFERS = (
    'protocols_of({"sticky": b"x"})',
    "()",
    'protocols_of({"range": subscription(topic)}) * 2',
    'protocols_of({"range": b"\\x00"})',
    'protocols_of({"range": b"\\x00\\x00\\x00\\x00\\x00\\x05"})',
    'protocols_of({"range": b"\\x00\\x00\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff"})',
    'protocols_of({"range": subscription(topic, version=7)})',
)
"""What does not go with the others, or is none at all: nothing, the same twice, a subscription that is cut off, one that counts
to five and has none, one that has less than none, one of a version that nobody knows."""

TIMEOUT_MS = 600_000
"""Of sessions and rebalances: a slow broker must not be overtaken by its own timers."""

CAST = {
    "topic": 'topic = Stagehand(s).topic("orders", 2)',
    "terms": f'terms = {{"offers": {OFFER}, "session_ms": {TIMEOUT_MS:_}, "rebalance_ms": {TIMEOUT_MS:_}}}',
    "admin": 'admin = Admin(s, "admin", ids={topic: Stagehand(s).topic_id(topic)})',
    "group": "group = s.group()",
    **{
        name: f'{name} = Member(s, "{name}", group_id=group, '
        + (f'instance="{INSTANCES[name]}", ' if name in INSTANCES else "")
        + "**terms)"
        for name in MEMBERS
    },
}
"""How everything that moves speak of comes into being, in this order."""

WAITING_VERBS = ("joins", "syncs")
"""What may have to wait for others; then the word is ``joins_parked``."""


@dataclass(frozen=True)
class Move:
    """``actor`` does ``verb``; ``arguments`` are Python source."""

    actor: str
    verb: str
    arguments: tuple[str, ...] = ()

    @property
    def may_wait(self) -> bool:
        """Could the answer have to wait for others?"""
        return self.verb in WAITING_VERBS

    def line(self, *, waits: bool = False) -> str:
        """The move as a line of a story; ``waits`` says whether the answer does."""
        return f"{self.actor}.{self.verb}{'_parked' if waits else ''}({', '.join(self.arguments)})"


def joins(
    who: str,
    *,
    offers: str = OFFERS[0],
    version: int = 9,
    me: str | None = None,
    instance: str | None = None,
    protocol_type: str | None = None,
) -> Move:
    """JoinGroup. ``me`` and ``instance`` are source text of another member id and instance id than the own ones."""
    return Move(
        who,
        "joins",
        _only(
            _version(version, 9),
            _changed("member_id", me),
            _changed("group_instance_id", instance),
            _changed("protocol_type", protocol_type),
            _changed("protocols", None if offers == OFFERS[0] else offers),
        ),
    )


def syncs(
    who: str,
    gives: Iterable[str] = (),
    *,
    version: int = 5,
    me: str | None = None,
    instance: str | None = None,
    late: int = 0,
    protocol_name: str | None = None,
    protocol_type: str | None = None,
) -> Move:
    """SyncGroup; it counts for something what ``who`` gives to others only if it leads."""
    shares = ", ".join(f'{other}: b"for {other}"' for other in gives)
    return Move(
        who,
        "syncs",
        _only(
            f"{{{shares}}}" if shares else None,
            None if version == 5 else f"version={version}",
            _changed("member_id", me),
            _changed("group_instance_id", instance),
            _changed("generation_id", _generation(who, late)),
            _changed("protocol_type", protocol_type),
            _changed("protocol_name", protocol_name),
        ),
    )


def heartbeats(
    who: str, *, version: int = 4, me: str | None = None, instance: str | None = None, late: int = 0
) -> Move:
    """Heartbeat."""
    return Move(
        who,
        "heartbeats",
        _only(
            _version(version, 4),
            _changed("member_id", me),
            _changed("group_instance_id", instance),
            _changed("generation_id", _generation(who, late)),
        ),
    )


def leaves(who: str, *, version: int = 5) -> Move:
    """LeaveGroup of oneself."""
    return Move(who, "leaves", _only(_version(version, 5)))


def removes(whom: Sequence[str], *, version: int = 5) -> Move:
    """LeaveGroup on behalf of others, each as source text: ``a``, ``"i"`` or ``(a.member_id, "i")``."""
    return Move("admin", "removes", _only("group", *whom, None if version == 5 else f"version={version}"))


def commits(
    who: str,
    partition: int,
    what: str,
    *,
    version: int = 9,
    me: str | None = None,
    instance: str | None = None,
    late: int = 0,
) -> Move:
    """OffsetCommit of a member; ``what`` is an offset, or a tuple with metadata and leader epoch."""
    return Move(
        who,
        "commits",
        _only(
            f"{{(topic, {partition}): {what}}}",
            _version(version, 9),
            _changed("member_id", me),
            _changed("group_instance_id", instance),
            _changed("generation_id_or_member_epoch", _generation(who, late)),
        ),
    )


def commits_from_outside(partitions: Sequence[int], what: str, *, version: int = 9, keep_ms: int = -1) -> Move:
    """OffsetCommit of nobody in the group; ``keep_ms`` is how long, where the version can say so."""
    offsets = ", ".join(f"(topic, {partition}): {what}" for partition in partitions)
    keeps = f"retention_time_ms={keep_ms}" if keep_ms >= 0 and version <= 4 else None
    return Move("admin", "commits", _only("group", f"{{{offsets}}}", _version(version, 9), keeps))


def fetches(partitions: Sequence[int] | None, *, version: int = 9) -> Move:
    """OffsetFetch; ``None`` asks for all there are."""
    wanted = "None" if partitions is None else f"{{topic: {list(partitions)}}}"
    return Move("admin", "fetches", _only("group", wanted, _version(version, 9)))


def describes(*, version: int = 6) -> Move:
    """DescribeGroups."""
    return Move("admin", "describes", _only("group", None if version == 6 else f"version={version}"))


def lists(*, states: Sequence[str] = (), types: Sequence[str] = (), version: int = 5) -> Move:
    """ListGroups."""
    return Move(
        "admin",
        "lists",
        _only(
            f"states={list(states)}".replace("'", '"') if states else None,
            f"types={list(types)}".replace("'", '"') if types else None,
            None if version == 5 else f"version={version}",
        ),
    )


def deletes_offsets(partitions: Sequence[int]) -> Move:
    """OffsetDelete."""
    return Move("admin", "deletes_offsets", ("group", f"{{topic: {list(partitions)}}}"))


def deletes_the_group(version: int = 2) -> Move:
    """DeleteGroups."""
    return Move("admin", "deletes", _only("group", None if version == 2 else f"version={version}"))


def vanishes(who: str) -> Move:
    """All connections break, parked ones too."""
    return Move(who, "vanishes")


def time_passes(duration_ms: int) -> Move:
    """Only for a clock that can be told: waiting for a real one takes long, and timers that are close to each other fire in
    any order."""
    return Move("s", "wait", (str(duration_ms), '"some time"'))


def watched(moves: Iterable[Move]) -> tuple[Move, ...]:
    """``moves`` with a look after each."""
    return tuple(step for move in moves for step in (move, *LOOKS))


def _only(*arguments: str | None) -> tuple[str, ...]:
    return tuple(argument for argument in arguments if argument is not None)


def _version(version: int, newest: int) -> str | None:
    return None if version == newest else str(version)


def _changed(name: str, value: str | None) -> str | None:
    return None if value is None else f"{name}={value}"


def _generation(who: str, late: int) -> str | None:
    return f"{who}.generation {'-' if late > 0 else '+'} {abs(late)}" if late else None


LOOKS = (describes(), fetches(None))
"""What is looked at after each step."""
