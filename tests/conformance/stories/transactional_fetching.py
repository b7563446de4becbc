"""Reading records of transactions: Fetch, ListOffsets, DeleteRecords, OffsetForLeaderEpoch with both isolation levels."""

from collections.abc import Sequence

from groupcoord.protocol.apis.delete_records import DeleteRecordsPartition, DeleteRecordsTopic
from groupcoord.protocol.apis.offset_for_leader_epoch import OffsetForLeaderPartition, OffsetForLeaderTopic
from groupcoord.protocol.messages import DeleteRecordsRequest, OffsetForLeaderEpochRequest
from tests.conformance.actors import Stagehand
from tests.conformance.batches import Rec, batch
from tests.conformance.data import DataClient, fetch_request
from tests.conformance.producers import Producer, TransactionsWatcher
from tests.conformance.stories.transactional_data import now_ms, plain
from tests.conformance.story import Story, story

COMMITTED = 1
"""READ_COMMITTED, as an isolation level."""


@story(sections=["transactions"])
def every_version_of_fetch_with_transactions(s: Story) -> None:
    """Both isolation levels while two transactions are open, when one has been aborted, and when the other has committed."""
    stage = Stagehand(s)
    topic = stage.topic()
    ids = {topic: stage.topic_id(topic)}
    where = (topic, 0)
    a, b, reader = Producer(s, "a"), Producer(s, "b"), DataClient(s, "reader", ids=ids)
    reader.fetches({where: 0}, isolation_level=COMMITTED, does="fetches before anything")
    a.init()
    b.init()
    reader.produces({where: plain(s, b"plain")})
    a.produces({where: [b"a1"]})
    b.produces({where: [b"b1", b"b2"]})
    reader.produces({where: plain(s, b"plain too")})
    a.produces({where: [b"a2"]})

    def everything(when: str, versions: Sequence[int] = range(4, 19)) -> None:
        for version in versions:
            for isolation in (0, COMMITTED):
                reader.fetches({where: 0}, version, isolation_level=isolation, does=f"fetches, {when}")

    everything("both open")
    a.aborts()
    everything("one aborted", (4, 12, 18))
    b.commits(4)
    everything("both ended")
    reader.fetches({where: 0}, isolation_level=2, does="fetches with isolation level 2")
    reader.fetches({where: 0}, isolation_level=-1, does="fetches with isolation level -1")
    reader.fetches({where: 0}, 18, isolation_level=2, does="fetches with isolation level 2")


@story(sections=["transactions"])
def which_aborted_transactions_a_fetch_tells(s: Story) -> None:
    """Those that end at or after the fetch offset, ordered by their ends, from every offset, in every state."""
    topic = Stagehand(s).topic()
    where = (topic, 0)
    a, b, c, reader = Producer(s, "a"), Producer(s, "b"), Producer(s, "c"), DataClient(s, "reader")
    for producer in (a, b, c):
        producer.init()

    def from_everywhere(end: int, when: str) -> None:
        for offset in range(end + 2):
            does = f"fetches from {offset}, {when}"
            reader.fetches({where: offset}, isolation_level=COMMITTED, does=does)

    a.produces({where: [b"a1"]})
    b.produces({where: [b"b1"]})
    b.aborts(4)
    from_everywhere(3, "a open, b aborted")
    c.produces({where: [b"c1"]})
    reader.produces({where: plain(s, b"plain")})
    a.aborts()
    from_everywhere(6, "a and b aborted, c open")
    b.produces({where: [b"b2"]})
    c.commits(4)
    b.aborts()
    from_everywhere(9, "all ended")
    c.produces({where: [b"c2"]})
    a.produces({where: [b"a2"]})
    a.aborts()
    from_everywhere(12, "c open again")
    c.aborts()
    from_everywhere(13, "all ended again")


@story(sections=["transactions"])
def aborted_transactions_and_small_fetches(s: Story) -> None:
    """Transactions whose records do not fit into the response may be listed, too: the offset index determines how far."""
    topic = Stagehand(s).topic()
    where = (topic, 0)
    a, reader = Producer(s, "a"), DataClient(s, "reader")
    a.init()
    for number in range(5):
        a.produces({where: [b"%d" % number * 3_000]}, does="produces 3000 bytes")
        a.aborts(4 if number % 2 else 5)
        reader.produces({where: plain(s, b"p" * 2_500)}, does="produces 2500 bytes")
    for size in (1, 3_100, 3_200, 6_000, 9_500, 20_000):
        for offset in (0, 1, 2, 3, 4, 7, 10, 12):
            reader.fetches(
                {where: offset},
                partition_max_bytes=size,
                isolation_level=COMMITTED,
                does=f"fetches {size} bytes from {offset}",
            )
    for size in (1, 4_000, 8_000):
        reader.fetches(
            {where: 3}, max_bytes=size, isolation_level=COMMITTED, does=f"fetches {size} bytes in all from 3"
        )


