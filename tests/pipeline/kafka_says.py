"""What Kafka's own tools print of a cluster, as rows; and what its log of offsets has in it, as they dump that."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.clients.kafka_tools import CLASSES, PACKAGE, KafkaTools

CLASSES.setdefault("kafka-groups", f"{PACKAGE}.GroupsCommand")
OPTIONAL = "GROUP-INSTANCE-ID"
"""The only column between others that may be empty."""
_BATCH = re.compile(r"producerId: (-?\d+) .* isTransactional: (\w+) isControl: (\w+) ")
_RECORD = re.compile(r"^\| offset: (\d+) .*? key: (\{.*\}) payload: (.*)$")
_MARKER = re.compile(r"endTxnMarker: (\w+)")


class LogRecord(NamedTuple):
    """A record of ``__consumer_offsets`` that counts; without a ``value`` it is a tombstone."""

    type: int
    key: dict[str, Any]
    value: dict[str, Any] | None


def described(tools: KafkaTools, *options: str) -> list[dict[str, str]]:
    """What ``kafka-consumer-groups --describe --all-groups`` says, a row for each line of its tables."""
    return list(_rows(tools("kafka-consumer-groups", "--describe", "--all-groups", "--timeout", "60000", *options)))


def _rows(text: str) -> Iterator[dict[str, str]]:
    header: list[str] = []
    for line in text.splitlines():
        words = line.replace("(ID)", "ID").split()
        if words[:1] == ["GROUP"]:
            header = words
        elif words and not line.startswith(("Consumer group '", "Warning: ")):
            if OPTIONAL in header and len(words) < len(header):
                words.insert(header.index(OPTIONAL), "")
            yield dict(zip(header, words, strict=True))


def places(text: str) -> set[tuple[str, int]]:
    """``orders:0,1;payments:2`` as topics and partitions; ``-`` is none."""
    topics = (topic.rpartition(":") for topic in text.split(";") if text != "-")
    return {(name, int(number)) for name, _, numbers in topics for number in numbers.split(",")}


def line(tools: KafkaTools, *arguments: str) -> list[dict[str, str]]:
    """What ``kafka-transactions`` says: columns with tabs between them."""
    header, *rows = [
        [word.strip() for word in said.rstrip("\t").split("\t")]
        for said in tools("kafka-transactions", *arguments).splitlines()
        if said.strip()
    ]
    return [dict(zip(header, row, strict=True)) for row in rows]


def log_records(dump: str) -> list[LogRecord]:
    """The records in what ``DumpLogSegments --offsets-decoder`` prints, without those of transactions that have not been
    committed."""
    found: list[LogRecord] = []
    pending: dict[str, list[LogRecord]] = defaultdict(list)
    into, producer = found, ""
    for said in dump.splitlines():
        if said.startswith("Dumping "):
            pending.clear()
        elif batch := _BATCH.search(said):
            producer = batch[1]
            into = pending[producer] if batch[2] == "true" else found
        elif marker := _MARKER.search(said):
            ended = pending.pop(producer, [])
            found += ended if marker[1] == "COMMIT" else []
        elif record := _RECORD.search(said):
            key, value = json.loads(record[2]), record[3]
            into.append(
                LogRecord(int(key["type"]), key["data"], json.loads(value)["data"] if value.startswith("{") else None)
            )
    return found
