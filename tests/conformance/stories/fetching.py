"""Fetch: limits, long poll, bounds, epochs, topic ids."""

import uuid

from groupcoord.protocol.apis.fetch import FetchPartition, ReplicaState
from tests.conformance.actors import Stagehand
from tests.conformance.batches import batch
from tests.conformance.data import DataClient, fetch_request, produce_request
from tests.conformance.story import Story, story


def _with_batches(s: Story, partitions: int = 2, each: int = 3) -> tuple[str, DataClient]:
    stage = Stagehand(s)
    topic = stage.topic("orders", partitions=partitions)
    client = DataClient(s, "c", ids={topic: stage.topic_id(topic)})
    for partition in range(partitions):
        for number in range(each):
            stage.ask(produce_request({(topic, partition): batch([b"%d" % number * 20, b"x"])}, {}), 12)
    return topic, client


@story(sections=["fetch"])
def where_a_fetch_may_start(s: Story) -> None:
    """At the start, within a batch, at the end, beyond it, before the start; unknown partitions and topics."""
    topic, c = _with_batches(s, 1)
    for offset in (0, 1, 3, 5, 6, 7, -1, 1 << 40):
        c.fetches({(topic, 0): offset}, does=f"fetches from {offset}")
    c.fetches({(topic, 9): 0, (s.topic_name("unknown"), 0): 0, (topic, 0): 4})
    c.fetches({})


@story(sections=["fetch"])
def limits_of_a_fetch(s: Story) -> None:
    """The first batch is always returned, then max bytes of the partition and in all apply; min bytes beyond the available
    data."""
    topic, c = _with_batches(s)
    size = len(batch([b"0" * 20, b"x"]))
    both = {(topic, 0): 0, (topic, 1): 0}
    for limit in (0, 1, size - 1, size, size + 1, 2 * size, 3 * size):
        c.fetches(both, partition_max_bytes=limit, does=f"fetches at most {limit} bytes per partition")
        c.fetches(both, max_bytes=limit, does=f"fetches at most {limit} bytes")
    for version in (4, 12, 13, 18):
        c.fetches(both, version, max_bytes=1, partition_max_bytes=1, does="fetches a byte")


@story(sections=["fetch"], lasts_ms=8000)
def a_fetch_that_waits(s: Story) -> None:
    """A long poll gets its response when enough bytes are there, when its time is over, or at once with an error."""
    topic, c = _with_batches(s, 2, 1)
    p = DataClient(s, "p")
    at_end = {(topic, 0): 2}
    c.parks(fetch_request(at_end, {}, max_wait_ms=1400, min_bytes=1), 12, does="waits 1400 ms for a byte")
    c.stays_unanswered(600)
    c.is_answered(within_ms=2000)
    c.parks(fetch_request(at_end, {}, max_wait_ms=60_000, min_bytes=1), 12, does="waits a minute for a byte")
    p.produces({(topic, 0): batch([b"news"])})
    c.is_answered(within_ms=4000)
    c.parks(
        fetch_request({(topic, 0): 3}, {}, max_wait_ms=60_000, min_bytes=150), 12, does="waits a minute for 150 bytes"
    )
    p.produces({(topic, 0): batch([b"more"])})
    c.stays_unanswered(400)
    p.produces({(topic, 0): batch([b"and more"])})
    p.produces({(topic, 0): batch([b"and still more"])})
    c.is_answered(within_ms=4000)
    c.fetches(
        {(topic, 0): 99, (topic, 1): 2}, does="waits with an offset out of range", max_wait_ms=60_000, min_bytes=1
    )
    c.fetches({(topic, 0): 0, (topic, 1): 2}, does="waits with enough already there", max_wait_ms=60_000, min_bytes=1)
    c.fetches({}, does="waits for no partition", max_wait_ms=600, min_bytes=1)
    c.fetches(at_end | {(topic, 1): 2}, does="does not wait", max_wait_ms=0, min_bytes=1 << 20)


@story(sections=["fetch"])
def leader_epochs_in_a_fetch(s: Story) -> None:
    """The current leader epoch is 0: lower ones are fenced, higher ones unknown; last fetched epochs and divergence."""
    topic, c = _with_batches(s, 1)

    def fetch(version: int, epoch: int, last: int, offset: int = 2) -> None:
        wanted = FetchPartition(
            partition=0,
            fetch_offset=offset,
            partition_max_bytes=1 << 20,
            current_leader_epoch=epoch,
            last_fetched_epoch=last,
        )
        c.fetches({(topic, 0): wanted}, version, does=f"fetches in epoch {epoch}, last fetched {last}")

    for version in (9, 11, 12, 13, 18):
        for epoch in (-1, 0, 1, -5):
            fetch(version, epoch, -1)
    for last in (0, 1, -1, 5):
        fetch(12, 0, last)
        fetch(18, -1, last, 6)


@story(sections=["fetch"])
def topic_ids_in_a_fetch(s: Story) -> None:
    """From version 13 on topics have ids: unknown ones, the zero id."""
    topic, c = _with_batches(s, 1, 1)
    unknown = s.topic_name("unknown")
    for version in (13, 15, 16, 18):
        c.ids[unknown] = uuid.UUID(int=5)
        c.fetches({(topic, 0): 0, (unknown, 0): 0, (topic, 3): 0}, version)
        c.ids[unknown] = None
        c.fetches({(unknown, 0): 0}, version)


@story(sections=["fetch"])
def topics_without_an_id(s: Story) -> None:
    """No topic may follow one with the zero id in the response, whose order is not that of the request."""
    topic, c = _with_batches(s, 1, 1)
    zero, unknown = s.topic_name("zero"), s.topic_name("unknown")
    c.ids |= {zero: None, unknown: uuid.UUID(int=5)}
    for version in (13, 18):
        c.fetches({(zero, 0): 0, (zero, 1): 0}, version)
        c.fetches({(zero, 0): 0, (unknown, 0): 0}, version)
        c.fetches({(unknown, 0): 0, (zero, 0): 0}, version)
        c.fetches({(zero, 0): 0, (topic, 0): 0}, version)
        c.fetches({(zero, 0): 0, (topic, 7): 0, (topic, 0): 0}, version)
    waits = fetch_request({(zero, 0): 0, (zero, 1): 0, (topic, 0): 2}, c.ids, max_wait_ms=300, min_bytes=1)
    pending = c.parks(waits, 13, does="waits, and asks for the zero id twice")
    c.stays_unanswered(800, pending)


@story(sections=["fetch"])
def isolation_and_replicas(s: Story) -> None:
    """Read committed without transactions, an unknown isolation level, a consumer that claims to be a replica."""
    topic, c = _with_batches(s, 1, 1)
    for version in (4, 11, 12):
        c.fetches({(topic, 0): 0}, version, does="reads committed", isolation_level=1)
    c.fetches({(topic, 0): 0}, 12, does="fetches with rack", rack_id="rack-1")
    c.fetches({(topic, 0): 0}, 18, does="fetches as a consumer", replica_state=ReplicaState())


@story(sections=["fetch"])
def the_log_start_in_a_fetch(s: Story) -> None:
    """A consumer's log start offset is ignored; the response has the partition's own."""
    topic, c = _with_batches(s, 1, 2)
    wanted = FetchPartition(partition=0, fetch_offset=2, partition_max_bytes=1 << 20, log_start_offset=1)
    for version in (5, 12):
        c.fetches({(topic, 0): wanted}, version)
