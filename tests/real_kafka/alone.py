"""Tests of a real Kafka alone: groupcoord takes no part in them, so what one has shown stays true until its files change.

When such a test has passed, ``passed_alone.json`` notes a digest of all files that it may depend on. ``KAFKA_ALONE=changed``
leaves out those with the same digest, which saves CI the start of some fifty brokers. groupcoord's side of them always runs.
"""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest

from tests.real_kafka.image import kafka_version

MARKS = (pytest.mark.real_kafka, pytest.mark.kafka_alone)
NOTES = Path(__file__).with_name("passed_alone.json")
TESTS = NOTES.parents[1]
FOLDERS = ("clients", "conformance", "real_kafka")


def notes() -> Mapping[str, str]:
    """The digest with which each test has passed."""
    noted: Mapping[str, str] = json.loads(NOTES.read_text())
    return noted


def note(passed: Iterable[str], failed: Iterable[str]) -> None:
    """Write down that tests passed as they are now, and forget those that failed."""
    found = {**notes(), **dict.fromkeys(passed, digest())}
    for test in failed:
        found.pop(test, None)
    NOTES.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


@cache
def digest() -> str:
    """Of the version of Kafka, and of all files in the folders of these tests and of what they start."""
    said = sha256(kafka_version().encode())
    paths = (path for folder in FOLDERS for path in (TESTS / folder).rglob("*") if path.is_file() and path != NOTES)
    for path in sorted(path for path in paths if path.parent.name != "__pycache__"):
        said.update(f"{path.relative_to(TESTS)} {sha256(path.read_bytes()).hexdigest()}\n".encode())
    return said.hexdigest()
