"""The asyncio clients: a consumer (below) and a producer (:mod:`groupcoord.client.kafka_producer`)::

async with Consumer("orders", bootstrap_servers="localhost:9092", group_id="app") as consumer:
    async for record in consumer:
        ...
"""

from groupcoord.client.client_errors import (
    AssignorFailedError,
    BrokerError,
    CallbackFailedError,
    ClientError,
    CommitFailedError,
    ConsumerClosedError,
    CorruptRecordsError,
    DisconnectedError,
    OffsetError,
    RebalanceInProgressError,
    RequestTimedOutError,
    UnsupportedVersionError,
)
from groupcoord.client.committed_offsets import OffsetAndMetadata
from groupcoord.client.completed_fetch import ConsumerRecord
from groupcoord.client.consumer import Consumer
from groupcoord.client.member.classic_membership import Membership
from groupcoord.client.member.consumer_membership import ConsumerMembership
from groupcoord.client.member.group_member import GroupMember
from groupcoord.client.member.member_settings import MemberSettings

__all__ = [
    "AssignorFailedError",
    "BrokerError",
    "CallbackFailedError",
    "ClientError",
    "CommitFailedError",
    "Consumer",
    "ConsumerClosedError",
    "ConsumerMembership",
    "ConsumerRecord",
    "CorruptRecordsError",
    "DisconnectedError",
    "GroupMember",
    "MemberSettings",
    "Membership",
    "OffsetAndMetadata",
    "OffsetError",
    "RebalanceInProgressError",
    "RequestTimedOutError",
    "UnsupportedVersionError",
]
