"""Runs the tests with real sockets on both event loops, asyncio's and uvloop."""

import asyncio

import pytest
import uvloop

from tests.server.sockets import Run, runner


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs one story; each test comes once per event loop."""
    return runner(request.param)
