"""What docs/client.md shows is run."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from groupcoord.client import client_errors
from groupcoord.client.consumer import Consumer
from groupcoord.client.trouble_log import TroubleLog
from groupcoord.core.events import Event
from tests.client.broker import broker

PAGES = Path(__file__).resolve().parents[2] / "docs"
PAGE = PAGES.joinpath("client.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
SHORT, STEPS, CONSUMER, MIGRATED = (text for language, text in BLOCKS if language == "python")


@pytest.mark.slow
def test_the_steps_are_printed_as_shown() -> None:
    shown, _ = (text for language, text in BLOCKS if language == "text")
    finished = subprocess.run([sys.executable, "-c", STEPS], check=True, capture_output=True, text=True, timeout=60)
    assert finished.stdout == shown


@pytest.mark.slow
def test_the_short_example_prints_what_is_produced() -> None:
    async def story() -> bytes:
        async with broker({"orders": 1}) as real:
            await real.produce("orders", [b"an espresso"])
            program = SHORT.replace("127.0.0.1:9092", real.address)
            running = await asyncio.create_subprocess_exec(
                sys.executable, "-u", "-c", program, stdout=asyncio.subprocess.PIPE
            )
            assert running.stdout is not None
            line = await asyncio.wait_for(running.stdout.readline(), 20)
            running.kill()
            await running.wait()
            return line

    assert asyncio.run(story()) == b"0 0 b'an espresso'\n"


def test_a_consumer_of_the_consumer_protocol_is_made_as_shown() -> None:
    one = eval(CONSUMER, {"Consumer": Consumer})
    assert one.subscription() == {"orders"}
    assert type(one.membership).__name__ == "ConsumerMembership"


def test_what_the_page_names_is_there() -> None:
    calls = set(re.findall(r"`(?:await )?(\w+)\(", PAGE)) - {"async", "last_poll_timestamp"}
    assert calls
    assert [name for name in calls if name.islower() and not hasattr(Consumer, name)] == []
    raised = set(re.findall(r"`(\w+Error)`", PAGE))
    assert [name for name in raised if not hasattr(client_errors, name)] == []


@pytest.mark.slow
def test_the_example_of_the_readme_does_the_same_with_this_consumer_in_as_many_lines() -> None:
    finished = subprocess.run([sys.executable, "-c", MIGRATED], check=True, capture_output=True, text=True, timeout=60)
    assert finished.stdout == "b'an espresso'\n"
    readme = PAGES.parent.joinpath("README.md").read_text(encoding="utf-8")
    (with_aiokafka,) = re.findall(r"```python\n([^`]*AIOKafkaConsumer[^`]*)```", readme)
    assert len(MIGRATED.splitlines()) <= len(with_aiokafka.splitlines())


def test_what_the_log_says_is_as_shown() -> None:
    events: list[Event] = []
    troubles = TroubleLog("consumer in app", now_ms=lambda: 0, listen=events.append)
    troubles.begin("the coordinator of app", "")
    troubles.end("the coordinator of app")
    began, ended = (event.text() for event in events)
    assert f"WARNING {began}" in PAGE
    assert f"INFO    {ended.removesuffix('0 ms')}" in PAGE
