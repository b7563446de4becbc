from groupcoord.cli.demo.clients.consumer_common import ReadRecord
from groupcoord.cli.demo.observed_group import ObservedGroup, RecordPosition
from groupcoord.coordinator import events as e
from groupcoord.core.events import Event
from tests.cli.demo.narration import AIO, CONFLUENT, PY, life
from tests.cli.demo.support import GROUP, TOPIC, asked, owned


def observed(until: type[Event] | None = None, count: int = 1) -> ObservedGroup:
    """The facts after the ``count``-th event of class ``until``, or after all."""
    known = ObservedGroup(GROUP, TOPIC)
    for event in life():
        known.happened(event)
        if until is not None and isinstance(event, until):
            count -= 1
            if not count:
                return known
    return known


def test_members_go_by_their_names() -> None:
    assert observed(e.MemberJoined, 3).members == {PY: "kafka-python", CONFLUENT: "confluent", AIO: "aiokafka"}


def test_the_group_is_stable_with_exactly_these() -> None:
    known = observed(e.RequestRefused)
    assert known.is_stable_with("aiokafka", "confluent", "kafka-python")
    assert not known.is_stable_with("confluent", "kafka-python")
    assert not observed(e.GenerationStarted, 3).is_stable_with("aiokafka", "confluent", "kafka-python")


def test_owners_are_known_while_the_group_is_stable() -> None:
    assert observed(e.RequestRefused).owners == {
        0: "aiokafka", 3: "aiokafka", 2: "kafka-python", 5: "kafka-python", 1: "confluent", 4: "confluent"
    }  # fmt: skip
    assert observed(e.AssignmentReceived, 3).owners == {}


def test_the_end_is_known() -> None:
    known = observed()
    assert (known.state, known.generation, known.members, known.committed) == ("Empty", 6, {}, {0: 40, 1: 6, 5: 1})


def test_commits_are_counted_in_their_generation() -> None:
    assert observed(e.OffsetsCommitted, 2).commits_in_generation == {"kafka-python": 2}
    assert observed(e.RebalanceStarted, 2).commits_in_generation == {"kafka-python": 2}
    assert not observed(e.GenerationStarted, 2).commits_in_generation


def test_other_groups_and_topics_do_not_count() -> None:
    known = ObservedGroup(GROUP, TOPIC)
    cause = asked("OffsetCommit", "kafka-python")
    offsets = (("another", 0, 7),)
    known.happened(e.OffsetsCommitted(at_ms=0, cause=cause, group=GROUP, member=PY, generation=1, offsets=offsets))
    known.happened(
        e.OffsetsCommitted(at_ms=0, cause=cause, group="x", member=PY, generation=1, offsets=((TOPIC, 0, 7),))
    )
    known.happened(
        e.AssignmentReceived(
            at_ms=0, cause=cause, group=GROUP, generation=1, leader=PY, owners={PY: (*owned({PY: "1"})[PY], ("z", 0))}
        )
    )
    known.happened(
        e.StateChanged(at_ms=0, cause=cause, group=GROUP, origin="Completing", target="Stable", generation=1)
    )
    assert (known.committed, known.owners) == ({}, {1: PY})


def test_uncommitted_is_what_its_owner_read_beyond_the_commit() -> None:
    known = observed(e.OffsetsCommitted, 2)  # kafka-python owns all; 0 is committed at 4, 5 at 1, 3 not at all
    known.read("kafka-python", [ReadRecord(0, 3, "a"), ReadRecord(0, 4, "b"), ReadRecord(3, 0, "c")])
    known.read("confluent", [ReadRecord(0, 5, "d")])
    assert known.uncommitted("kafka-python") == {RecordPosition(0, 4), RecordPosition(3, 0)}
    assert known.uncommitted("confluent") == set()


def test_reads_are_counted_from_a_sighting_on() -> None:
    known = ObservedGroup(GROUP, TOPIC)
    known.read("confluent", [ReadRecord(0, 0, "a"), ReadRecord(0, 1, "a")])
    known.read("aiokafka", [ReadRecord(0, 1, "a")])
    assert known.reads(since=1) == {"confluent": 1, "aiokafka": 1}


def test_the_ends_are_behind_the_last_records() -> None:
    known = ObservedGroup(GROUP, TOPIC)
    for offset in (1, 0):
        known.produced_at(RecordPosition(1, offset), "a")
    assert known.ends(partitions=3) == {0: 0, 1: 2, 2: 0}
