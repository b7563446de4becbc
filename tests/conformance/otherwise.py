"""Describes the differences between the transcripts of two Kafka versions in words.

Unlike a comparison that has to be exact, this one is to be read: lists of named things are compared by name, an order that
differs is said to be one, and of what was asked in an older version only the fields that this version has are compared.
"""

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from groupcoord.protocol.errors import ErrorCode
from tests.conformance.transcript import Step

NAMES = ("group_id", "name", "topic_id", "member_id", "partition_index", "partition", "index", "api_key", "key")
"""Fields that say which thing in a list is which; the first that a thing has."""

NAMES_SHOWN = 4


class Otherwise(NamedTuple):
    """The first step of a story that goes otherwise; ``asked_as`` is the version it was asked in, if that is an older one."""

    api: str
    asked_as: int | None
    phrases: tuple[str, ...]
    step: int
    does: str


def first_otherwise(expected: Sequence[Step], got: Sequence[Step]) -> Otherwise | None:
    """Where a story first goes otherwise than ``expected``; None where it never does."""
    for number, (want, have) in enumerate(zip(expected, got, strict=False), 1):
        asked_as = _asked_as(want, have)
        if phrases := tuple(dict.fromkeys(_in_step(want, have, as_older=asked_as is not None))):
            return Otherwise(_api_of(want), asked_as, phrases, number, f"{want['actor']} {want['does']}")
    if len(got) != len(expected):
        last = (expected if len(expected) > len(got) else got)[min(len(expected), len(got))]
        phrase = "the story ends earlier" if len(got) < len(expected) else "the story goes on"
        return Otherwise(_api_of(last), None, (phrase,), min(len(expected), len(got)) + 1, last["does"])
    return None


def _in_step(want: Step, have: Step, *, as_older: bool) -> Iterator[str]:
    if (want["actor"], want["does"]) != (have["actor"], have["does"]):
        yield f"the story goes elsewhere: {have['actor']} {have['does']}"
    elif want["actor"] == "log":
        yield from _in_log(want["gets"], have["gets"])
    elif as_older:
        yield from _in_value(
            _common(want.get("gets"), have.get("gets")), _common(have.get("gets"), want.get("gets")), ""
        )
    else:
        yield from _in_value(want.get("gets"), have.get("gets"), "")
        yield from _in_value(want.get("sends"), have.get("sends"), "request")


def _in_log(want: list[Any], have: list[Any]) -> Iterator[str]:
    """What is otherwise among the records of a story's groups."""
    wanted, got = [_record(item) for item in want], [_record(item) for item in have]
    for kind, start, end, from_, to in difflib.SequenceMatcher(None, wanted, got, autojunk=False).get_opcodes():
        if kind == "equal":
            for one, other in zip(want[start:end], have[from_:to], strict=True):
                yield from _in_value(one, other, "")
        for missing in wanted[start:end] if kind != "equal" else ():
            yield f"no record of {missing}"
        for new in got[from_:to] if kind != "equal" else ():
            yield f"a record more, of {new}"


def _record(item: Any) -> str:
    """Which record it is."""
    key, value = item["key"], item.get("value")
    if key["type"] != 2:
        return "a deleted offset" if value is None else "an offset"
    if value is None:
        return "the group's end"
    count = len(value["members"])
    return f"generation {value['generation']}, {count} member{'' if count == 1 else 's'}"


def _in_value(want: Any, have: Any, path: str) -> Iterator[str]:
    """One phrase for each place where ``have`` is not like ``want``."""
    if isinstance(want, dict) and isinstance(have, dict):
        for name in [*want, *(name for name in have if name not in want)]:
            where = f"{path}.{name}" if path else name
            if name not in have:
                yield f"{_place(where)} is missing"
            elif name not in want:
                yield f"{_place(where)}: {_shown(have[name], where)} besides"
            else:
                yield from _in_value(want[name], have[name], where)
    elif isinstance(want, list) and isinstance(have, list):
        yield from _in_list(want, have, path)
    elif want != have and isinstance(have, str) and have.startswith(("no answer", "the connection was closed")):
        found = re.sub(r" within \d+ ms", "", have)  # some wait until a moment, which is another wait each time
        yield f"{found}, instead of {'an answer' if isinstance(want, dict) else _shown(want, path)}"
    elif want != have:
        yield f"{_place(path)} is {_shown(have, path)} instead of {_shown(want, path)}"


def _in_list(want: list[Any], have: list[Any], path: str) -> Iterator[str]:
    wanted, got = _by_name(want), _by_name(have)
    if wanted is None or got is None:
        if want != have and _sorted(want) == _sorted(have):
            yield f"{_place(path)} in another order"
            return
        for one, other in zip(want, have, strict=False):
            yield from _in_value(one, other, path)
        if len(want) != len(have):
            yield f"{_place(path)} has {len(have)} items instead of {len(want)}"
        return
    if missing := [name for name in wanted if name not in got]:
        yield f"{_place(path)} without {_names(missing)}"
    if new := [name for name in got if name not in wanted]:
        yield f"{_place(path)} with {_names(new)} besides"
    if [name for name in wanted if name in got] != [name for name in got if name in wanted]:
        yield f"{_place(path)} in another order"
    for name, one in wanted.items():
        if name in got:
            yield from _in_value(one, got[name], path)


def _by_name(items: list[Any]) -> dict[str, Any] | None:
    """``items`` by what they are called, if each has a name of its own."""
    found: dict[str, Any] = {}
    for item in items:
        name = (
            next((str(item[field]) for field in NAMES if item.get(field) is not None), None)
            if isinstance(item, dict)
            else None
        )
        if name is None or name in found:
            return None
        found[name] = item
    return found


def _sorted(items: list[Any]) -> list[str]:
    return sorted(json.dumps(item, sort_keys=True) for item in items)


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(f"`{name}`" for name in names[:NAMES_SHOWN]) + more


def _common(one: Any, other: Any) -> Any:
    """``one`` with those fields only that ``other`` has too."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {name: _common(value, other[name]) for name, value in one.items() if name in other}
    if isinstance(one, list) and isinstance(other, list):
        return [_common(item, other[min(index, len(other) - 1)]) if other else item for index, item in enumerate(one)]
    return one


def _asked_as(want: Step, have: Step) -> int | None:
    """The version of the request, if it is older than the expected one."""
    asked, spoken = sent(want), sent(have)
    older = asked is not None and spoken is not None and asked[0] == spoken[0] and asked[1] > spoken[1]
    return spoken[1] if older and spoken is not None else None


def sent(step: Step) -> tuple[str, int] | None:
    """API and version of the request in a step, if it has one."""
    if not isinstance(step.get("sends"), dict):
        return None
    name, _, version = next(iter(step["sends"])).partition(" v")
    return name, int(version)


def _api_of(step: Step) -> str:
    """What a step is about."""
    if asked := sent(step):
        return asked[0]
    if step["actor"] == "log":
        return "`__consumer_offsets`"
    answered = re.search(r": (\w+) of step", step["does"])
    return answered.group(1) if answered else "raw bytes"


def _place(path: str) -> str:
    return f"`{path}`" if path else "the answer"


def _shown(value: Any, path: str) -> str:
    if path.endswith("error_code") and isinstance(value, int):
        return ErrorCode(value).name
    text = json.dumps(value, ensure_ascii=False)
    return f"`{text if len(text) <= 80 else text[:80] + '…'}`"
