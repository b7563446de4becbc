"""``groupcoord offsets``: shows the records of ``__consumer_offsets`` (and ``__transaction_state``), previews compaction, and
exports and imports the log."""

import argparse
import contextlib
import json
import sys
import time
import uuid
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from groupcoord.broker.events import LogCleaned
from groupcoord.broker.topic_names import CONSUMER_OFFSETS, TRANSACTION_STATE
from groupcoord.cli.assignment_tables import table
from groupcoord.cli.main import complain
from groupcoord.config.broker_config import load
from groupcoord.config.config_def import ConfigError
from groupcoord.offsets_log import compaction_preview
from groupcoord.offsets_log.entries import (
    KIND_NAMES,
    EntryFilter,
    LogEntry,
    entries,
    entry_json,
    entry_text,
    raw_records,
    unreadable_json,
)
from groupcoord.offsets_log.log_source import Batch, LogSource, SourceError, UnreadableData
from groupcoord.offsets_log.offline_import_and_compaction import compact, import_segments
from groupcoord.offsets_log.segment_dir_source import SegmentDirSource
from groupcoord.offsets_log.segment_export import export_segments
from groupcoord.storage.file_io import StorageError
from groupcoord.storage.log_dir_files import CheckpointError, parse_uuid

_SOURCE = (
    "HOST:PORT of a running cluster, a data directory of groupcoord, a directory with folders __consumer_offsets-N, "
    "or one such folder"
)
_REPEATED: dict[str, Any] = {"action": "append", "default": []}
"""Help text of an option that may be repeated."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``offsets`` and its subcommands."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = """\
Show, compact, export and import the log of __consumer_offsets, in which the coordinators
of groupcoord and Kafka store groups and committed offsets. A SOURCE is never changed.
The exit code is 1 if something could not be read."""
    parser.epilog = """\
  groupcoord offsets dump localhost:9092 --group billing
  groupcoord offsets dump ./copied --json --kind OffsetCommit --topic orders
  groupcoord offsets dump localhost:9092 --transactions
  groupcoord offsets --before-after ./data
  groupcoord offsets export localhost:9092 ./segments --group billing
  groupcoord offsets import ./copied ./data && groupcoord serve --data-dir ./data"""
    parser.set_defaults(command=None)
    parser.add_argument(
        "--before-after",
        metavar="SOURCE",
        help="show which records of each key compaction would keep, and how many records and bytes in all",
    )
    _add_wanted(parser, json=True)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    one = commands.add_parser("dump", help="show the records", description="Show the records, one per line.")
    one.add_argument("source", metavar="SOURCE", help=_SOURCE)
    _add_wanted(one, json=True)
    one.add_argument(
        "--transactions",
        action="store_true",
        help="show __transaction_state instead, which stores transactional ids and their transactions",
    )
    one.add_argument(
        "--raw",
        action="store_true",
        help="print JSON with undecoded keys and values (Base64), for pipeline run --source jsonl:FILE",
    )
    one.add_argument(
        "--topic", dest="topics", metavar="TOPIC", **_REPEATED, help="only commits of this topic; may be repeated"
    )
    one.add_argument(
        "--kind",
        dest="kinds",
        metavar="KIND",
        type=_kind,
        **_REPEATED,
        help=f"only records of this kind; may be repeated: {', '.join(KIND_NAMES)}",
    )
    one = commands.add_parser(
        "export",
        help="write Kafka's segment files",
        description="Write a folder for each partition, with segment files that Kafka's tools and brokers can read.",
    )
    one.add_argument("source", metavar="SOURCE", help=_SOURCE)
    one.add_argument("directory", metavar="DIR", type=Path, help="directory for the folders")
    _add_wanted(one)
    one.add_argument(
        "--topic-id",
        type=_topic_id,
        help="topic id of __consumer_offsets in the cluster of the broker that will use the folders; it accepts no other "
        "(default: the topic id of the source)",
    )
    one = commands.add_parser(
        "import",
        help="create a data directory from the files of a Kafka broker",
        description="Create a data directory for groupcoord serve --data-dir from folders that a Kafka broker has written.",
    )
    one.add_argument("folders", metavar="FOLDERS", type=Path, help="a directory with folders __consumer_offsets-N")
    one.add_argument(
        "directory", metavar="DATA_DIR", type=Path, help="the data directory, which is empty or does not exist"
    )
    _add_config(one)
    one = commands.add_parser(
        "compact",
        help="compact the log in a data directory",
        description="Compact the log in a data directory of groupcoord. No server may be using the directory.",
    )
    one.add_argument("directory", metavar="DATA_DIR", type=Path, help="the data directory")
    _add_config(one)


def _add_wanted(parser: argparse.ArgumentParser, *, json: bool = False) -> None:
    parser.add_argument("--group", dest="groups", metavar="GROUP", **_REPEATED, help="only this group; may be repeated")
    parser.add_argument(
        "--partition",
        dest="partitions",
        metavar="PARTITION",
        type=int,
        **_REPEATED,
        help="only this partition of the log; may be repeated",
    )
    if json:
        parser.add_argument("--json", action="store_true", help="print JSON, one object per line")


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-c",
        "--config",
        dest="properties",
        metavar="NAME=VALUE",
        **_REPEATED,
        help="set a broker property, as serve -c does; may be repeated",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand; returns the exit code."""
    if (arguments.command is None) == (arguments.before_after is None):
        return complain("offsets", "a command is needed, or --before-after SOURCE; --help says more", 2)
    try:
        match arguments.command:
            case "import":
                return _import(arguments)
            case "compact":
                return _compact(arguments)
            case "export":
                return _export(arguments)
            case "dump":
                wanted = EntryFilter(groups=arguments.groups, topics=arguments.topics, kinds=arguments.kinds)
                if arguments.transactions and not wanted.is_empty:
                    return complain("offsets", "--transactions is about no group, topic or kind of record", 2)
                topic = TRANSACTION_STATE if arguments.transactions else CONSUMER_OFFSETS
                with open_source(arguments.source, topic) as source:
                    return dump(source, wanted, arguments.partitions, as_json=arguments.json, as_raw=arguments.raw)
            case _:
                with open_source(arguments.before_after) as source:
                    return before_and_after(
                        source, arguments.groups, arguments.partitions, _now_ms(), as_json=arguments.json
                    )
    except ConfigError as problem:
        return complain("offsets", str(problem), 2)
    except (SourceError, StorageError) as problem:
        return complain("offsets", str(problem), 1)


