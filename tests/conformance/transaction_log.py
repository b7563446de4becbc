"""Reads records of ``__transaction_state`` with raw Fetch requests, and decodes them with its own decoder.

The layouts are those of Kafka's ``TransactionLogKey`` and ``TransactionLogValue``. Every byte is shown: as a field, and in hex
with a name in the place of what differs from run to run.
"""

import struct
from typing import Any

from groupcoord.protocol.apis.fetch import FetchPartition, FetchTopic
from groupcoord.protocol.messages import FetchRequest
from tests.conformance.actors import Stagehand
from tests.conformance.batches import end_of, raw_records, shown_batches
from tests.conformance.offsets_topic import partition_of
from tests.conformance.story import Story, StoryBroken

TOPIC = "__transaction_state"
STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
_TAGS = {
    0: ("previous_producer_id", "q"),
    1: ("next_producer_id", "q"),
    2: ("client_transaction_version", "h"),
    3: ("next_producer_epoch", "h"),
}
"""The tagged fields of a value of version 1 by their tags: names, and layouts as of ``struct``."""


def show_what_is_logged(s: Story, *transactional_ids: str, last: int | None = None) -> None:
    """The step that shows the records of ``transactional_ids``, or the ``last`` of them, each with the batch it came in."""
    stage = Stagehand(s)
    step = s.begin("log", f"holds in {TOPIC}")
    found = [
        (batch, key or b"", value)
        for partition in sorted({partition_of(transactional_id) for transactional_id in transactional_ids})
        for batch in _batches(stage, partition)
        for _, key, value in raw_records(batch)
        if _name(key or b"") in transactional_ids
    ]
    step["gets"] = [_shown(s, *record) for record in found[-(last or 0) :]]
    s.end()


def _batches(stage: Stagehand, partition: int) -> list[bytes]:
    """The batches of a partition of the log."""
    found: list[bytes] = []
    offset, end = 0, stage.end(TOPIC, partition)
    while offset < end:
        wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 24)
        topic = FetchTopic(topic=TOPIC, partitions=(wanted,))
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 24, topics=(topic,))
        data = bytes(stage.ask(request, 12).responses[0].partitions[0].records or b"")
        if (reached := end_of(data, offset)) == offset:
            raise StoryBroken(f"{TOPIC}-{partition} gave nothing at {offset} of {end}")
        offset, at = reached, 0
        while at + 12 <= len(data):
            (size,) = struct.unpack_from(">i", data, at + 8)
            found.append(data[at : at + 12 + size])
            at += 12 + size
    return found


def _shown(s: Story, batch: bytes, key: bytes, value: bytes | None) -> dict[str, Any]:
    # Its offset says how much others have written to the same partition, and what is forgotten shares a batch.
    (header,) = [each for each in shown_batches(batch) if isinstance(each, dict)]
    of_others = {"records", "base_offset"} | ({"last_offset_delta"} if value is None else set())
    frame = {field: header[field] for field in header if field not in of_others}
    return {
        "batch": s.shown(frame, f"{TOPIC}/batch"),
        "key": {"transactional_id": _name(key), "bytes": key.hex()},
        "value": None if value is None else shown_value(s, value),
    }


def shown_value(s: Story, value: bytes) -> dict[str, Any]:
    """The fields of a record's value, and all of it in hex, as they go into the transcript of ``s``."""
    return _Value(value, s).whole()


def _name(key: bytes) -> str:
    """The transactional id in a key of version 0; of anything else the bytes."""
    kind, size = struct.unpack_from(">hh", key)
    return key[4:].decode() if (kind, size) == (0, len(key) - 4) else key.hex()


class _Value:
    """Reads a value, and spells it: bytes in hex, and names of ids and times."""

    def __init__(self, data: bytes, story: Story) -> None:
        self.data, self.at, self.story, self.spelt = data, 0, story, [""]

    def whole(self) -> dict[str, Any]:
        version = self._number("h")
        shown: dict[str, Any] = {
            "version": version,
            "producer_id": self._number("q", "producer_id"),
            "producer_epoch": self._number("h"),
            "transaction_timeout_ms": self._number("i"),
            "transaction_status": STATES[self._number("b")],
            "transaction_partitions": self._partitions(flexible=version >= 1),
            "transaction_last_update_timestamp_ms": self._number("q", "timestamp"),
            "transaction_start_timestamp_ms": self._number("q", "timestamp"),
        }
        if version >= 1:
            for _ in range(self._varint()):
                name, code = _TAGS[self._varint()]
                self._varint()
                shown[name] = self._number(code, "producer_id" if code == "q" else "")
        if self.at < len(self.data):
            shown["trailing bytes"] = self.data[self.at :].hex()
        return {**shown, "bytes": " ".join(part for part in self.spelt if part)}

    def _partitions(self, *, flexible: bool) -> list[Any] | None:
        count = self._length(flexible=flexible)
        return None if count < 0 else [self._topic(flexible=flexible) for _ in range(count)]

    def _topic(self, *, flexible: bool) -> dict[str, Any]:
        size = self._length(flexible=flexible) if flexible else self._number("h")
        name = self._spell(self.data[self.at : self.at + size]).decode()
        shown = {"topic": name, "partition_ids": [self._number("i") for _ in range(self._length(flexible=flexible))]}
        return {**shown, **({"tags": tags} if flexible and (tags := self._varint()) else {})}

    def _length(self, *, flexible: bool) -> int:
        return self._varint() - 1 if flexible else self._number("i")

    def _number(self, code: str, rule: str = "") -> Any:
        """The next number, as the rule of ``normalise`` for fields called ``rule`` shows it."""
        (value,) = struct.unpack_from(f">{code}", self.data, self.at)
        shown = self.story.shown({rule: value}, TOPIC)[rule]
        if shown == value:
            self._spell(self.data[self.at : self.at + struct.calcsize(f">{code}")])
        else:
            self.at += struct.calcsize(f">{code}")
            self.spelt += [shown, ""]
        return shown

    def _varint(self) -> int:
        value = shift = 0
        while True:
            (byte,) = self._spell(self.data[self.at : self.at + 1])
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def _spell(self, data: bytes) -> bytes:
        self.at += len(data)
        self.spelt[-1] += data.hex()
        return data
