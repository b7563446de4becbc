"""What survives when the coordinator forgets everything and reads its log."""

from typing import Any

from groupcoord.cluster.append_gate import STORE, AppendDecision
from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.classic.states import GroupState
from groupcoord.coordinator.events import GroupRemoved, StateChanged, StaticMemberReplaced
from groupcoord.core.events import Event
from groupcoord.testing.simulation.invariants.base import Invariant

EMPTIED = "it has neither members nor offsets"
"""Why the coordinator forgets a group that nobody needs, with all its past."""


class Generations(Invariant):
    """See ``promise``."""

    name = "generations-grow"
    promise = (
        "The generation of a group never goes back; only when the coordinator has moved, to the last one whose assignment "
        "was stored: a later one was promised to nobody. A group that had neither members nor offsets is forgotten, and begins "
        "anew."
    )

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._latest = 0
        self._stored = 0

    def noted(self, event: Event) -> None:
        """What is stored, and what is forgotten."""
        if isinstance(event, StateChanged) and event.target == GroupState.STABLE:
            self._stored = max(self._stored, event.generation)
        elif isinstance(event, GroupRemoved):
            if event.reason == EMPTIED:
                self._stored = 0
            self._latest = self._stored

    def stepped(self) -> None:
        """Raises Broken."""
        group = self.scene.brokers.group
        if group is None:
            return
        if group.generation_id < self._latest:
            raise self.broken(f"the generation is {group.generation_id}, and it was {self._latest} before")
        self._latest = group.generation_id


View = tuple[object, ...]


def view_of(group: ClassicGroup) -> View:
    """What the log has to say of a group: everything that a coordinator knows of one that is stable, or empty."""
    members = tuple(
        (
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.session_timeout_ms,
            member.rebalance_timeout_ms,
            member.metadata_of(group.protocol_name),
            member.assignment,
        )
        for member in group.members.values()
    )
    return group.state, group.generation_id, group.protocol_type, group.protocol_name, group.leader_id, members


_PARTS = ("state", "generation", "protocol type", "protocol", "leader", "members")


class Replay(Invariant):
    """See ``promise``."""

    name = "replay-is-live"
    promise = (
        "What the coordinator reads in its log is what it had when it last stored its group: state, generation, protocol, "
        "leader and all of each member. What was under way when it resigned is lost, as in Kafka."
    )

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._stored: View | None = None
        self._all_stored = True
        self._changed = False
        self._expected: View | None = None

    def appended(self, decision: AppendDecision) -> None:
        """A record that is not stored at once tells nobody when the group is as it says."""
        self._all_stored &= decision == STORE

    def noted(self, event: Event) -> None:
        """These store the group."""
        match event:
            case StateChanged(target=GroupState.STABLE | GroupState.EMPTY) | StaticMemberReplaced(rebalances=False):
                self._changed = True
            case GroupRemoved():
                self._stored = None
            case _:
                pass

    def stepped(self) -> None:
        """Remember what was stored."""
        if self._changed:
            group = self.scene.brokers.group
            stable = group is not None and group.state in (GroupState.STABLE, GroupState.EMPTY)
            self._stored = view_of(group) if group is not None and stable and self._all_stored else None
        self._changed, self._all_stored = False, True

    def resigning(self) -> None:
        """That is what has to be there again."""
        self._expected = self._stored

    def loaded(self) -> None:
        """Raises Broken."""
        expected, group = self._expected, self.scene.brokers.group
        if expected is None:
            return
        if group is None:
            raise self.broken("the group is not there any more")
        self._stored = found = view_of(group)
        for part, before, after in zip(_PARTS, expected, found, strict=True):
            if before != after:
                raise self.broken(f"{part}: it was {before}, the log says {after}")
