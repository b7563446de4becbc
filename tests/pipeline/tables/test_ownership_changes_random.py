"""Random histories of groups, played many records at a time: the same as by the plain loop."""

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.pipeline.arrow_columns import arrow_schema
from groupcoord.pipeline.tables import ownership_changes as module
from groupcoord.pipeline.tables.ownership_changes import PERSON, compared
from tests.pipeline.plain_ownership_changes import plain_ownership_changes
from tests.pipeline.tables.test_ownership_changes import SCHEMA

# Beyond ASCII, and beyond what UTF-16 has in one unit: its order is not that of UTF-8.
IDS = st.sampled_from(["a", "b", "B", "ä", "\uffee", "😀", ""])
# Few of them, so that they often come again, and none that a broker has: what is read is not always Kafka's.
PARTITIONS = st.lists(st.sampled_from([0, 1, -(2**31)]), max_size=3)
TOPICS = st.lists(st.fixed_dictionaries({"topic": st.sampled_from(["t", "ü"]), "partitions": PARTITIONS}), max_size=3)
MEMBERS = st.lists(
    st.fixed_dictionaries(
        {
            "member_id": IDS,
            "client_id": st.none() | st.sampled_from(["c", "d"]),
            "who": st.sampled_from(["i:1", "i:2", "i:ö", "m:a", "m:b"]),
            "assigned": st.none() | TOPICS,
        }
    ),
    max_size=4,
)
GROUP = st.lists(st.none() | MEMBERS, min_size=3, max_size=10)


@pytest.mark.slow
@given(
    st.lists(GROUP, max_size=4),
    st.lists(st.integers(0, 40), max_size=3),
    st.sampled_from([1, 3, 10, 30, 1_000]),
)
def test_it_finds_what_a_plain_loop_finds(groups: list[list[Any]], cuts: list[int], partitions: int) -> None:
    records = [
        {
            "log_partition": number % 2,
            "log_offset": offset,
            "append_ts": 1_000 * number + offset // 2,
            "group": f"g{number}",
            "kind": "classic",
            "generation": None if members is None else offset,
            "members": members and [{name: one[name] for name in PERSON} for one in members],
            "assigned": members and [one["assigned"] for one in members],
        }
        for number, group in enumerate(groups)
        for offset, members in enumerate(group)
    ]
    whole = pa.RecordBatch.from_pylist(records, schema=SCHEMA)
    ends = sorted({min(cut, len(whole)) for cut in cuts} | {0, len(whole)})
    batches = [whole.slice(first, end - first) for first, end in pairwise(ends)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PARTITIONS_AT_ONCE", partitions)
        found = list(compared(iter(batches)))
    assert all(batch.schema == arrow_schema(table.columns) and len(batch) for table, batch in found)
    assert plain(found) == plain(plain_ownership_changes(iter([whole])))


def plain(found: Any) -> list[str]:
    return sorted(f"{table.name} {row}" for table, batch in found for row in batch.to_pylist())
