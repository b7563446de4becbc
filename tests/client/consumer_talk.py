"""A ConsumerMembership (KIP-848) without I/O; the test plays the coordinator and the brokers, message by message."""

import uuid
from typing import Any

from groupcoord.client.member import actions as a
from groupcoord.client.member.consumer_membership import ConsumerMembership
from groupcoord.client.member.member_settings import MemberSettings
from groupcoord.client.member.metadata_and_commit_requests import MetadataSnapshot
from groupcoord.protocol.apis.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from groupcoord.protocol.errors import ErrorCode
from tests.client.talk import Conversation, partitions

ME = "me"
INTERVAL_MS = 5_000
IDS = {"t": uuid.UUID(int=1), "u": uuid.UUID(int=2)}


def listed(*numbers: int, topic: str = "t") -> tuple[TopicPartitions, ...]:
    """Partitions of one topic as heartbeats list them."""
    return (TopicPartitions(topic_id=IDS[topic], partitions=numbers),) if numbers else ()


class ConsumerTalk(Conversation):
    """A member of the consumer protocol speaks. It knows the ids of the topics, unless ``knows`` says otherwise."""

    membership: ConsumerMembership

    def __init__(
        self,
        *,
        topics: tuple[str, ...] = ("t",),
        present: bool = True,
        knows: tuple[str, ...] = ("t", "u"),
        **settings: Any,
    ) -> None:
        settings = {"group_id": "g", "auto_commit": False, **settings}
        membership = ConsumerMembership(MemberSettings(**settings), ME, chance=lambda: 0.5)
        super().__init__(membership, topics=(), present=present)
        self.learns(*knows)
        if topics:
            self.subscribes(*topics)

    def learns(self, *topics: str) -> None:
        """Metadata of exactly ``topics`` has come."""
        ids = {topic: IDS[topic] for topic in topics}
        view = MetadataSnapshot(partitions=dict.fromkeys(topics, 4), ids=ids)
        self.hears(self.membership.topics_changed(view, self.now_ms))

    def beat(
        self,
        *assigned: TopicPartitions,
        epoch: int | None = None,
        code: ErrorCode = ErrorCode.NONE,
        unchanged: bool = False,
        interval_ms: int = INTERVAL_MS,
        message: str | None = None,
    ) -> ConsumerGroupHeartbeatRequest:
        """It sends a heartbeat, and is answered: with ``assigned``, with an assignment that is ``unchanged``, or ``code``."""
        send, request = self.sends(ConsumerGroupHeartbeatRequest)
        self.answer(
            send, *assigned, epoch=epoch, code=code, unchanged=unchanged, interval_ms=interval_ms, message=message
        )
        return request

    def answer(
        self,
        send: a.SendRequest,
        *assigned: TopicPartitions,
        epoch: int | None = None,
        code: ErrorCode = ErrorCode.NONE,
        unchanged: bool = False,
        interval_ms: int = INTERVAL_MS,
        message: str | None = None,
    ) -> None:
        """The answer to a heartbeat that was sent before."""
        if code:
            self.completes(send, ConsumerGroupHeartbeatResponse(error_code=code, error_message=message))
            return
        answer = ConsumerGroupHeartbeatResponse(
            member_id=ME,
            member_epoch=send.request.member_epoch if epoch is None else epoch,
            heartbeat_interval_ms=interval_ms,
            assignment=None if unchanged else Assignment(topic_partitions=assigned),
        )
        self.completes(send, answer)

    def quiet_beat(self, **how: Any) -> ConsumerGroupHeartbeatRequest:
        """The interval passes; the heartbeat is answered, and nothing has changed."""
        self.waits(INTERVAL_MS)
        return self.beat(unchanged=True, **how)

    def beat_brings(self, *assigned: TopicPartitions, **how: Any) -> ConsumerGroupHeartbeatRequest:
        """The interval passes; the next heartbeat is answered with this."""
        self.waits(INTERVAL_MS)
        return self.beat(*assigned, **how)

    def settles(self, *numbers: int, epoch: int = 1) -> ConsumerGroupHeartbeatRequest:
        """It finds the coordinator, joins, and gets the partitions of ``t`` with these numbers. Its first heartbeat."""
        if self.membership.coordinator is None:
            self.find()
        joined = self.beat(*listed(*numbers), epoch=epoch)
        self.owns(*partitions(*numbers))
        self.told("assigned", *partitions(*numbers))
        assert self.beat(unchanged=True).topic_partitions == listed(*numbers)
        assert self.is_quiet()
        return joined


def settled(*numbers: int, **how: Any) -> ConsumerTalk:
    """A member in epoch 1 that owns partitions of ``t``, and whose user waits for records."""
    talk = ConsumerTalk(**how)
    talk.settles(*numbers)
    return talk
