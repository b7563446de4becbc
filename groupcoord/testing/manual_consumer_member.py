"""A member of a consumer group (KIP-848) whose every heartbeat the test sends, so that any interleaving can be written down.

Each step sends a ConsumerGroupHeartbeat at once, and returns a future of the answer::

    a, b = kafka.manual_consumer("app", "orders"), kafka.manual_consumer("app", "orders")
    await a.join()                    # a is told all partitions
    await b.join()                    # b has to wait for those that a is to give back
    await a.heartbeat()               # a is told to give some back …
    await a.acknowledge()             # … and says that it has
    await b.heartbeat()               # so b gets them
"""

import asyncio
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from groupcoord.assignors import TopicPartition
from groupcoord.client.member.request_builders import OFFSET_COMMIT_BY_NAME, commit_errors, offset_commit_request
from groupcoord.coordinator.consumer.member import AWAY_EPOCH, JOIN_EPOCH, LEAVE_EPOCH
from groupcoord.protocol.apis.consumer_group_heartbeat import TopicPartitions
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from groupcoord.testing.forgotten_awaits import noted
from groupcoord.testing.in_process_transport import MemberConnection
from groupcoord.testing.manual_member_requests import MemberRequests


@noted
class ManualConsumer:
    """A member of the consumer group ``group`` that does nothing by itself; times are milliseconds.

    What it says of itself is what these attributes are when it says it; a test may set them, to speak as another member.
    """

    group: str
    topics: tuple[str, ...]
    regex: str | None
    """The regular expression that it subscribes to besides, in RE2's syntax; None if there never was one."""
    assignor: str | None
    """The assignor of the coordinator that it asks for."""
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    member_id: str
    """The member makes it itself (KIP-1082)."""
    epoch: int
    """Its member epoch, as the last answer said; 0 before the first, -1 when it has left, -2 when it has left for now."""
    assigned: frozenset[TopicPartition]
    """What it may use, as the last answer with an assignment said."""

    def __init__(
        self,
        connection: MemberConnection,
        *,
        group: str,
        topics: Sequence[str],
        regex: str | None,
        assignor: str | None,
        instance_id: str | None,
        rack_id: str | None,
        rebalance_timeout_ms: int,
        member_id: str,
        topic_names: Callable[[], Mapping[uuid.UUID, str]],
    ) -> None:
        self.group = group
        self.topics = tuple(topics)
        self.regex = regex
        self.assignor = assignor
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.member_id = member_id
        self.epoch = JOIN_EPOCH
        self.assigned = frozenset()
        self._topic_names = topic_names
        self._requests = MemberRequests(connection, partial(connection.ask_coordinator, group))

    def __repr__(self) -> str:
        return f"<ManualConsumer {self.client_id} {self.member_id} epoch={self.epoch}>"

    @property
    def client_id(self) -> str:
        """The client id that its requests have."""
        return self._requests.client_id

    # Steps.

    def join(self, *, version: int | None = None) -> "asyncio.Future[ConsumerGroupHeartbeatResponse]":
        """Join, or join again after an error: with epoch 0, with all that it says of itself, and without partitions."""
        self.assigned = frozenset()
        return self._ask(self._request(JOIN_EPOCH, owned=(), is_full=True), version)

    def heartbeat(
        self, owned: Iterable[TopicPartition] | None = None, *, epoch: int | None = None, version: int | None = None
    ) -> "asyncio.Future[ConsumerGroupHeartbeatResponse]":
        """Heartbeat, with nothing but its epoch, or another one, and what it ``owned``, if that is given."""
        return self._ask(self._request(self.epoch if epoch is None else epoch, owned=owned), version)

    def acknowledge(self) -> "asyncio.Future[ConsumerGroupHeartbeatResponse]":
        """Heartbeat that it has what it is ``assigned``, and nothing else: the rest is given back."""
        return self.heartbeat(self.assigned)

    def subscribe(self, *topics: str, regex: str | None = None) -> "asyncio.Future[ConsumerGroupHeartbeatResponse]":
        """Heartbeat that it subscribes to ``topics`` now, and to what ``regex`` matches; without one, to none any more."""
        self.topics = topics
        self.regex = "" if regex is None and self.regex is not None else regex
        return self._ask(self._request(self.epoch, owned=self.assigned, is_full=True), None)

    def leave(self) -> "asyncio.Future[ConsumerGroupHeartbeatResponse]":
        """Leave the group."""
        return self._ask(self._request(LEAVE_EPOCH, owned=None), None)

    def leave_for_now(self) -> "asyncio.Future[ConsumerGroupHeartbeatResponse]":
        """Leave as a static member that will be back: its partitions are kept for it until its session ends."""
        return self._ask(self._request(AWAY_EPOCH, owned=None), None)

    def commit(self, offsets: Mapping[TopicPartition, int]) -> "asyncio.Future[dict[TopicPartition, ErrorCode]]":
        """OffsetCommit with its member id and epoch; the answer has the error code of each partition."""
        request = offset_commit_request(self.group, self.epoch, self.member_id, self.instance_id, offsets)
        return self._requests.ask(request, commit_errors, version=OFFSET_COMMIT_BY_NAME)

    def vanish(self) -> None:
        """End without a word, as after a crash: what was asked is not answered any more."""
        self._requests.close()

    async def reconcile(self) -> None:
        """Join if it is not in the group, then give back and take what it is told to, until nothing is left to do for it.

        It may still have to wait for what others are to give back. Raises AssertionError if a heartbeat is refused.
        """
        if self.epoch <= JOIN_EPOCH:
            _require_none(await self.join())
        before = None
        while before != (self.epoch, self.assigned):
            before = self.epoch, self.assigned
            _require_none(await self.acknowledge())

    # Asking.

    def _request(
        self, epoch: int, *, owned: Iterable[TopicPartition] | None, is_full: bool = False
    ) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance_id,
            rack_id=self.rack_id if is_full else None,
            rebalance_timeout_ms=self.rebalance_timeout_ms if is_full else -1,
            subscribed_topic_names=self.topics if is_full else None,
            subscribed_topic_regex=self.regex if is_full else None,
            server_assignor=self.assignor if is_full else None,
            topic_partitions=None if owned is None else self._by_topic(owned),
        )

    def _by_topic(self, partitions: Iterable[TopicPartition]) -> tuple[TopicPartitions, ...]:
        ids = {name: topic_id for topic_id, name in self._topic_names().items()}
        numbers: dict[str, list[int]] = {}
        for topic, number in sorted(partitions):
            numbers.setdefault(topic, []).append(number)
        return tuple(
            TopicPartitions(topic_id=ids[topic], partitions=tuple(of_topic))
            for topic, of_topic in numbers.items()
            if topic in ids
        )

    def _ask(
        self, request: ConsumerGroupHeartbeatRequest, version: int | None
    ) -> "asyncio.Future[ConsumerGroupHeartbeatResponse]":
        def heard(response: ConsumerGroupHeartbeatResponse) -> ConsumerGroupHeartbeatResponse:
            if response.error_code == ErrorCode.NONE:
                self.member_id, self.epoch = response.member_id or self.member_id, response.member_epoch
                if response.assignment is not None:
                    names = self._topic_names()
                    self.assigned = frozenset(
                        (name, number)
                        for topic in response.assignment.topic_partitions
                        if topic.topic_id and (name := names.get(topic.topic_id))
                        for number in topic.partitions
                    )
            return response

        return self._requests.ask(request, heard, version=version)


def _require_none(response: ConsumerGroupHeartbeatResponse) -> None:
    assert response.error_code == ErrorCode.NONE, f"{ErrorCode(response.error_code).name}: {response.error_message}"
