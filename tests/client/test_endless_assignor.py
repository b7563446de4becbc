"""A program whose assignor never ends is told so, and ends."""

import asyncio
import subprocess
import sys
import threading

import pytest

from groupcoord.client.member_driver import run_in_daemon_thread

ENDLESS = """
import asyncio, threading
import groupcoord as gc
from groupcoord.assignors import FunctionAssignor

def endless(group):
    while True:
        threading.Event().wait(1)

async def main():
    async with gc.Cluster(topics={"t": 1}) as kafka:
        how = {"bootstrap_servers": kafka.address, "group_id": "g", "max_poll_interval_ms": 300}
        async with gc.Consumer("t", partition_assignment_strategy=FunctionAssignor("endless", endless), **how) as one:
            while True:
                await one.getmany(timeout_ms=50)

asyncio.run(main())
"""


@pytest.mark.slow
def test_a_program_ends_although_its_assignor_does_not() -> None:
    finished = subprocess.run([sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=60, check=False)
    assert finished.returncode == 1
    assert "AssignorFailedError: assignor endless: it has not ended" in finished.stderr


def test_a_thread_may_outlive_the_loop_that_waited_for_it() -> None:
    may_end = threading.Event()
    ended: list[threading.Thread] = []

    def function() -> None:
        may_end.wait(60)
        ended.append(threading.current_thread())

    async def waits_in_vain() -> None:
        run_in_daemon_thread(function).cancel()

    asyncio.run(waits_in_vain())
    (thread,) = [each for each in threading.enumerate() if each.name == "groupcoord function"]
    may_end.set()
    thread.join(60)
    assert ended == [thread]
