"""Members of classic groups: they remember their id, generation and protocol, and every request can be told otherwise."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol
from groupcoord.protocol.apis.leave_group import MemberIdentity
from groupcoord.protocol.apis.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from groupcoord.protocol.apis.sync_group import SyncGroupRequestAssignment
from groupcoord.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from tests.conformance.actors import Client, Stagehand
from tests.conformance.codec import Answer
from tests.conformance.embedded import subscription
from tests.conformance.normalise import hash_bucket
from tests.conformance.story import Pending, StoryBroken

Commits = Mapping[tuple[str, int], int | tuple[int, str | None] | tuple[int, str | None, int]]


def protocols_of(offered: Mapping[str, bytes]) -> tuple[JoinGroupRequestProtocol, ...]:
    """Protocols with their metadata, in the order offered."""
    return tuple(JoinGroupRequestProtocol(name=name, metadata=data) for name, data in offered.items())


def commit_topics(commits: Commits, ids: Mapping[str, Any] | None = None) -> tuple[OffsetCommitRequestTopic, ...]:
    """``{(topic, partition): offset or (offset, metadata) or (offset, metadata, leader epoch)}`` as a request has it."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, partition), given in commits.items():
        offset, metadata, epoch = (*given, -1)[:3] if isinstance(given, tuple) else (given, "", -1)
        topics.setdefault(topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=offset,
                committed_leader_epoch=epoch,
                committed_metadata=metadata,
            )
        )
    return tuple(
        OffsetCommitRequestTopic(name=topic, topic_id=(ids or {}).get(topic), partitions=tuple(partitions))
        for topic, partitions in topics.items()
    )


