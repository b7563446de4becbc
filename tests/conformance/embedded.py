"""The consumer protocol inside JoinGroup and SyncGroup, written by hand (``ConsumerProtocolSubscription``)."""

import struct
from collections.abc import Mapping, Sequence


def subscription(
    *topics: str,
    user_data: bytes | None = None,
    version: int = 0,
    owned: Mapping[str, Sequence[int]] | None = None,
    generation: int = -1,
    rack: str | None = None,
) -> bytes:
    """A member's metadata: what it wants to read, and from version 1 on what it has."""
    data = struct.pack(">hi", version, len(topics)) + b"".join(_string(topic) for topic in topics)
    data += struct.pack(">i", -1) if user_data is None else struct.pack(">i", len(user_data)) + user_data
    if version >= 1:
        held = owned or {}
        data += struct.pack(">i", len(held))
        for topic, partitions in held.items():
            data += _string(topic) + struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
    if version >= 2:
        data += struct.pack(">i", generation)
    if version >= 3:
        data += struct.pack(">h", -1) if rack is None else _string(rack)
    return data


def assignment(held: Mapping[str, Sequence[int]], *, version: int = 0) -> bytes:
    """A member's share, as a leader of consumers writes it (``ConsumerProtocolAssignment``)."""
    data = struct.pack(">hi", version, len(held))
    for topic, partitions in held.items():
        data += _string(topic) + struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
    return data + struct.pack(">i", -1)


def _string(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded
