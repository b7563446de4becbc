"""What docs/producer.md shows is run."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from groupcoord.client import client_errors
from groupcoord.client.kafka_producer import Producer
from groupcoord.client.producer import producer_errors
from groupcoord.client.producer.record_accumulator import SendReason
from tests.client.broker import broker

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "producer.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
SHORT, STEPS = (text for language, text in BLOCKS if language == "python")


@pytest.mark.slow
def test_the_steps_are_printed_as_shown() -> None:
    (shown,) = [text for language, text in BLOCKS if language == "text"]
    finished = subprocess.run([sys.executable, "-c", STEPS], check=True, capture_output=True, text=True, timeout=60)
    assert finished.stdout == shown


@pytest.mark.slow
def test_the_short_example_prints_where_the_record_is() -> None:
    async def story() -> bytes:
        async with broker({"orders": 1}) as real:
            program = SHORT.replace("127.0.0.1:9092", real.address)
            running = await asyncio.create_subprocess_exec(
                sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE
            )
            return (await running.communicate())[0]

    assert asyncio.run(story()).startswith(b"RecordMetadata(topic='orders', partition=0, offset=0, timestamp_ms=")


def test_what_the_page_names_is_there() -> None:
    calls = set(re.findall(r"`(\w+)\(", PAGE))
    assert calls
    assert [name for name in calls if not hasattr(Producer, name)] == []
    raised = set(re.findall(r"`(\w+Error)`", PAGE))
    assert raised > {name for name in vars(producer_errors) if name.endswith("Error")} - {
        "ClientError",
        "TransactionTimeoutError",
    }
    assert [name for name in raised if not hasattr(producer_errors, name) and not hasattr(client_errors, name)] == []


def test_every_reason_to_send_is_explained() -> None:
    assert [reason.value for reason in SendReason if f"| {reason.value} |" not in PAGE] == []
