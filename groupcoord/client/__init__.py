"""A consumer for asyncio that is a member of a group::

async with Consumer("localhost:9092", group="app", topics=["orders"]) as consumer:
    async for record in consumer:
        ...
"""

from groupcoord.client.consumer import Consumer
from groupcoord.client.errors import (
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
from groupcoord.client.member.membership import Membership
from groupcoord.client.member.settings import MemberSettings
from groupcoord.client.offsets import OffsetAndMetadata
from groupcoord.client.partitions import ConsumerRecord

__all__ = [
    "AssignorFailedError",
    "BrokerError",
    "CallbackFailedError",
    "ClientError",
    "CommitFailedError",
    "Consumer",
    "ConsumerClosedError",
    "ConsumerRecord",
    "CorruptRecordsError",
    "DisconnectedError",
    "MemberSettings",
    "Membership",
    "OffsetAndMetadata",
    "OffsetError",
    "RebalanceInProgressError",
    "RequestTimedOutError",
    "UnsupportedVersionError",
]
