"""What consumers are answered while leaders change: Fetch at leaders and followers, ends of leader epochs, offsets."""

from tests.conformance.trio_requests import EARLIEST, LATEST, MAX_TIMESTAMP, end_of_epoch, fetch, offset_at, produce
from tests.conformance.trio_story import SESSION_S, Topics, TrioStory

TOPICS: Topics = {"read": (((1, 2, 3),), {}), "pair": (((2, 3),), {}), "lone": (((3,),), {})}


def tell(story: TrioStory) -> None:
    """All run; the leader stops; the next one is killed; both are back; a leader is paused; a partition has no leader."""
    for value in ("a", "b"):
        story.asks(f"write {value}", 1, produce("read", 0, value), 12)
    story.asks("write to the partition of 3 alone", 3, produce("lone", 0, "l"), 12)
    _all_run(story)
    _the_leader_stops(story)
    _the_next_one_is_killed(story)
    _a_leader_is_paused(story)
    _a_partition_has_no_leader(story)


def _all_run(story: TrioStory) -> None:
    story.asks("fetch at the leader", 1, fetch("read", 0, 0, epoch=0), 12)
    story.asks("fetch at a follower", 2, fetch("read", 0, 0, epoch=0), 12, settles=True)
    story.asks("fetch at a follower, in v10", 2, fetch("read", 0, 0), 10)
    story.asks("fetch where no replica is", 1, fetch("pair", 0, 0), 12)
    story.asks("fetch behind the end of a follower", 2, fetch("read", 0, 9), 12)
    story.asks("fetch with a later epoch", 1, fetch("read", 0, 0, epoch=5), 12)
    story.asks("fetch at a follower with a later epoch", 2, fetch("read", 0, 0, epoch=5), 12)
    for broker_id in (1, 2):
        story.asks(f"end of epoch 0 at {broker_id}", broker_id, end_of_epoch("read", 0, 0), 4)
        story.asks(f"the latest offset at {broker_id}", broker_id, offset_at("read", 0), 10)
    story.asks("the latest offset with a later epoch", 1, offset_at("read", 0, epoch=5), 10)


def _the_leader_stops(story: TrioStory) -> None:
    story.act("stop", 1)
    story.partitions("1 has stopped", 2, *TOPICS)
    story.asks("write at the next leader", 2, produce("read", 0, "c"), 12, settles=True)
    story.asks("fetch at the next leader with its epoch", 2, fetch("read", 0, 0, epoch=1), 12)
    story.asks("fetch at the next leader with the epoch before", 2, fetch("read", 0, 0, epoch=0), 12)
    story.asks("fetch at a follower with the epoch before", 3, fetch("read", 0, 0, epoch=0), 12)
    story.asks("fetch with what was fetched last", 2, fetch("read", 0, 2, epoch=1, fetched_epoch=0), 12)
    story.asks("fetch what the epoch before did not have", 2, fetch("read", 0, 3, epoch=1, fetched_epoch=0), 12)
    story.asks("fetch with an epoch that never was", 2, fetch("read", 0, 2, epoch=1, fetched_epoch=7), 12)
    for of in (0, 1, 2):
        story.asks(f"end of epoch {of}", 2, end_of_epoch("read", 0, of, epoch=1), 4)
    story.asks("end of epoch 0 with the epoch before", 2, end_of_epoch("read", 0, 0, epoch=0), 4)
    story.asks("end of epoch 0 with a later epoch", 2, end_of_epoch("read", 0, 0, epoch=2), 4)
    story.asks("end of epoch 0 at a follower", 3, end_of_epoch("read", 0, 0), 4)
    for name, timestamp in (("latest", LATEST), ("earliest", EARLIEST), ("of the latest record", MAX_TIMESTAMP)):
        story.asks(f"the offset, {name}", 2, offset_at("read", 0, timestamp, epoch=1), 10)
    story.asks("the latest offset with the epoch before", 2, offset_at("read", 0, epoch=0), 10)
    story.asks("the latest offset at a follower", 3, offset_at("read", 0), 10)


def _the_next_one_is_killed(story: TrioStory) -> None:
    story.asks("fetch at a follower with its epoch", 3, fetch("read", 0, 0, epoch=1), 12, settles=True)
    story.act("kill", 2)
    story.asks("2 is killed: fetch at a follower", 3, fetch("read", 0, 0, epoch=1), 12)
    story.asks("the latest offset at a follower", 3, offset_at("read", 0), 10)
    story.passes(SESSION_S)
    story.partitions("2 is fenced", 3, *TOPICS)
    story.asks("fetch at the third leader with its epoch", 3, fetch("read", 0, 0, epoch=2), 12)
    story.asks("fetch with the first epoch", 3, fetch("read", 0, 0, epoch=0), 12)
    story.asks("the latest offset", 3, offset_at("read", 0), 10, settles=True)
    story.asks("write at the third leader", 3, produce("read", 0, "d"), 12)
    for of in (0, 1, 2, 3):
        story.asks(f"end of epoch {of} at the third leader", 3, end_of_epoch("read", 0, of), 4)
    story.asks("fetch with what was fetched last", 3, fetch("read", 0, 3, epoch=2, fetched_epoch=1), 12)
    story.asks("fetch what the first epoch did not have", 3, fetch("read", 0, 3, epoch=2, fetched_epoch=0), 12)
    story.act("start", 1)
    story.act("start", 2)
    story.partitions("1 and 2 are back", 3, *TOPICS)
    story.asks("end of epoch 1 at the leader from before", 2, end_of_epoch("read", 0, 1), 4)
    story.asks("fetch at the leader from before", 1, fetch("read", 0, 0, epoch=2), 12, settles=True)


def _a_leader_is_paused(story: TrioStory) -> None:
    story.act("pause", 3)
    waiting = story.sends(3, fetch("read", 0, 0, epoch=2), 12)
    waiting.waits("3 is paused: fetch")
    story.asks("fetch at a follower", 1, fetch("read", 0, 0, epoch=2), 12)
    story.passes(SESSION_S)
    story.partitions("3 is fenced", 1, *TOPICS)
    story.asks("write at the fourth leader", 1, produce("read", 0, "e"), 12)
    story.asks("fetch with the epoch of the paused one", 1, fetch("read", 0, 0, epoch=2), 12)
    story.act("resume", 3)
    waiting.is_answered("it goes on", allowed=("NONE", "FENCED_LEADER_EPOCH"))
    story.partitions("3 is back", 1, *TOPICS)
    story.asks("fetch at it", 3, fetch("read", 0, 0, epoch=3), 12, settles=True)
    story.asks("end of epoch 2", 1, end_of_epoch("read", 0, 2), 4)


def _a_partition_has_no_leader(story: TrioStory) -> None:
    story.asks("fetch at 2", 2, fetch("pair", 0, 0), 12)
    for broker_id in (3, 2):
        story.act("stop", broker_id)
    story.partitions("2 and 3 have stopped", 1, *TOPICS)
    for topic, partition in (("lone", 0), ("pair", 0)):
        story.asks(f"fetch from {topic}-{partition}", 1, fetch(topic, partition, 0), 12)
        story.asks(f"the latest offset of {topic}-{partition}", 1, offset_at(topic, partition), 10)
        story.asks(f"end of epoch 0 of {topic}-{partition}", 1, end_of_epoch(topic, partition, 0), 4)
    story.act("start", 3)
    story.partitions("3 is back", 1, *TOPICS)
    story.asks("fetch what it had", 3, fetch("lone", 0, 0), 12, settles=True)