def _export(arguments: argparse.Namespace) -> int:
    faults: list[UnreadableData] = []
    with open_source(arguments.source) as source:
        written = export_segments(
            source,
            arguments.directory,
            groups=arguments.groups,
            partitions=arguments.partitions,
            topic_id=arguments.topic_id,
            report=faults.append,
        )
        has_id = arguments.topic_id is not None or source.topic_id is not None
    for fault in faults:
        complain("offsets", str(fault), 1)
    for one in written:
        if one.batches:
            print(f"{one.folder}: {one.records:,} records in {one.batches:,} batches, {one.bytes:,} bytes")
    records, size = sum(one.records for one in written), sum(one.bytes for one in written)
    print(f"{len(written)} partitions, {records:,} records, {size:,} bytes")
    if written and not has_id:
        print("without the topic's id, which a broker asks for: --topic-id gives it", file=sys.stderr)
    if arguments.groups and not written:
        return complain("offsets", f"nothing of {', '.join(arguments.groups)} is there", 1)
    return 1 if faults else 0


def _import(arguments: argparse.Namespace) -> int:
    config = load(arguments.properties)
    done = import_segments(arguments.folders, arguments.directory, config, new_uuid=uuid.uuid4, now_ms=_now_ms())
    for problem in (*map(str, done.faults), *done.findings):
        print(f"groupcoord offsets: {problem}", file=sys.stderr)
    print(
        f"{arguments.directory}: {len(done.partitions)} of {config.offsets_topic_num_partitions} partitions imported, "
        f"{done.records:,} records of {done.groups:,} groups"
    )
    return 1 if done.faults else 0


def _compact(arguments: argparse.Namespace) -> int:
    done = compact(
        arguments.directory,
        load(arguments.properties),
        new_uuid=uuid.uuid4,
        now_ms=_now_ms(),
        report=lambda finding: print(f"groupcoord offsets: {finding}", file=sys.stderr),
    )
    for event in done:
        print(event.text())
    cleaned = [event for event in done if isinstance(event, LogCleaned)]
    before, after = sum(event.bytes_read for event in cleaned), sum(event.bytes_kept for event in cleaned)
    records = f"{sum(event.records_kept for event in cleaned):,} of {sum(event.records_read for event in cleaned):,}"
    print(f"{len(cleaned)} partitions compacted: {records} records are left, {after:,} of {before:,} bytes")
    return 1 if len(cleaned) < len(done) else 0


def _kind(text: str) -> str:
    by_small = {name.lower(): name for name in KIND_NAMES}
    if text.lower() in by_small:
        return by_small[text.lower()]
    raise argparse.ArgumentTypeError(f"{text!r} is not a kind of record; there are {', '.join(KIND_NAMES)}")


def _topic_id(text: str) -> uuid.UUID:
    try:
        return parse_uuid(text)
    except CheckpointError as problem:
        raise argparse.ArgumentTypeError(f"{problem} as Kafka writes them: 22 letters, digits, - and _") from None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


_NOTHING = compaction_preview.LogSize(0, 0, 0)


