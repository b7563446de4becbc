"""Answers with damaged bytes. The same answer is always damaged in the same way."""

import enum
import hashlib
import struct
from dataclasses import replace
from typing import Any

from groupcoord.core.effects import Call, RawReply, Reply
from groupcoord.protocol.framing import encode_response
from groupcoord.protocol.messages import FetchResponse

_INT32 = struct.Struct(">i")
_BODY = 8
"""Where the body begins: behind the length and the correlation id."""

_CRC = 17
"""Where a batch has its checksum: behind base offset, length, leader epoch and magic (``DefaultRecordBatch``)."""


class Damage(enum.StrEnum):
    """What becomes of the bytes of an answer."""

    FLIP = "flip"
    CRC = "crc"
    LENGTH = "length"
    TRUNCATED = "truncated"
    GARBAGE = "garbage"
    CORRELATION = "correlation"
    CUT = "cut"

    @property
    def text(self) -> str:
        """What it does."""
        return _TEXTS[self]


_TEXTS = {
    Damage.FLIP: "one bit in the middle of the body is another one",
    Damage.CRC: "the checksum of the first batch of records is wrong; Fetch only, and only an answer that has records",
    Damage.LENGTH: "the length before the answer says 4 bytes more than follow",
    Damage.TRUNCATED: "the second half of the body is missing, and the length says so",
    Damage.GARBAGE: "the body is as long as it was and means nothing",
    Damage.CORRELATION: "the correlation id is that of the next request",
    Damage.CUT: "the first half is sent, then the connection is closed",
}


def damaged(how: Damage, call: Call, answer: Reply) -> Reply | RawReply | None:
    """``answer`` to ``call`` with damage; None if it has nothing that can be damaged so."""
    if how is Damage.CRC:
        response = _with_wrong_checksum(answer.response)
        return None if response is None else Reply(answer.call, response)
    asked = answer.call
    data = encode_response(asked.api, asked.version, asked.correlation_id, answer.response)
    return RawReply(call, _BYTES[how](data), hangs_up=how is Damage.CUT)


def _with_wrong_checksum(response: FetchResponse) -> Any:
    for topic_index, topic in enumerate(response.responses):
        for index, partition in enumerate(topic.partitions):
            if partition.records:
                records = bytearray(bytes(partition.records))
                records[_CRC] ^= 0xFF
                partitions = _put(topic.partitions, index, replace(partition, records=bytes(records)))
                topics = _put(response.responses, topic_index, replace(topic, partitions=partitions))
                return replace(response, responses=topics)
    return None


def _put(items: tuple[Any, ...], index: int, item: Any) -> tuple[Any, ...]:
    return (*items[:index], item, *items[index + 1 :])


def _flip(data: bytes) -> bytes:
    middle = (_BODY + len(data)) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def _longer(data: bytes) -> bytes:
    return _INT32.pack(len(data)) + data[4:]  # the 4 bytes of the length itself do not count in it


def _truncated(data: bytes) -> bytes:
    end = (_BODY + len(data)) // 2
    return _INT32.pack(end - 4) + data[4:end]


def _garbage(data: bytes) -> bytes:
    return data[:_BODY] + hashlib.shake_128(b"garbage").digest(len(data) - _BODY)


def _next_correlation_id(data: bytes) -> bytes:
    (correlation_id,) = _INT32.unpack_from(data, 4)
    following = -(1 << 31) if correlation_id == (1 << 31) - 1 else correlation_id + 1
    return data[:4] + _INT32.pack(following) + data[_BODY:]


def _cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


_BYTES = {
    Damage.FLIP: _flip,
    Damage.LENGTH: _longer,
    Damage.TRUNCATED: _truncated,
    Damage.GARBAGE: _garbage,
    Damage.CORRELATION: _next_correlation_id,
    Damage.CUT: _cut,
}
