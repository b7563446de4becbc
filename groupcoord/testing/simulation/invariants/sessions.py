"""Whoever is not heard of in time is out, and nobody is out before."""

from typing import Any

from groupcoord.coordinator.classic.states import GroupState
from groupcoord.coordinator.config import NEW_MEMBER_JOIN_TIMEOUT_MS
from groupcoord.coordinator.events import (
    Departure,
    GenerationStarted,
    MemberJoined,
    MemberRemoved,
    ShardLoaded,
    StaticMemberReplaced,
)
from groupcoord.core.effects import Call
from groupcoord.core.events import Event
from groupcoord.protocol.apis import ApiKey
from groupcoord.testing.simulation.invariants.base import Invariant


class Sessions(Invariant):
    """Keeps its own account of when whom was heard of, from what goes over the wire."""

    name = "heard-in-time"
    promise = (
        "Who is in the group was heard of within its session timeout, or has a request waiting there (a newcomer: for 5 "
        "minutes at most); and whose session is over was silent for all of it. A new generation, and a coordinator that has "
        "read its log, count as heard of for everybody."
    )
    apis = frozenset({ApiKey.HEARTBEAT, ApiKey.OFFSET_COMMIT, ApiKey.SYNC_GROUP})

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._latest: dict[str, int] = {}  # when a member was heard of at the latest
        self._surely: dict[str, int] = {}  # when it was heard of, beyond doubt
        self._syncs: dict[tuple[int, int], tuple[str, bool]] = {}

    def asked(self, call: Call, request: Any) -> None:
        """A member that is heard of has a generation, and in it the right one."""
        key, group = call.api.key, self.scene.brokers.group
        if group is None or not self.scene.brokers.coordinates(call.broker):
            return
        member_id, completing = request.member_id, group.state is GroupState.COMPLETING_REBALANCE
        if key == ApiKey.SYNC_GROUP:
            self._syncs[call.connection_id, call.correlation_id] = member_id, completing
            return
        commits = key == ApiKey.OFFSET_COMMIT
        generation = request.generation_id_or_member_epoch if commits else request.generation_id
        instance_id = request.group_instance_id
        if member_id not in group.members or generation != group.generation_id or (commits and completing):
            return
        if instance_id is None or group.static_members.get(instance_id) == member_id:
            self._hear(member_id, self.scene.agenda.now_ms)

    def replied(self, call: Call, response: Any) -> None:
        """An answer to SyncGroup that was waited for counts when it is given."""
        asked = self._syncs.pop((call.connection_id, call.correlation_id), None)
        if asked is not None:
            member_id, waited = asked
            self._latest[member_id] = now_ms = self.scene.agenda.now_ms
            if waited and not response.error_code:
                self._surely[member_id] = now_ms

    def noted(self, event: Event) -> None:
        """What else counts. Raises Broken for a session that was cut short."""
        now_ms = self.scene.agenda.now_ms
        match event:
            case GenerationStarted(members=members):
                for member_id in members:
                    self._hear(member_id, now_ms)
            case MemberJoined(member=member_id):
                self._hear(member_id, now_ms)
            case StaticMemberReplaced(old_member=old_id, new_member=member_id):
                self._hear(member_id, now_ms)
                # It comes back with a whole session if the log does not take the new one.
                self._latest.pop(old_id, None)
                self._surely.pop(old_id, None)
            case ShardLoaded():
                self._latest.clear()
                self._surely.clear()
            case MemberRemoved(member=member_id, how=Departure.SESSION_OVER, timeout_ms=timeout_ms):
                silent_ms = now_ms - self._surely.get(member_id, 0)
                if timeout_ms is not None and silent_ms < timeout_ms:
                    why = f"{member_id} is out after {timeout_ms} ms of silence; it was heard of {silent_ms} ms before"
                    raise self.broken(why)
            case _:
                pass

    def stepped(self) -> None:
        """Is somebody in the group who should not be? Raises Broken."""
        group = self.scene.brokers.group
        if group is None:
            return
        now_ms, latest = self.scene.agenda.now_ms, self._latest
        for member in group.members.unordered_values():
            heard_ms = latest.setdefault(member.member_id, now_ms)
            limit_ms = NEW_MEMBER_JOIN_TIMEOUT_MS if member.is_new else member.session_timeout_ms
            if now_ms - heard_ms >= limit_ms and not member.has_satisfied_heartbeat:
                silent = f"nothing was heard of it for {now_ms - heard_ms} ms, and its time was {limit_ms} ms"
                raise self.broken(f"{member.member_id} is still in the group: {silent}")

    beaten = stepped

    def _hear(self, member_id: str, at_ms: int) -> None:
        self._latest[member_id] = max(at_ms, self._latest.get(member_id, 0))
        self._surely[member_id] = max(at_ms, self._surely.get(member_id, 0))
