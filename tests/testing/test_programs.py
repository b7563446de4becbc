"""The same test of programs in Python and Java that know nothing of it: one falls silent for longer than its session."""

import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.clients.kafka_tools import NoTools, jars
from tests.clients.processes import run, running
from tests.clients.support import eventually

pytestmark = [pytest.mark.slow, pytest.mark.clients]

PROGRAMS = Path(__file__).parent / "programs"


def _java(directory: Path) -> Sequence[str]:
    try:
        found = jars()
    except NoTools as problem:
        pytest.skip(str(problem))
    if shutil.which("javac") is None:
        pytest.skip("there is no javac here, which the program is compiled with")
    class_path = os.pathsep.join([str(directory), *found])
    run(["javac", "-cp", class_path, "-d", str(directory), str(PROGRAMS / "Program.java")])
    return ["java", "-Xlog:disable", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", class_path, "Program"]


@pytest.mark.parametrize("library", ["aiokafka", "kafka_python", "confluent_kafka", "java"])
@pytest.mark.kafka(topics={"orders": 6})
def test_a_silent_program_loses_its_share_to_the_other(kafka_sync: Any, library: str, tmp_path: Path) -> None:
    kafka = kafka_sync  # every method of it without ``await``
    command = _java(tmp_path) if library == "java" else [sys.executable, str(PROGRAMS / f"with_{library}.py")]
    group = kafka.group("app")
    with ExitStack() as programs:
        a, b = (programs.enter_context(running([*command, kafka.address, name])) for name in "ab")
        group.wait_stable(members=2, timeout=60)
        b.pause()
        with kafka.faults.when("Heartbeat", client_id="b").drop().always().optional():  # nobody heartbeats in its name
            kafka.clock.advance(50)
        view = group.wait_stable(members=1, timeout=60)
        assert view.members[0].client_id == "a"
        # A kafka-python that leads before it knows the topic gives nothing to anybody, and joins again when it does.
        eventually(
            lambda: len(group.wait_stable(members=1).members[0].assigned) == 6, saying="it takes over all there is"
        )
        assert "session of 45,000 ms ran out" in kafka.trace.why("app", view.generation)
        kafka.produce("orders", b"an espresso", partition=5)
        eventually(lambda: a.lines == ["an espresso"], saying="who has the partition now reads from it")
        b.resume()
        group.wait_stable(members=2, timeout=60)  # it has heard of it, and is back