@dataclass(eq=False)
class Member(Client):
    """A consumer as the broker sees it."""

    group_id: str = ""
    instance: str | None = None
    # By protocol name, in order of preference; empty stands for a default that says whose it is.
    offers: Mapping[str, bytes] | None = None
    session_ms: int = 60_000
    rebalance_ms: int = 60_000
    protocol_type: str = "consumer"
    member_id: str = ""
    generation: int = -1
    protocol: str | None = None
    leader: str = ""

    def __post_init__(self) -> None:
        if self.client_id is None:
            self.client_id = self.name
        if self.offers is None:
            self.offers = {"range": subscription(user_data=b"range of " + self.name.encode())}

    def join_request(self, **changes: Any) -> JoinGroupRequest:
        """What the member would send, with ``changes``."""
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=self.rebalance_ms,
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type=self.protocol_type,
            protocols=protocols_of(self.offers or {}),
        )
        return replace(request, **changes)

    def joins(self, version: int = 9, *, does: str = "joins", **changes: Any) -> Any:
        """One JoinGroup that is answered at once."""
        return self.asks(self.join_request(**changes), version, does=does)

    def joins_parked(
        self, version: int = 9, *, does: str = "joins and waits", patience_ms: int | None = None, **changes: Any
    ) -> Pending:
        """One JoinGroup that stays unanswered for now; ``patience_ms`` is how long an answer "at once" may take."""
        patience = None if patience_ms is None else lambda: patience_ms
        return self.parks(self.join_request(**changes), version, does=does, patience=patience)

    def asks_for_an_id(self, version: int = 9) -> str:
        """The first of the two steps of a dynamic join (KIP-394).

        Kafka answers first and then writes down the group, if it is a new one; the step lasts until it has.
        """
        request = self.join_request(member_id="")
        self.asks(request, version, does="asks for a member id")
        self._let_it_arrive(request)
        self.story.end()
        return self.member_id

    def gets_an_id_in(self, buckets: Collection[int]) -> None:
        """Get an id that lies in one of ``buckets`` of Java's hash map (there are sixteen), so that its place is known.

        Ids are random, so this asks until one fits, quietly, and gives the others back: the transcript is the same each time.
        """
        quiet = Stagehand(self.story, self.client_id or "")
        for _ in range(400):
            offered = quiet.ask(self.join_request(member_id="")).member_id
            if hash_bucket(offered) in buckets:
                self.member_id = offered
                return
            quiet.ask(LeaveGroupRequest(group_id=self.group_id, members=(MemberIdentity(member_id=offered),)))
        raise StoryBroken("no member id in the wanted place")

    def enters(self, version: int = 9) -> Any:
        """Both steps of a dynamic join, or the only one of a static one, answered at once."""
        if self.instance is None and version >= 4:
            self.asks_for_an_id(version)
        return self.joins(version)

    def enters_parked(self, version: int = 9, *, patience_ms: int | None = None) -> Pending:
        """The same, but the last step waits for the others."""
        if self.instance is None and version >= 4:
            self.asks_for_an_id(version)
        return self.joins_parked(version, patience_ms=patience_ms)

    def sync_request(self, shares: Mapping["Member", bytes] | None = None, **changes: Any) -> SyncGroupRequest:
        """What the member would send; ``shares`` is what a leader gives to whom."""
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol,
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=member.member_id, assignment=share)
                for member, share in (shares or {}).items()
            ),
        )
        return replace(request, **changes)

    def syncs(
        self, shares: Mapping["Member", bytes] | None = None, version: int = 5, *, does: str = "syncs", **changes: Any
    ) -> Any:
        """One SyncGroup that is answered at once.

        Kafka answers first and then takes the time of the new state, which may end up in the log; the step lasts until it has.
        """
        request = self.sync_request(shares, **changes)
        answer = self.asks(request, version, does=does)
        self._let_it_arrive(request)
        self.story.end()
        return answer

    def syncs_parked(self, shares: Mapping["Member", bytes] | None = None, version: int = 5, **changes: Any) -> Pending:
        """One SyncGroup that stays unanswered for now."""
        return self.parks(self.sync_request(shares, **changes), version, does="syncs and waits")

    def heartbeats(self, version: int = 4, *, does: str = "heartbeats", **changes: Any) -> int:
        """One Heartbeat; returns its error code."""
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
        )
        return int(self.asks(replace(request, **changes), version, does=does).error_code)

    def leaves(self, version: int = 5, *, reason: str | None = None) -> Any:
        """Leave with the own id, by the shape of the version."""
        identity = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance, reason=reason)
        request = LeaveGroupRequest(group_id=self.group_id, members=(identity,), member_id=self.member_id)
        return self.asks(request, version, does="leaves")

    def commits(self, commits: Commits, version: int = 9, *, does: str = "commits", **changes: Any) -> Any:
        """Commit as a member."""
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
            topics=commit_topics(commits),
        )
        return self.asks(replace(request, **changes), version, does=does)

    def learns(self, answer: Answer) -> Any:
        """Keep the id from an answer that carries a new one, and everything from a successful join."""
        message = answer.message
        if hasattr(message, "generation_id"):
            if message.error_code in {0, 79} and message.member_id:
                self.member_id = message.member_id
            if message.error_code == 0:
                self.generation, self.leader = message.generation_id, message.leader
                self.protocol = message.protocol_name
        return message


def stable(leader: Member, *followers: Member, version: int = 9) -> None:
    """Bring members into one Stable generation: the leader alone first, then the others, then the leader's rejoin."""
    answer = leader.enters(version)
    for follower in followers:
        follower.enters_parked(version)
    if followers:
        answer = leader.joins(version, does="rejoins")
        for follower in followers:
            follower.is_answered()
    if answer.error_code or answer.leader != leader.member_id:
        raise StoryBroken(f"{leader.name} should lead")
    share_out(leader, *followers)


def share_out(leader: Member, *followers: Member) -> None:
    """The leader gives everybody a share, and all fetch theirs."""
    members: Sequence[Member] = (leader, *followers)
    leader.syncs({member: b"share of " + member.name.encode() for member in members})
    for follower in followers:
        follower.syncs()
