"""Records of ``__consumer_offsets`` and what Kafka 4.3.1 makes of them: ``records_of_kafka.jsonl``, a line for each.

``from`` says where a record comes from. ``broker``: a broker wrote it, for classic, consumer, share and Streams groups, and
``DumpLogSegments --offsets-decoder`` showed it. ``serde``: Kafka's own generated classes wrote it from random JSON, and back;
one at least for every kind and version, with what no broker writes any more. ``shown`` is Kafka's JSON, in the form of
``OffsetsMessageFormatter``.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple


class Recorded(NamedTuple):
    """One record, where it comes from, and how Kafka shows it."""

    origin: str
    key: bytes
    value: bytes | None
    shown: dict[str, Any]

    @property
    def name(self) -> str:
        """For the parameters of a test."""
        value = self.shown["value"]
        return f"{self.shown['key']['type']}-{'tombstone' if value is None else value['version']}"


def recorded() -> list[Recorded]:
    """All of them."""
    lines = (Path(__file__).parent / "records_of_kafka.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        Recorded(
            line["from"],
            bytes.fromhex(line["key"]),
            None if line["value"] is None else bytes.fromhex(line["value"]),
            line["shown"],
        )
        for line in map(json.loads, lines)
    ]