@story(sections=["transactions"])
def aborted_transactions_over_segments(s: Story) -> None:
    """A fetch reads one segment, and lists transactions that began before the next one; they may end later."""
    topic = Stagehand(s).topic("orders", segment_ms="60000")
    where = (topic, 0)
    a, b, c, reader = Producer(s, "a"), Producer(s, "b"), Producer(s, "c"), DataClient(s, "reader")
    for producer in (a, b, c):
        producer.init()
    segments = 0

    def rolls() -> None:
        """A record of later than the first of its segment by more than segment.ms begins the next."""
        nonlocal segments
        segments += 1
        late = batch([Rec(b"late", timestamp_ms=now_ms(s) + 300_000 * segments)])
        reader.produces({where: late}, does="produces a record of the future")

    def from_everywhere(end: int, when: str) -> None:
        for size in (1, 1 << 20):
            for offset in range(end + 1):
                reader.fetches(
                    {where: offset},
                    partition_max_bytes=size,
                    isolation_level=COMMITTED,
                    does=f"fetches {size} bytes from {offset}, {when}",
                )

    a.produces({where: [b"a1"]})
    b.produces({where: [b"b1"]})
    rolls()
    a.produces({where: [b"a2"]})
    a.aborts()
    rolls()
    b.produces({where: [b"b2"]})
    c.produces({where: [b"c1"]})
    b.aborts(4)
    rolls()
    from_everywhere(10, "c open")
    c.aborts()
    a.produces({where: [b"a3"]})
    a.commits()
    rolls()
    b.produces({where: [b"b3"]})
    b.aborts()
    from_everywhere(16, "all ended")


@story(sections=["transactions"])
def a_fetch_that_waits_for_the_end(s: Story) -> None:
    """A waiting read-committed fetch does not get records of an open transaction; the marker completes it."""
    topic = Stagehand(s).topic(partitions=2)
    where = (topic, 0)
    a, committed, uncommitted = Producer(s, "a"), DataClient(s, "committed"), DataClient(s, "uncommitted")
    a.init()

    def waiting(offset: int, isolation: int) -> object:
        return fetch_request({where: offset}, {}, isolation_level=isolation, min_bytes=1, max_wait_ms=20_000)

    one = committed.parks(waiting(0, COMMITTED), 12, does="fetches and waits")
    other = uncommitted.parks(waiting(0, 0), 12, does="fetches and waits")
    a.produces({where: [b"a1"]})
    uncommitted.is_answered(other)
    committed.stays_unanswered(300, one)
    a.commits()
    committed.is_answered(one)
    one = committed.parks(waiting(2, COMMITTED), 12, does="fetches and waits")
    a.produces({where: [b"a2"]})
    a.produces({where: [b"a3"]})
    committed.stays_unanswered(300, one)
    a.aborts()
    committed.is_answered(one)
    a.produces({where: [b"a4"]})
    one = committed.parks(waiting(5, COMMITTED), 12, does="fetches behind an open transaction's start and waits")
    other = committed.parks(waiting(6, COMMITTED), 12, does="fetches behind an open transaction and waits")
    a.commits()
    committed.is_answered(one)
    for pending in list(committed.parked):
        committed.is_answered(pending)
    committed.fetches({where: 6}, isolation_level=COMMITTED)


@story(sections=["transactions"])
def fetch_sessions_with_transactions(s: Story) -> None:
    """A read-committed incremental fetch returns a partition again when its last stable offset has moved."""
    stage = Stagehand(s)
    topic = stage.topic(partitions=2)
    ids = {topic: stage.topic_id(topic)}
    a, reader = Producer(s, "a"), DataClient(s, "reader", ids=ids)
    a.init()
    for isolation in (0, COMMITTED):
        first = reader.fetches({(topic, 0): 0, (topic, 1): 0}, 13, isolation_level=isolation, session_epoch=0)
        session = first.session_id

        def goes_on(
            epoch: int, wanted: dict[tuple[str, int], int], isolation: int = isolation, session: int = session
        ) -> None:
            reader.fetches(wanted, 13, isolation_level=isolation, session_id=session, session_epoch=epoch)

        goes_on(1, {})
        a.produces({(topic, 0): [b"a"]})
        goes_on(2, {})
        goes_on(3, {})
        a.produces({(topic, 0): [b"b"]})
        goes_on(4, {})
        a.aborts()
        goes_on(5, {})
        goes_on(6, {})
        end = stage.end(topic, 0)
        goes_on(7, {(topic, 0): end})
        goes_on(8, {})
        goes_on(-1, {})


