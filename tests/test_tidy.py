"""The repository looks after itself."""

import re
from pathlib import Path

from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(path for folder in ("groupcoord", "tests", "bench", "tools") for path in (ROOT / folder).rglob("*.py"))
DATA_MODULES = {"errors.py", "broker_and_topic_properties.py", "property_documentation.py", "schemas.py"}


def test_files_are_small_enough_to_read() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in SOURCES
        if path.name not in DATA_MODULES and (lines := len(path.read_text(encoding="utf-8").splitlines())) > 600
    }
    assert not long


def test_nothing_is_left_for_later() -> None:
    words = re.compile(
        r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b|^(<{7}|>{7}) ", re.MULTILINE
    )  # and no mark of a merge conflict
    assert not [str(path.relative_to(ROOT)) for path in SOURCES if words.search(path.read_text(encoding="utf-8"))]


def test_no_test_sleeps() -> None:
    sleeping = re.compile(r"\b(time|asyncio)\.slee" + r"p\(")
    sleepers = {
        str(path.relative_to(ROOT))
        for path in SOURCES
        if "tests" in path.parts and sleeping.search(path.read_text(encoding="utf-8"))
    }
    # A story told to a real broker can only let real time pass, and so can who waits for one to start.
    # So can who waits for a port that a connection of another process has.
    # On simulated time a sleep takes none. A soak takes no more than its share of the machine.
    allowed = {
        "tests/broker/record_aborted_cleaned.py",
        "tests/conformance/wire.py",
        "tests/real_kafka/waiting.py",
        "tests/reliability/soak.py",
        "tests/server/sockets.py",
        "tests/testing/test_virtual_loop.py",
    }
    assert sleepers <= allowed


def test_no_example_fails_for_being_slow() -> None:
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check