@contextlib.contextmanager
def open_source(text: str, topic: str = CONSUMER_OFFSETS) -> Iterator[LogSource]:
    """The source of the records of ``topic``: the directory ``text``, or the cluster at HOST:PORT. Raises SourceError."""
    path = Path(text)
    if path.exists() or ":" not in text:
        yield SegmentDirSource(path, topic)
        return
    # Importing the client takes longer than everything else, and directories do not need it.
    from groupcoord.client.option_value_parsing import parse_address  # noqa: PLC0415
    from groupcoord.offsets_log.cluster_source import ClusterSource  # noqa: PLC0415

    try:
        address = parse_address(text)
    except ValueError:
        yield SegmentDirSource(path, topic)
        return
    with contextlib.closing(ClusterSource(address, topic)) as source:
        yield source


def dump(
    source: LogSource, wanted: EntryFilter, partitions: Collection[int], *, as_json: bool = False, as_raw: bool = False
) -> int:
    """Print every entry that is ``wanted``; unreadable data is reported on stderr, too. Returns the exit code."""
    faults = 0
    for found in (each for number in _wanted(source, partitions) for each in source.read(number)):
        if isinstance(found, UnreadableData):
            shown: Iterable[dict[str, Any] | LogEntry | UnreadableData] = (found,)
        else:
            shown = raw_records(found, wanted) if as_raw else entries(found)
        for each in shown:
            if isinstance(each, UnreadableData):
                faults += 1
                _tell(each, as_json=as_json and not as_raw)
            elif isinstance(each, dict):
                print(_json(each))
            elif wanted.passes(each):
                print(_json(entry_json(each)) if as_json else entry_text(each))
    return 1 if faults else 0


def _wanted(source: LogSource, partitions: Collection[int]) -> list[int]:
    missing = sorted(set(partitions) - set(source.partitions))
    if missing:
        there = f"{min(source.partitions)} to {max(source.partitions)}" if source.partitions else "none"
        raise SourceError(f"there is no partition {missing[0]} of {source.topic} in it, only {there}")
    return [number for number in source.partitions if not partitions or number in partitions]


def before_and_after(
    source: LogSource, groups: Collection[str], partitions: Collection[int], now_ms: int, *, as_json: bool
) -> int:
    """Print what compaction would keep of each partition, and a summary. Returns the exit code."""
    faults = 0
    before, after = _NOTHING, _NOTHING
    for number in _wanted(source, partitions):
        batches: list[Batch] = []
        for found in source.read(number):
            if isinstance(found, UnreadableData):
                faults += 1
                _tell(found, as_json=as_json)
            else:
                batches.append(found)
        if not batches:
            continue
        outcome = compaction_preview.preview_compaction(number, batches, now_ms)
        if groups and not any(compaction_preview.of_group(outcome.before, group) for group in groups):
            continue
        before, after = before.plus(outcome.size_before), after.plus(outcome.size_after)
        print(_json(_outcome_json(outcome)) if as_json else _outcome_text(outcome, groups))
    if as_json:
        print(_json({"partitions": "all", "before": before._asdict(), "after": after._asdict()}))
    else:
        print(f"all: {_sizes(before, after)}")
    return 1 if faults else 0


def _outcome_text(outcome: compaction_preview.CompactionPreview, groups: Collection[str]) -> str:
    before, after = outcome.before, outcome.after
    if groups:
        before = [record for group in groups for record in compaction_preview.of_group(before, group)]
        after = [record for group in groups for record in compaction_preview.of_group(after, group)]
    rows = [["key", "records", "values, oldest first"]]
    for key, count, values in compaction_preview.before_rows(before):
        rows.append([key, count, values[0]])
        rows += [["", "", value] for value in values[1:]]
    lines = [f"__consumer_offsets-{outcome.partition}", "", table(rows), ""]
    for whole, left in compaction_preview.strips(before, {record.offset for record in after}):
        lines += [f"before  {whole}", f"after   {left}"]
    lines += (
        ["", table([["at offset", "key", "value"], *map(list, compaction_preview.after_rows(after))])] if after else []
    )
    return "\n".join([*lines, "", _sizes(outcome.size_before, outcome.size_after), ""])


def _sizes(before: compaction_preview.LogSize, after: compaction_preview.LogSize) -> str:
    saved = round(100 * (1 - after.bytes / before.bytes)) if before.bytes else 0
    return (
        f"{before.records:,} records of {before.keys:,} keys, {before.bytes:,} bytes; "
        f"compacted {after.records:,} of {after.keys:,}, {after.bytes:,} bytes, {saved} % less"
    )


def _outcome_json(outcome: compaction_preview.CompactionPreview) -> dict[str, object]:
    kept = {record.offset for record in outcome.after}
    return {
        "partition": outcome.partition,
        "before": outcome.size_before._asdict(),
        "after": outcome.size_after._asdict(),
        "kept": sorted(kept),
        "dropped": [record.offset for record in outcome.before if record.offset not in kept],
    }


def _tell(fault: UnreadableData, *, as_json: bool) -> None:
    if as_json:
        print(_json(unreadable_json(fault)))
    print(f"groupcoord offsets: {fault}", file=sys.stderr)


def _json(told: dict[str, object]) -> str:
    return json.dumps(told, ensure_ascii=False)
