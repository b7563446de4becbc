"""ManualMember, a member of a classic group whose every request the test sends, so that a test can have any interleaving.

Each method sends its request at once, in the order of the calls, and returns a future of the response::

    a, b = kafka.manual_member("app", "orders"), kafka.manual_member("app", "orders")
    joining = a.join(), b.join()      # both are sent; neither has a response yet
    await joining[0], await joining[1]
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from groupcoord.assignors import (
    Assignor,
    GroupSubscription,
    RebalanceProtocol,
    TopicPartition,
    as_leader,
    read_assignment,
    read_subscription,
    run_assignor,
    write_assignment,
)
from groupcoord.client.member.join_protocols import join_protocols
from groupcoord.client.member.metadata_and_commit_requests import (
    OFFSET_COMMIT_BY_NAME,
    offset_commit_request,
    partition_errors,
)
from groupcoord.protocol.apis.leave_group import MemberIdentity
from groupcoord.protocol.apis.sync_group import SyncGroupRequestAssignment
from groupcoord.protocol.consumer_protocol import PROTOCOL_TYPE
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from groupcoord.testing.forgotten_awaits import noted
from groupcoord.testing.in_process_transport import MemberConnection
from groupcoord.testing.manual_request_sender import ManualRequestSender
from groupcoord.testing.topic_settings import offsets_of


@noted
class ManualMember:
    """A member of ``group`` that does nothing by itself; times are milliseconds.

    ``member_id``, ``generation``, ``leader``, ``protocol`` and ``assigned`` are from the last responses. A test may set them,
    to act as another member.
    """

    group: str
    topics: tuple[str, ...]
    instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str
    """Empty until the coordinator has assigned one."""
    generation: int
    """-1 before the first generation."""
    leader: str
    """The member id of the leader of its generation."""
    protocol: str
    """The assignor that the group agreed on."""
    assigned: frozenset[TopicPartition]
    """The partitions of the last SyncGroup response."""

    def __init__(
        self,
        connection: MemberConnection,
        *,
        group: str,
        topics: Sequence[str],
        assignors: Sequence[Assignor],
        partition_counts: Callable[[], Mapping[str, int]],
        instance_id: str | None,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
    ) -> None:
        self.group = group
        self.topics = tuple(topics)
        self.instance_id = instance_id
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.member_id = ""
        self.generation = -1
        self.leader = ""
        self.protocol = ""
        self.assigned = frozenset()
        self._requests = ManualRequestSender(connection, partial(connection.ask_coordinator, group))
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._partition_counts = partition_counts
        self._others: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        return f"<ManualMember {self._requests.client_id} {self.member_id or '(no id yet)'} gen={self.generation}>"

    @property
    def client_id(self) -> str:
        """The client id in its requests."""
        return self._requests.client_id

    @property
    def is_leader(self) -> bool:
        """Whether the last JoinGroup made it the leader."""
        return bool(self.member_id) and self.leader == self.member_id

    # Requests.

    def join(
        self, *, reason: str | None = None, come_back: bool = True, version: int | None = None
    ) -> "asyncio.Future[JoinGroupResponse]":
        """JoinGroup; the response comes when the others have joined, too, or with an error code.

        A new member that gets MEMBER_ID_REQUIRED joins again with its id at once, unless ``come_back`` is false (KIP-394).
        ``version`` is the newest unless given: before 4, a new member is in the group at once; before 5, there is no instance
        id.
        """

        def joined(response: JoinGroupResponse) -> Any:
            return self._joined(response, reason, come_back)

        return self._requests.ask(self._join_request(reason), joined, version=version)

    def sync(
        self, assignment: Mapping[str, Sequence[TopicPartition]] | None = None
    ) -> "asyncio.Future[SyncGroupResponse]":
        """SyncGroup; the response comes when the leader has synced. A leader sends ``assignment``, or that of its assignor."""
        if assignment is None and self.is_leader:
            assignment = self._assign()
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self.protocol,
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=member_id, assignment=write_assignment(list(partitions)))
                for member_id, partitions in (assignment or {}).items()
            ),
        )
        return self._requests.ask(request, self._synced)

    def heartbeat(self) -> "asyncio.Future[ErrorCode]":
        """Heartbeat."""
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )

        def heard(response: HeartbeatResponse) -> ErrorCode:
            return ErrorCode(response.error_code)

        return self._requests.ask(request, heard)

    def commit(self, offsets: Mapping[TopicPartition, int]) -> "asyncio.Future[dict[TopicPartition, ErrorCode]]":
        """OffsetCommit; the result has the error code of each partition."""
        request = offset_commit_request(
            self.group, self.generation, self.member_id, self.instance_id, offsets_of(offsets)
        )
        return self._requests.ask(request, partition_errors, version=OFFSET_COMMIT_BY_NAME)

    def leave(self, reason: str | None = None) -> "asyncio.Future[ErrorCode]":
        """LeaveGroup; the result is the error code for this member."""
        identity = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id, reason=reason)

        def left(response: LeaveGroupResponse) -> ErrorCode:
            return ErrorCode(response.error_code or (response.members[0].error_code if response.members else 0))

        return self._requests.ask(LeaveGroupRequest(group_id=self.group, members=(identity,)), left)

    def vanish(self) -> None:
        """Disappear without LeaveGroup, as in a crash: pending futures are cancelled."""
        self._requests.close()

    async def rejoin(self) -> None:
        """JoinGroup, then SyncGroup. Raises AssertionError if either returns an error."""
        joined = await self.join()
        assert joined.error_code == ErrorCode.NONE, ErrorCode(joined.error_code).name
        synced = await self.sync()
        assert synced.error_code == ErrorCode.NONE, ErrorCode(synced.error_code).name

    # Responses.

    def _joined(self, response: JoinGroupResponse, reason: str | None, come_back: bool) -> Any:
        if response.member_id:
            self.member_id = response.member_id
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED and come_back:
            return self._join_request(reason)
        if response.error_code == ErrorCode.NONE:
            self.generation = response.generation_id
            self.leader = response.leader
            self.protocol = response.protocol_name or ""
            self._others = response.members
        return response

    def _synced(self, response: SyncGroupResponse) -> SyncGroupResponse:
        if response.error_code == ErrorCode.NONE:
            self.assigned = frozenset(read_assignment(response.assignment)) if response.assignment else frozenset()
        return response

    def _assign(self) -> Mapping[str, Sequence[TopicPartition]]:
        known = GroupSubscription(
            subscriptions={
                each.member_id: read_subscription(each.metadata, each.group_instance_id) for each in self._others
            },
            partitions=self._partition_counts(),
        )
        assignor = self._assignors[self.protocol]
        cooperative = RebalanceProtocol.COOPERATIVE in assignor.protocols
        return run_assignor(
            assignor, as_leader(known), RebalanceProtocol.COOPERATIVE if cooperative else RebalanceProtocol.EAGER
        )

    # Building requests.

    def _join_request(self, reason: str | None) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=join_protocols(self._assignors, self.topics, sorted(self.assigned), self.generation),
            reason=reason,
        )
