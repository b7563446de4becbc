"""A consumer for asyncio that is a member of a group, with every step of it to be seen::

async with Consumer("localhost:9092", group="app", topics=["orders"]) as consumer:
    async for record in consumer:
        ...
"""

from groupcoord.client.consumer import Consumer
from groupcoord.client.decoding import Record
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
from groupcoord.client.membership import Membership
from groupcoord.client.offsets import Offset
from groupcoord.client.settings import MemberSettings

__all__ = [
    "AssignorFailedError",
    "BrokerError",
    "CallbackFailedError",
    "ClientError",
    "CommitFailedError",
    "Consumer",
    "ConsumerClosedError",
    "CorruptRecordsError",
    "DisconnectedError",
    "MemberSettings",
    "Membership",
    "Offset",
    "OffsetError",
    "RebalanceInProgressError",
    "Record",
    "RequestTimedOutError",
    "UnsupportedVersionError",
]
