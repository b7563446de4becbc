"""Fetch sessions (KIP-227): full, incremental, evicted, unknown."""

from groupcoord.protocol.apis.fetch import FetchPartition
from tests.conformance.actors import Stagehand
from tests.conformance.batches import batch
from tests.conformance.data import DataClient, forgotten
from tests.conformance.story import Story, story


@story(sections=["fetch"])
def the_life_of_a_session(s: Story) -> None:
    """A session opens with a full fetch; then requests and responses only contain changes; then it is closed."""
    stage = Stagehand(s)
    topic = stage.topic("orders", partitions=3)
    c = DataClient(s, "c", ids={topic: stage.topic_id(topic)})
    for version in (7, 12, 13, 18):
        start = stage.end(topic, 0), stage.end(topic, 1), stage.end(topic, 2)
        opened = c.fetches(
            {(topic, index): start[index] for index in range(3)}, version, does="opens a session", session_epoch=0
        )
        session = opened.session_id
        c.fetches({}, version, does="asks for news", session_id=session, session_epoch=1)
        c.produces({(topic, 1): batch([b"news"])})
        c.fetches({}, version, does="asks for news", session_id=session, session_epoch=2)
        c.fetches({}, version, does="asks again from the same place", session_id=session, session_epoch=3)
        c.fetches({(topic, 1): start[1] + 1}, version, does="moves on", session_id=session, session_epoch=4)
        c.produces({(topic, 0): batch([b"a"]), (topic, 1): batch([b"b"])})
        c.fetches(
            {}, version, does="forgets a partition", session_id=session, session_epoch=5,
            forgotten_topics_data=(forgotten(topic, [0], c.ids),),
        )  # fmt: skip
        c.fetches({}, version, does="skips an epoch", session_id=session, session_epoch=9)
        c.fetches({}, version, does="repeats an epoch", session_id=session, session_epoch=5)
        c.fetches({}, version, does="goes on", session_id=session, session_epoch=6)
        c.fetches({(topic, 2): 0}, version, does="closes the session", session_id=session, session_epoch=-1)
        c.fetches({}, version, does="asks for news of a closed session", session_id=session, session_epoch=7)


@story(sections=["fetch"])
def sessions_that_are_not_there(s: Story) -> None:
    """Unknown ids, epochs without an id, a session replaced by a new one, errors inside a session."""
    stage = Stagehand(s)
    topic = stage.topic("orders", partitions=2)
    c = DataClient(s, "c", ids={topic: stage.topic_id(topic)})
    c.fetches({(topic, 0): 0}, does="goes on with an unknown session", session_id=77, session_epoch=1)
    c.fetches({(topic, 0): 0}, does="opens one in place of an unknown one", session_id=77, session_epoch=0)
    c.fetches({(topic, 0): 0}, does="closes an unknown one", session_id=77, session_epoch=-1)
    c.fetches({(topic, 0): 0}, does="says an epoch without an id", session_id=0, session_epoch=5)
    c.fetches({}, does="opens an empty session", session_epoch=0)
    first = c.fetches({(topic, 0): 0}, does="opens a session", session_epoch=0).session_id
    second = c.fetches({(topic, 1): 0}, does="replaces it", session_id=first, session_epoch=0).session_id
    c.fetches({}, does="goes on with the first", session_id=first, session_epoch=1)
    c.fetches({}, does="goes on with the second", session_id=second, session_epoch=1)
    bad = c.fetches({(topic, 0): 99, (topic, 7): 0}, does="opens a session with errors", session_epoch=0).session_id
    c.fetches({}, does="goes on with errors", session_id=bad, session_epoch=1)
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    c.fetches({(topic, 0): wanted}, does="mends the offset", session_id=bad, session_epoch=2)
    c.fetches({}, does="goes on", session_id=bad, session_epoch=3)
    by_id = c.fetches({(topic, 0): 0}, 13, does="opens a session by ids", session_epoch=0).session_id
    c.fetches({(topic, 0): 0}, 12, does="goes on with names", session_id=by_id, session_epoch=1)
    c.fetches({(topic, 0): 0}, 13, does="goes on with ids", session_id=by_id, session_epoch=1)


@story(sections=["fetch"])
def session_ids_at_the_edges(s: Story) -> None:
    """The cache is split by session ids, and some ids belong to no part of it."""
    topic = Stagehand(s).topic("orders")
    c = DataClient(s, "c")
    part = ((1 << 31) - 1) // 8
    for session_id in (-1, 1 - part, -part, -(1 << 31), part, 8 * part - 1, 8 * part, (1 << 31) - 1):
        for epoch in (1, 0, -1):
            c.fetches(
                {(topic, 0): 0},
                does=f"says session {session_id}, epoch {epoch}",
                session_id=session_id,
                session_epoch=epoch,
            )
