"""A Membership (classic protocol) without I/O; the test plays coordinator, brokers, assignor and user, message by message."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from groupcoord.assignors import ASSIGNORS, Assignor, Subscription, TopicPartition, run_assignor, write_assignment
from groupcoord.assignors.serialization import write_subscription
from groupcoord.client.client_errors import DisconnectedError
from groupcoord.client.member import actions as a
from groupcoord.client.member.classic_membership import Membership
from groupcoord.client.member.group_member import GroupMember
from groupcoord.client.member.member_events import MemberEvent
from groupcoord.client.member.member_settings import MemberSettings
from groupcoord.client.member.metadata_and_commit_requests import MetadataSnapshot
from groupcoord.core.effects import EmitEvent
from groupcoord.protocol.apis.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from groupcoord.protocol.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from groupcoord.protocol.apis.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from groupcoord.protocol.apis.leave_group import LeaveGroupRequest, LeaveGroupResponse
from groupcoord.protocol.apis.sync_group import SyncGroupRequest, SyncGroupResponse
from groupcoord.protocol.errors import ErrorCode

BROKER = a.CoordinatorNode(1, "broker", 9092)
OTHER = a.CoordinatorNode(2, "other", 9092)
COOPERATIVE = ("cooperative-sticky",)
EAGER = ("range",)
ME, LEADER = "me", "leader"

Kind = TypeVar("Kind")


def partitions(*numbers: int, topic: str = "t") -> tuple[TopicPartition, ...]:
    """Partitions of one topic."""
    return tuple((topic, number) for number in numbers)


class Conversation:
    """A member of either protocol speaks. What it wants done piles up in ``wishes`` until somebody takes it."""

    def __init__(self, membership: GroupMember, *, topics: Iterable[str], present: bool) -> None:
        self.membership = membership
        self.now_ms = 0
        self.wishes: list[a.Action] = []
        self.events: list[MemberEvent] = []
        if present:
            self.polls()
        if topics:
            self.subscribes(*topics)

    # What happens to the member.

    def hears(self, actions: Iterable[a.Action]) -> None:
        """Whatever it wants done because of that."""
        for action in actions:
            if isinstance(action, EmitEvent):
                assert isinstance(action.event, MemberEvent)
                self.events.append(action.event)
            else:
                self.wishes.append(action)

    def subscribes(self, *topics: str) -> None:
        self.hears(self.membership.subscribe(topics, self.now_ms))

    def polls(self) -> None:
        self.hears(self.membership.polled(self.now_ms))

    def goes_away(self) -> None:
        self.hears(self.membership.poll_ended(self.now_ms))

    def closes(self, reason: str = "done") -> None:
        self.hears(self.membership.leave(reason, self.now_ms))

    def completes(self, action: Any, result: Any = None) -> None:
        self.hears(self.membership.complete(action.ticket, result, self.now_ms))

    def fails(self, action: Any, error: Exception | None = None) -> None:
        error = error or DisconnectedError("the connection was closed")
        self.hears(self.membership.fail(action.ticket, error, self.now_ms))

    def waits(self, ms: int) -> None:
        """Time passes, and what is due happens."""
        end_ms = self.now_ms + ms
        while (at_ms := self.membership.next_deadline()) is not None and at_ms <= end_ms:
            self.now_ms = max(self.now_ms, at_ms)
            self.hears(self.membership.expire(self.now_ms))
        self.now_ms = end_ms

    # What the member wants.

    def wish(self, kind: type[Kind]) -> Kind:
        """The next thing it wants done, which is of this kind."""
        assert self.wishes, f"it wants nothing, and not {kind.__name__}"
        action = self.wishes.pop(0)
        assert isinstance(action, kind), f"it wants {action}, not {kind.__name__}"
        return action

    def sends(self, request: type[Kind]) -> tuple[a.SendRequest, Kind]:
        """The next thing it wants is to send such a request."""
        send = self.wish(a.SendRequest)
        assert isinstance(send.request, request), f"it sends {send.request}"
        return send, send.request

    def is_quiet(self) -> bool:
        """Is there nothing that it wants?"""
        return self.wishes == []

    def said(self, kind: type[Kind]) -> list[Kind]:
        """What listeners were told of this kind."""
        return [event for event in self.events if isinstance(event, kind)]

    # What others answer.

    def find(self, code: ErrorCode = ErrorCode.NONE, at: a.CoordinatorNode = BROKER) -> None:
        """It looks for the coordinator, and is told."""
        send, request = self.sends(FindCoordinatorRequest)
        assert send.to is None
        found = Coordinator(key="g", node_id=at.node_id, host=at.host, port=at.port, error_code=code)
        assert request.coordinator_keys == ("g",)
        self.completes(send, FindCoordinatorResponse(coordinators=(found,)))

    def told(self, news: str, *expected: TopicPartition, error: Exception | None = None) -> None:
        """The user is told ``news`` about exactly ``expected``, and takes note, or raises."""
        tell = self.wish(a.InvokeCallback)
        assert (tell.news.value, tell.partitions) == (news, expected)
        if error is None:
            self.completes(tell)
        else:
            self.fails(tell, error)

    def owns(self, *expected: TopicPartition) -> None:
        """It says that exactly ``expected`` are its own from now on."""
        assert self.wish(a.SetOwned).partitions == frozenset(expected)
        assert self.membership.owned == frozenset(expected)


class Talk(Conversation):
    """A member of the classic protocol speaks."""

    membership: Membership

    def __init__(
        self,
        assignors: Sequence[str | Assignor] = EAGER,
        *,
        topics: Iterable[str] = ("t",),
        present: bool = True,
        chance: float = 0.5,
        **settings: Any,
    ) -> None:
        settings = {"group_id": "g", "auto_commit": False, **settings}
        made = [ASSIGNORS.create(each) if isinstance(each, str) else each for each in assignors]
        membership = Membership(MemberSettings(**settings), made, chance=lambda: chance)
        super().__init__(membership, topics=topics, present=present)

    def learns(self, **counts: int) -> None:
        """Metadata has come."""
        self.hears(self.membership.topics_changed(MetadataSnapshot(partitions=counts), self.now_ms))

    def join(
        self,
        code: ErrorCode = ErrorCode.NONE,
        *,
        generation: int = 1,
        member_id: str = ME,
        leader: str = LEADER,
        protocol: str | None = None,
        **fields: Any,
    ) -> JoinGroupRequest:
        """It joins, and is answered."""
        send, request = self.sends(JoinGroupRequest)
        assert send.parks
        if code:
            answer = JoinGroupResponse(error_code=code, member_id=member_id)
        else:
            answer = JoinGroupResponse(
                generation_id=generation,
                member_id=member_id,
                leader=leader,
                protocol_type=fields.pop("protocol_type", "consumer"),
                protocol_name=protocol or request.protocols[0].name,
                **fields,
            )
        self.completes(send, answer)
        return request

    def lead(
        self, members: dict[str, Subscription], *, generation: int = 1, counts: dict[str, int] | None = None
    ) -> None:
        """It joins, leads ``members``, learns of the topics, and its assignor runs."""
        self.join(
            generation=generation,
            leader=ME,
            members=tuple(
                JoinGroupResponseMember(
                    member_id=member_id,
                    metadata=write_subscription(said),
                    group_instance_id=said.instance_id,
                )
                for member_id, said in members.items()
            ),
        )
        learn = self.wish(a.FetchMetadata)
        self.completes(learn, MetadataSnapshot(partitions=counts or {"t": 4}))
        self.assign()

    def assign(self) -> None:
        """Its assignor runs."""
        wish = self.wish(a.RunAssignor)
        try:
            answer = run_assignor(wish.assignor, wish.group, wish.protocol)
        except Exception as error:
            self.fails(wish, error)
        else:
            self.completes(wish, answer)

    def sync(self, *assigned: TopicPartition, code: ErrorCode = ErrorCode.NONE, **fields: Any) -> SyncGroupRequest:
        """It syncs, and is answered."""
        send, request = self.sends(SyncGroupRequest)
        assert send.parks
        self.completes(
            send, SyncGroupResponse(**{"error_code": code, "assignment": write_assignment(assigned), **fields})
        )
        return request

    def beat(self, code: ErrorCode = ErrorCode.NONE) -> HeartbeatRequest:
        """It sends a heartbeat, and is answered."""
        send, request = self.sends(HeartbeatRequest)
        assert not send.parks
        self.completes(send, HeartbeatResponse(error_code=code))
        return request

    def leave(self) -> LeaveGroupRequest:
        """It says goodbye, and is answered."""
        send, request = self.sends(LeaveGroupRequest)
        assert not send.parks
        self.completes(send, LeaveGroupResponse())
        return request

    # Stories that many tests begin with.

    def settles(self, *assigned: TopicPartition, generation: int = 1) -> None:
        """It finds the coordinator if it must, joins as a follower, and gets ``assigned`` on top of nothing."""
        if self.membership.coordinator is None:
            self.find()
        self.join(generation=generation)
        self.sync(*assigned)
        self.owns(*assigned)
        self.told("assigned", *assigned)
        assert self.is_quiet()

    def settles_again(self) -> None:
        """It joins a second time as a follower, and keeps what it has."""
        kept = sorted(self.membership.owned)
        self.join(generation=self.membership.generation.generation_id + 1)
        self.sync(*kept)
        self.owns(*kept)
        self.told("assigned")
        assert self.is_quiet()


def settled(assignors: Sequence[str | Assignor], *assigned: TopicPartition, **how: Any) -> Talk:
    """A member in generation 1 that owns ``assigned`` and whose user waits for records."""
    talk = Talk(assignors, **how)
    talk.settles(*assigned)
    return talk


def beat_brings(talk: Talk, code: ErrorCode) -> None:
    """The next heartbeat is answered ``code``."""
    talk.waits(3_000)
    talk.beat(code)
