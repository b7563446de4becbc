"""What docs/brokers.md shows is so."""

import asyncio
import re
import textwrap
from pathlib import Path
from typing import Any

import groupcoord as gc

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "brokers.md").read_text(encoding="utf-8")

PROGRAMS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def run(program: str) -> list[tuple[Any, ...]]:
    """What a whole program prints."""
    told: list[tuple[Any, ...]] = []
    exec(program, {"print": lambda *words: told.append(words)})
    return told


def test_a_follower_that_is_behind_holds_the_high_watermark_back() -> None:
    assert run(PROGRAMS[2]) == [("before:", False, 0), ("after:", True, 1), (True,)]


def test_what_only_a_leader_had_is_lost_with_it() -> None:
    assert run(PROGRAMS[3]) == [([b"espresso"],), (1,), ("nothing was promised",)]


def test_a_leader_that_is_cut_off_from_the_controller_follows_when_it_hears_of_that() -> None:
    assert run(PROGRAMS[4]) == [(True, True), (3,)]


def test_what_shows_each_word_is_there() -> None:
    named = re.findall(r"`(tests/\S+\.py)::(\w+)`", TEXT)
    assert len(named) == 13
    for path, name in named:
        assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), name


def test_acks_all_waits_for_a_follower_with_a_slow_disk() -> None:
    condition = "running, slow disk: 500 ms for each append"
    assert run(PROGRAMS[5]) == [(condition,), ("before:", False), ("after:", True)]


def test_nobody_leads_what_a_broker_led_that_dies_without_a_controller() -> None:
    printed = "\n".join(" ".join(map(str, words)) for words in run(PROGRAMS[6]))
    assert f"{PROGRAMS[6]}```\n\n```text\n{printed}\n```" in TEXT


def test_the_programs_run() -> None:
    told: list[str] = []
    start, move, *_ = PROGRAMS
    shown = start + textwrap.indent(move, "    ") + "    return kafka\n"
    names: dict[str, Any] = {"gc": gc, "print": told.append}
    exec("async def story():\n" + textwrap.indent(shown, "    "), names)
    kafka: gc.Cluster = asyncio.run(names["story"]())
    assert told == [kafka.addresses[1]]
    orders = kafka.core.broker.topics.get("orders")
    assert orders is not None
    assert orders.metadata.leaders[0] == 2
