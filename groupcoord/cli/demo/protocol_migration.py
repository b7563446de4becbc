"""The migration chapter of the demo: a working group moves from the classic protocol to KIP-848, member by member."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

from groupcoord.cli.demo.clients.consumer_common import Settings
from groupcoord.cli.demo.clients.migration_consumer import ASSIGNED
from groupcoord.cli.demo.consumer_process import ConsumerProcess, start_consumer
from groupcoord.cli.demo.output import MOVED, DemoOutput, new_table, style_of
from groupcoord.cli.demo.story_progress import StoryProgress
from groupcoord.coordinator.events import GroupMigrated
from groupcoord.core.events import Event
from groupcoord.server.clock_and_random_ids import NowMs

GROUP = "shipping"
CLASSIC, CONSUMER = ("range", "classic"), ("consumer",)
MEMBERS = {"old-1": CLASSIC, "old-2": CLASSIC, "new-1": CONSUMER, "new-2": CONSUMER, "new-3": CONSUMER}
"""The members, each with its assignor, if it has one, and its protocol."""
STOPPED = "×"


class OwnershipChange(NamedTuple):
    """The result of a change: the owner of each partition after it, and the partitions that were not read for a while."""

    what: str
    owners: Mapping[int, str]
    moved: frozenset[int]
    stopped: frozenset[int]
    """The partitions that were revoked and then assigned to the same owner again."""

    @property
    def read_on(self) -> int:
        """How many partitions were read without interruption."""
        return len(self.owners) - len(self.moved) - len(self.stopped)


class Ownership:
    """The owners of a topic's ``partitions``, as the members' rebalance callbacks report them."""

    def __init__(self, partitions: int) -> None:
        self.owners: dict[int, str] = {}
        self.changes: list[OwnershipChange] = []
        self._partitions = partitions
        self._before: dict[int, str] = {}
        self._revoked: set[int] = set()

    def told(self, member: str, what: str, partitions: Iterable[int]) -> None:
        """Record that ``partitions`` were assigned to ``member`` or revoked from it."""
        for partition in partitions:
            if what == ASSIGNED:
                self.owners[partition] = member
            elif self.owners.get(partition) == member:
                del self.owners[partition]
                self._revoked.add(partition)

    def is_shared_by(self, members: Iterable[str]) -> bool:
        """Are all partitions owned by ``members``, in shares that differ by at most one?"""
        names = list(members)
        shares = [sum(owner == name for owner in self.owners.values()) for name in names]
        return sum(shares) == len(self.owners) == self._partitions and max(shares) - min(shares) <= 1

    def changed(self, what: str) -> OwnershipChange | None:
        """Record the result of everything since the last change; None if there were no owners before."""
        before, self._before = self._before, dict(self.owners)
        revoked, self._revoked = self._revoked, set()
        if not before:
            return None
        moved = {partition for partition, owner in self.owners.items() if before[partition] != owner}
        change = OwnershipChange(what, dict(self.owners), frozenset(moved), frozenset(revoked - moved))
        self.changes.append(change)
        return change


def changes_table(changes: Iterable[OwnershipChange], topic: str) -> Table:
    """A row for each change, a column for each partition; moved ones have an arrow, revoked and reassigned ones a cross."""
    table = new_table()
    table.add_column(f"partitions of {topic}", no_wrap=True)
    changes = list(changes)
    for partition in sorted({partition for change in changes for partition in change.owners}):
        table.add_column(f"  {partition}", no_wrap=True)
    table.add_column("read on", justify="right", no_wrap=True)
    for change in changes:
        cells = []
        for partition, owner in sorted(change.owners.items()):
            sign = MOVED if partition in change.moved else STOPPED if partition in change.stopped else " "
            cells.append(Text(f"{sign} {owner}", style_of(owner) + (" dim" if sign != " " else " bold")))
        table.add_row(change.what, *cells, f"{change.read_on} of {len(change.owners)}")
    return table


class Migration:
    """The chapter. Its members are started together, and join one after the other."""

    def __init__(self, output: DemoOutput, progress: StoryProgress, now_ms: NowMs, partitions: int) -> None:
        self.output = output
        self.progress = progress
        self.ownership = Ownership(partitions)
        self._now_ms = now_ms
        self._members: dict[str, ConsumerProcess] = {}
        self._joined: list[str] = []
        self._topic = ""

    async def start(self, settings: Settings) -> None:
        """Start the processes of all members; ``settings`` are their common settings."""
        for name, protocols in MEMBERS.items():
            own = replace(settings, group=GROUP, client_id=name, protocols=protocols)
            self._members[name] = await start_consumer("migration_consumer", own)
            self.progress.watch(self._members[name], self._heard)
        self._topic = settings.topic

    async def play(self) -> None:
        """Let the members join and leave, and show which partitions of the others were interrupted."""
        await self._joins("old-1")
        await self._joins("old-2")
        await self._joins("new-1")
        await self._leaves("old-1")
        await self._joins("new-2")
        await self._leaves("old-2")
        await self._joins("new-3")
        await self.progress.wait_until_told()
        self.output.show(changes_table(self.ownership.changes, self._topic))
        for name in self._joined:
            self._members[name].leave()
        await self.progress.until(f"the members of {GROUP} to end", lambda: not any(map(_runs, self._members.values())))

    async def _joins(self, name: str) -> None:
        self._members[name].join()
        self._joined.append(name)
        await self._settles(name, f"joins by group.protocol={MEMBERS[name][-1]}", f"{name} joins")

    async def _leaves(self, name: str) -> None:
        self._joined.remove(name)
        self._members[name].leave()
        await self._settles(name, "is closed", f"{name} leaves")

    async def _settles(self, name: str, does: str, what: str) -> None:
        """Wait until the partitions are assigned anew, and print who read without interruption."""
        self.output.line(self._now_ms(), name, does)
        sharing = f"{', '.join(self._joined)} to share the partitions of {GROUP}"
        await self.progress.until(sharing, lambda: self.ownership.is_shared_by(self._joined))
        await self.progress.wait_until_told()
        change = self.ownership.changed(what)
        if change is not None:
            self.output.line(self._now_ms(), "demo", in_words(change))

    def _heard(self, name: str, line: bytes) -> None:
        what, partitions = json.loads(line)
        self.ownership.told(name, what, partitions)
        self.progress.news()


def in_words(change: OwnershipChange) -> str:
    """In words, which partitions were read without interruption."""
    read_on: dict[str, list[int]] = {}
    for partition, owner in sorted(change.owners.items()):
        if partition not in change.moved | change.stopped:
            read_on.setdefault(owner, []).append(partition)
    if not read_on:
        return "has seen everybody stop: no partition was read all the time"
    spelled = "; ".join(f"{name} {', '.join(map(str, numbers))}" for name, numbers in read_on.items())
    return f"has seen these read on as if nothing were: {spelled}"


def tell_migration(output: DemoOutput, event: Event) -> bool:
    """Print ``event`` if the chapter's group changes its type; returns whether it does."""
    if not isinstance(event, GroupMigrated) or event.group != GROUP:
        return False
    what = f"makes {GROUP} a consumer group. Its old members go on as they are: they cannot tell the difference"
    output.line(event.at_ms, "coordinator", what, "consumer group")
    return True


def _runs(member: ConsumerProcess) -> bool:
    return member.exit_code is None
