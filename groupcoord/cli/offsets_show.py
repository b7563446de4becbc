"""What ``groupcoord offsets`` shows: the records of a source, and what compaction would make of them."""

import contextlib
import json
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from groupcoord.cli.assign_tables import table
from groupcoord.cli.offsets_texts import after_rows, before_rows, of_group, strips
from groupcoord.offsets_log.entries import Filter, entries
from groupcoord.offsets_log.folders import Folders
from groupcoord.offsets_log.raw import raw
from groupcoord.offsets_log.rehearsal import Rehearsal, Size, rehearse
from groupcoord.offsets_log.source import Batch, Fault, Source, SourceError
from groupcoord.offsets_log.told import entry_json, fault_json, line
from groupcoord.offsets_log.wire import Wire

_NOTHING = Size(0, 0, 0)


@contextlib.contextmanager
def open_source(text: str) -> Iterator[Source]:
    """The source that ``text`` names: a directory, or else HOST:PORT. Raises SourceError."""
    host, colon, port = text.rpartition(":")
    if Path(text).exists() or not (colon and port.isascii() and port.isdecimal()):
        yield Folders(Path(text))
        return
    wire = Wire(host.strip("[]"), int(port))
    try:
        yield wire
    finally:
        wire.close()


def dump(source: Source, wanted: Filter, partitions: Collection[int], *, as_json: bool) -> int:
    """Print every entry that is ``wanted``; what cannot be read goes to stderr, too. Returns the exit code."""
    faults = 0
    for number in _wanted(source, partitions):
        for found in source.read(number):
            for each in entries(found) if isinstance(found, Batch) else (found,):
                if isinstance(each, Fault):
                    faults += 1
                    _tell(each, as_json=as_json)
                elif wanted.passes(each):
                    print(_json(entry_json(each)) if as_json else line(each))
    return 1 if faults else 0


def dump_raw(source: Source, wanted: Filter, partitions: Collection[int]) -> int:
    """Print every record that is ``wanted`` as it is; what cannot be unpacked goes to stderr. Returns the exit code."""
    faults = 0
    for number in _wanted(source, partitions):
        for found in source.read(number):
            for each in raw(found, wanted) if isinstance(found, Batch) else (found,):
                if isinstance(each, Fault):
                    faults += 1
                    print(f"groupcoord offsets: {each}", file=sys.stderr)
                else:
                    print(_json(each))
    return 1 if faults else 0


def _wanted(source: Source, partitions: Collection[int]) -> list[int]:
    missing = sorted(set(partitions) - set(source.partitions))
    if missing:
        there = f"{min(source.partitions)} to {max(source.partitions)}" if source.partitions else "none"
        raise SourceError(f"there is no partition {missing[0]} of __consumer_offsets in it, only {there}")
    return [number for number in source.partitions if not partitions or number in partitions]


def before_and_after(
    source: Source, groups: Collection[str], partitions: Collection[int], now_ms: int, *, as_json: bool
) -> int:
    """Print what compaction would keep of each partition, and in the end how much that is. Returns the exit code."""
    faults = 0
    before, after = _NOTHING, _NOTHING
    for number in _wanted(source, partitions):
        batches: list[Batch] = []
        for found in source.read(number):
            if isinstance(found, Fault):
                faults += 1
                _tell(found, as_json=as_json)
            else:
                batches.append(found)
        if not batches:
            continue
        outcome = rehearse(number, batches, now_ms)
        if groups and not any(of_group(outcome.before, group) for group in groups):
            continue
        before, after = before.plus(outcome.size_before), after.plus(outcome.size_after)
        print(_json(_outcome_json(outcome)) if as_json else _outcome_text(outcome, groups))
    if as_json:
        print(_json({"partitions": "all", "before": before._asdict(), "after": after._asdict()}))
    else:
        print(f"all: {_sizes(before, after)}")
    return 1 if faults else 0


def _outcome_text(outcome: Rehearsal, groups: Collection[str]) -> str:
    before, after = outcome.before, outcome.after
    if groups:
        before = [record for group in groups for record in of_group(before, group)]
        after = [record for group in groups for record in of_group(after, group)]
    rows = [["key", "records", "values, oldest first"]]
    for key, count, values in before_rows(before):
        rows.append([key, count, values[0]])
        rows += [["", "", value] for value in values[1:]]
    lines = [f"__consumer_offsets-{outcome.partition}", "", table(rows), ""]
    for whole, left in strips(before, {record.offset for record in after}):
        lines += [f"before  {whole}", f"after   {left}"]
    lines += ["", table([["at offset", "key", "value"], *map(list, after_rows(after))])] if after else []
    return "\n".join([*lines, "", _sizes(outcome.size_before, outcome.size_after), ""])


def _sizes(before: Size, after: Size) -> str:
    saved = round(100 * (1 - after.bytes / before.bytes)) if before.bytes else 0
    return (
        f"{before.records:,} records of {before.keys:,} keys, {before.bytes:,} bytes; "
        f"compacted {after.records:,} of {after.keys:,}, {after.bytes:,} bytes, {saved} % less"
    )


def _outcome_json(outcome: Rehearsal) -> dict[str, object]:
    kept = {record.offset for record in outcome.after}
    return {
        "partition": outcome.partition,
        "before": outcome.size_before._asdict(),
        "after": outcome.size_after._asdict(),
        "kept": sorted(kept),
        "dropped": [record.offset for record in outcome.before if record.offset not in kept],
    }


def _tell(fault: Fault, *, as_json: bool) -> None:
    if as_json:
        print(_json(fault_json(fault)))
    print(f"groupcoord offsets: {fault}", file=sys.stderr)


def _json(told: dict[str, object]) -> str:
    return json.dumps(told, ensure_ascii=False)
