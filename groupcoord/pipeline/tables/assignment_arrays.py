"""The assignments of generations as flat numpy arrays: an entry for each partition that a member of a record was given."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

PERSON = ("member_id", "client_id", "who")


@dataclass(frozen=True)
class AssignmentArrays:
    """Members of records; what each was given, topic by topic; and of each topic, partition by partition.

    Records are numbered from 0 on. Members are in the order of records, and of member ids within one.
    """

    people: Any
    """A record batch of the members, with the columns PERSON."""
    record: Any
    """For each member, the number of the record that it is in."""
    topics: Any
    """An Arrow array of topics, each as often as members were given something of it."""
    person: Any
    """For each topic, the member that was given it."""
    partitions: Any
    """The partitions of each topic."""
    topic: Any
    """For each partition, the position of its topic in ``topics``."""


def assignment_arrays(members: Any) -> AssignmentArrays:
    """What the ``members`` of records, an array of lists, were given."""
    people, record = _items(members)
    order = np.lexsort((_ranks(people.field("member_id")), record))
    # The order of the records stays as it is, so ``record`` does, too.
    people = people.take(pa.array(order))
    mentions, person = _items(people.field("assigned"))
    partitions, topic = _items(mentions.field("partitions"))
    return AssignmentArrays(
        people=pa.record_batch({name: people.field(name).cast(pa.string()) for name in PERSON}),
        record=record,
        topics=mentions.field("topic").cast(pa.string()),
        person=person,
        partitions=partitions.to_numpy(),
        topic=topic,
    )


def pieces(batch: Any, at_once: int) -> Iterator[Any]:
    """``batch``, cut into pieces whose records give out ``at_once`` partitions or fewer, or are but one record."""
    ends = np.cumsum(_sizes(batch.column("members")))
    first = 0
    while first < len(batch):
        before = ends[first - 1] if first else 0
        end = max(first + 1, int(np.searchsorted(ends, before + at_once, "right")))
        yield batch.slice(first, end - first)
        first = end


def codes(values: Any) -> tuple[Any, Any]:
    """A number for each of ``values``, the same for equal ones; and the values that the numbers from 0 on stand for."""
    encoded = pc.dictionary_encode(values, null_encoding="encode")
    return encoded.indices.to_numpy(), encoded.dictionary


def _sizes(members: Any) -> Any:
    """How many partitions each record gives out."""
    people, record = _items(members)
    mentions, person = _items(people.field("assigned"))
    return np.bincount(record[person], _lengths(mentions.field("partitions")), len(members)).astype(np.int64)


def _items(lists: Any) -> tuple[Any, Any]:
    """What is in ``lists``, and of each item, in which list it is. A null is a list of nothing."""
    return lists.flatten(), np.repeat(np.arange(len(lists)), _lengths(lists))


def _lengths(lists: Any) -> Any:
    return pc.list_value_length(lists).fill_null(0).to_numpy()


def _ranks(texts: Any) -> Any:
    """Numbers in the order of ``texts``, the same for equal ones. UTF-8 has the order of its characters."""
    numbers, different = codes(texts)
    ranks = np.empty(len(different), np.int64)
    ranks[pc.array_sort_indices(different).to_numpy()] = np.arange(len(different))
    return ranks[numbers]
