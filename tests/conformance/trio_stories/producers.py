"""What producers are answered, with acks 0, 1 and all, while followers and leaders of their partitions fail."""

from groupcoord.protocol.messages import InitProducerIdRequest
from tests.conformance.trio_requests import fetch, offset_at, produce
from tests.conformance.trio_story import SESSION_S, Topics, TrioStory

TOPICS: Topics = {
    "safe": (((1, 2, 3), (2, 3, 1), (3, 1, 2)), {"min.insync.replicas": "2"}),
    "lone": (((1,), (3,)), {}),
}


def tell(story: TrioStory) -> None:
    """All run; a follower is killed, then a second one; the leader is killed, paused, stopped."""
    _all_run(story)
    _followers_are_killed(story)
    _the_leader_is_killed(story)
    _the_leader_is_paused(story)
    _the_leader_stops(story)


def _all_run(story: TrioStory) -> None:
    for acks in (1, -1):
        story.asks(f"acks={acks} at the leader", 1, produce("safe", 0, "a", acks=acks), 12)
    story.sends(1, produce("safe", 0, "a", acks=0), 12).waits("acks=0 at the leader")
    story.asks("the end after three", 1, offset_at("safe", 0), 10, settles=True)
    for acks in (1, -1):
        story.asks(f"acks={acks} at a follower", 2, produce("safe", 0, "a", acks=acks), 12)
    story.asks("acks=all at a follower, in v9", 2, produce("safe", 0, "a"), 9)
    story.sends(2, produce("safe", 0, "a", acks=0), 12).is_answered("acks=0 at a follower")
    story.asks("at a broker that has no replica", 2, produce("lone", 0, "a"), 12)
    story.asks("to a partition that there is none of", 1, produce("safe", 7, "a"), 12)


def _followers_are_killed(story: TrioStory) -> None:
    story.act("kill", 3)
    story.asks("3 is killed: acks=1", 1, produce("safe", 0, "b", acks=1), 12)
    late = story.sends(1, produce("safe", 0, "c", timeout_ms=2000), 12)
    late.waits("acks=all for 2 s")
    story.asks("what consumers see of it", 1, fetch("safe", 0, 3), 12)
    story.asks("the end for consumers", 1, offset_at("safe", 0), 10)
    story.passes(2)
    late.is_answered("acks=all for 2 s")
    patient = story.sends(1, produce("safe", 0, "d"), 12)
    patient.waits("acks=all for a minute")
    refused = story.asks("at the killed one", 3, produce("safe", 2, "d"), 12)
    assert refused is None
    story.asks("its partition, at another one", 1, produce("safe", 2, "d"), 12)
    story.passes(SESSION_S)
    patient.is_answered("acks=all for a minute")
    story.asks("the end for consumers", 1, offset_at("safe", 0), 10)
    story.partitions("3 is fenced", 1, *TOPICS)
    story.asks("to a partition without a leader", 1, produce("lone", 1, "d"), 12)
    story.asks("to a partition with another leader", 1, produce("safe", 2, "d"), 12)
    story.asks("to a partition whose leader is gone", 2, produce("safe", 2, "d"), 12)

    story.act("kill", 2)
    late = story.sends(1, produce("safe", 0, "e", timeout_ms=10_000), 12)
    late.waits("2 is killed: acks=all for 10 s")
    story.passes(SESSION_S)
    story.partitions("2 is fenced", 1, *TOPICS)
    story.asks("acks=all with too few in sync", 1, produce("safe", 0, "f"), 12)
    story.asks("acks=1 with too few in sync", 1, produce("safe", 0, "f", acks=1), 12)
    story.asks("the end for consumers, with too few in sync", 1, offset_at("safe", 0), 10)
    story.asks("what consumers see, with too few in sync", 1, fetch("safe", 0, 6), 12)
    story.passes(3)
    late.is_answered("acks=all for 10 s")
    story.act("start", 2)
    story.act("start", 3)
    story.partitions("2 and 3 are back", 1, *TOPICS)
    story.asks("the end for consumers, with enough in sync", 1, offset_at("safe", 0), 10, settles=True)
    story.asks("acks=all", 1, produce("safe", 0, "g"), 12)
    story.asks("all of it", 1, fetch("safe", 0, 0), 12)


def _the_leader_is_killed(story: TrioStory) -> None:
    given = story.asks(
        "a producer id", 1, InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 5, settles=True
    )
    producer = {"producer_id": given.producer_id, "producer_epoch": given.producer_epoch}
    for sequence in range(2):
        story.asks(
            f"sequence {sequence}", 1, produce("safe", 0, f"s{sequence}", **producer, base_sequence=sequence), 12
        )
    story.asks("sequence 1 again", 1, produce("safe", 0, "s1", **producer, base_sequence=1), 12)
    story.act("kill", 1)
    story.asks("1 is killed: at a follower", 2, produce("safe", 0, "s2", **producer, base_sequence=2), 12)
    story.passes(SESSION_S)
    story.partitions("1 is fenced", 2, *TOPICS)
    story.asks("sequence 1 at the next leader", 2, produce("safe", 0, "s1", **producer, base_sequence=1), 12)
    story.asks("sequence 3 too early", 2, produce("safe", 0, "s3", **producer, base_sequence=3), 12)
    story.asks("sequence 2 at the next leader", 2, produce("safe", 0, "s2", **producer, base_sequence=2), 12)
    story.asks("at the other follower", 3, produce("safe", 0, "h"), 12)
    story.act("start", 1)
    story.partitions("1 is back", 2, *TOPICS)
    story.asks("sequence 3 at the leader from before", 1, produce("safe", 0, "s3", **producer, base_sequence=3), 12)
    story.asks("sequence 3 at the leader", 2, produce("safe", 0, "s3", **producer, base_sequence=3), 12)
    story.asks("all of it", 2, fetch("safe", 0, 9), 12)


def _the_leader_is_paused(story: TrioStory) -> None:
    story.act("pause", 2)
    zombie = story.sends(2, produce("safe", 0, "z"), 12)
    zombie.waits("2 is paused: acks=all")
    story.asks("at a follower, which knows no better", 3, produce("safe", 0, "i"), 12)
    story.passes(SESSION_S)
    story.partitions("2 is fenced", 3, *TOPICS)
    story.asks("at the next leader", 1, produce("safe", 0, "i"), 12)
    zombie.waits("the paused one says nothing")
    story.act("resume", 2)
    zombie.is_answered("it goes on: acks=all", allowed=("NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT"))
    story.partitions("2 is back", 3, *TOPICS)
    story.asks("at it", 2, produce("safe", 0, "i"), 12)
    story.asks("what there is from the pause on", 1, fetch("safe", 0, 13), 12)


def _the_leader_stops(story: TrioStory) -> None:
    story.act("stop", 1)
    story.partitions("1 has stopped", 3, *TOPICS)
    story.asks("at the next leader", 2, produce("safe", 0, "j"), 12)
    story.asks("at a follower", 3, produce("safe", 0, "j"), 12)
    story.asks("at the one that stopped", 1, produce("safe", 0, "j"), 12)
    story.sends(3, produce("safe", 0, "j", acks=0), 12).is_answered("acks=0 at a follower")
    story.act("start", 1)
    story.partitions("1 is back", 3, *TOPICS)
    story.asks("all since", 2, fetch("safe", 0, 13), 12)