@story(sections=["transactions"])
def every_version_of_list_offsets_with_transactions(s: Story) -> None:
    """Both isolation levels, before, during and after a transaction: the end, the start, times, the latest time."""
    topic = Stagehand(s).topic()
    where = (topic, 0)
    a, reader = Producer(s, "a"), DataClient(s, "reader")
    a.init()
    times: list[int] = []

    def everything(when: str) -> None:
        for version in range(1, 12):
            special = [-1, -2, *((-3,) if version >= 7 else ()), *((-4,) if version >= 8 else ())]
            special += [-5] if version >= 9 else []
            for isolation in (0, COMMITTED) if version >= 2 else (0,):
                chosen = special if version in {1, 2, 4, 7, 11} else special[:1]
                chosen = [*chosen, *times[:3], times[1] + 10] if version in {1, 2, 11} and times else chosen
                for time in chosen:
                    reader.lists_offsets(
                        {where: time}, version, isolation_level=isolation, does=f"lists the offset of a time, {when}"
                    )

    reader.lists_offsets({where: -1}, isolation_level=COMMITTED, does="lists the end of nothing")
    reader.produces({where: plain(s, b"plain")})
    times.append(s.names.step_starts_ms[-2])
    s.wait(20, "times differ")
    a.produces({where: [b"a1", b"a2"]})
    times.append(s.names.step_starts_ms[-2])
    s.wait(20, "times differ")
    reader.produces({where: plain(s, b"plain too")})
    times.append(s.names.step_starts_ms[-2])
    everything("open")
    a.commits()
    everything("committed")
    a.produces({where: [b"a3"]})
    reader.lists_offsets({where: -3}, isolation_level=COMMITTED, does="lists the latest time, which is of an open one")
    reader.lists_offsets({where: -3}, does="lists the latest time, which is of an open one")
    a.aborts()
    reader.lists_offsets({where: -3}, isolation_level=COMMITTED, does="lists the latest time, which is aborted")
    for isolation in (2, -1):
        reader.lists_offsets({where: -1}, isolation_level=isolation, does=f"lists with isolation level {isolation}")


@story(sections=["transactions"])
def deleting_records_of_transactions(s: Story) -> None:
    """Records of an open transaction can be deleted; the last stable offset moves with the start of the log."""
    topic = Stagehand(s).topic()
    where = (topic, 0)
    a, b = Producer(s, "a"), Producer(s, "b")
    watcher, reader = TransactionsWatcher(s, "watcher"), DataClient(s, "reader")
    a.init()
    b.init()

    def deletes_before(offset: int) -> None:
        wanted = DeleteRecordsPartition(partition_index=0, offset=offset)
        request = DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=topic, partitions=(wanted,)),), timeout_ms=5_000)
        reader.asks(request, 2, does=f"deletes records before {offset}")

    def looks() -> None:
        watcher.describes_producers({topic: [0]})
        for isolation in (0, COMMITTED):
            reader.lists_offsets({where: -1}, isolation_level=isolation)
            reader.lists_offsets({where: -2}, isolation_level=isolation)

    reader.produces({where: plain(s, b"plain")})
    a.produces({where: [b"a1"]})
    b.produces({where: [b"b1"]})
    a.produces({where: [b"a2"]})
    looks()
    deletes_before(3)
    looks()
    for offset in range(5):
        reader.fetches({where: offset}, isolation_level=COMMITTED)
    deletes_before(9)
    deletes_before(-1)
    looks()
    a.produces({where: [b"a3"]})
    looks()
    a.aborts(4)
    looks()
    b.commits(4)
    looks()
    reader.fetches({where: 4}, isolation_level=COMMITTED)
    reader.fetches({where: 5}, isolation_level=COMMITTED)
    a.produces({where: [b"a4"]})
    deletes_before(-1)
    a.aborts()
    reader.fetches({where: 8}, isolation_level=COMMITTED)
    looks()


@story(sections=["transactions"])
def leader_epochs_with_transactions(s: Story) -> None:
    """OffsetForLeaderEpoch returns the end of the log, even with open transactions."""
    topic = Stagehand(s).topic()
    a, reader = Producer(s, "a"), DataClient(s, "reader")
    a.init()

    def asks() -> None:
        for version in (2, 3, 4):
            wanted = OffsetForLeaderPartition(partition=0, leader_epoch=0)
            reader.asks(
                OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(topic=topic, partitions=(wanted,)),)),
                version,
                does="asks where the epoch ends",
            )

    a.produces({(topic, 0): [b"a"]})
    asks()
    a.aborts()
    asks()
