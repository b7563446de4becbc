"""What docs/brokers.md shows is so."""

import asyncio
import re
import textwrap
from pathlib import Path
from typing import Any

import groupcoord as gc

TEXT = (Path(__file__).resolve().parent.parent / "docs" / "brokers.md").read_text(encoding="utf-8")


def test_the_programs_run() -> None:
    told: list[str] = []
    start, move = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    shown = start + textwrap.indent(move, "    ") + "    return kafka\n"
    names: dict[str, Any] = {"gc": gc, "print": told.append}
    exec("async def story():\n" + textwrap.indent(shown, "    "), names)
    kafka: gc.Cluster = asyncio.run(names["story"]())
    assert told == [kafka.addresses[1]]
    orders = kafka.core.broker.topics.get("orders")
    assert orders is not None
    assert orders.metadata.leaders[0] == 2
