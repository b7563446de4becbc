"""What ``__consumer_offsets`` holds of a group, before and after compaction, as the tables of the demo."""

from collections.abc import Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from groupcoord.broker.compaction import survivors
from groupcoord.cli.offsets_texts import GONE, after_rows, before_rows
from groupcoord.cli.offsets_texts import strips as strip_texts
from groupcoord.protocol.batches.records import Record


def before(records: Sequence[Record]) -> RenderableType:
    """The whole log: each key with all its values, oldest first."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)
    table.add_column("key", no_wrap=True)
    table.add_column("records", justify="right")
    table.add_column("values, oldest first", overflow="fold")
    for key, count, values in before_rows(records):
        table.add_row(key, count, "\n".join(values))
    return table


def after(records: Sequence[Record]) -> RenderableType:
    """What compaction leaves of the log, with the offsets of ``__consumer_offsets``."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)
    table.add_column("at offset", justify="right")
    table.add_column("key", no_wrap=True)
    table.add_column("value", overflow="fold")
    for row in after_rows(survivors(records)):
        table.add_row(*row)
    return table


def strips(records: Sequence[Record]) -> RenderableType:
    """The log before and after compaction, record below record, each one character.

    That is G for the group, the partition's number for a commit, and a dot for what is gone.
    """
    table = Table.grid(padding=(0, 2))
    for whole, left in strip_texts(records, {record.offset for record in survivors(records)}):
        table.add_row("before", Text(whole))
        table.add_row("after", Text().join(Text(letter, "dim" if letter == GONE else "bold") for letter in left))
    return table
