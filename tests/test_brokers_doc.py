"""What docs/brokers.md shows is so."""

import asyncio
import re
import textwrap
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from groupcoord.server.running import running
from groupcoord.server.server import Server

TEXT = (Path(__file__).resolve().parent.parent / "docs" / "brokers.md").read_text(encoding="utf-8")


def test_the_programs_run() -> None:
    servers: list[Server] = []
    told: list[str] = []

    @asynccontextmanager
    async def noted(**options: Any) -> AsyncIterator[Server]:
        async with running(**options) as server:
            servers.append(server)
            yield server

    start, move = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    program = "async def story():\n" + textwrap.indent(start + textwrap.indent(move, "    "), "    ")
    names: dict[str, Any] = {"running": noted, "print": told.extend, "now_ms": int(time.time() * 1000)}
    exec(program, names)
    asyncio.run(names["story"]())
    (server,) = servers
    assert told == server.addresses
    node: Any = server.cluster
    assert node.broker.topics.get("orders").leaders[0] == 2
