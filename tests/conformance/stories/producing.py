"""Produce: every version, and every kind of invalid batch."""

import gzip
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from groupcoord.protocol.apis.produce import PartitionProduceData, TopicProduceData
from tests.conformance.actors import Stagehand
from tests.conformance.batches import COMPRESSORS, THEN_MS, Rec, batch, independent_lz4, linked_lz4, old_message
from tests.conformance.data import DataClient, produce_request
from tests.conformance.producers import MADE_UP_ID, TRANSACTIONAL, until_coordinated
from tests.conformance.settings import SLOW_START
from tests.conformance.story import Story, story

Pack = Callable[[bytes], bytes]


@story(sections=["produce"])
def every_version_of_produce_and_fetch(s: Story) -> None:
    """Each version of Produce, read back at the end by each version of Fetch."""
    stage = Stagehand(s)
    topic = stage.topic("orders", partitions=2)
    p = DataClient(s, "p", ids={topic: stage.topic_id(topic)})
    for version in range(3, 14):
        p.produces({(topic, 0): batch([Rec(b"v%d" % version, key=b"k", headers=(("h", b"x"), ("n", None)))])}, version)
    for version in range(4, 19):
        p.fetches({(topic, 0): 9, (topic, 1): 0}, version)


@story(sections=["produce"])
def acknowledgements(s: Story) -> None:
    """acks may be -1, 0 and 1; with 0 there is no response, neither to valid batches nor to invalid ones."""
    topic = Stagehand(s).topic("orders")
    p = DataClient(s, "p")
    p.produces({(topic, 0): batch([b"one"])}, acks=1, does="produces with acks=1")
    for acks in (2, -2, 32767):
        p.produces({(topic, 0): batch([b"x"])}, acks=acks, does=f"produces with acks={acks}")
    silent = produce_request({(topic, 0): batch([b"two"])}, {}, 0)
    pending = p.parks(silent, 12, does="produces with acks=0")
    p.stays_unanswered(150, pending)
    pending.line.waiting = None
    p.parked.clear()
    p.lists_offsets({(topic, 0): -1})


@story(sections=["produce"])
def an_error_without_an_acknowledgement(s: Story) -> None:
    """With acks=0 an error closes the connection, because there is no response that could have it."""
    topic = Stagehand(s).topic("orders")
    p = DataClient(s, "p")
    p.asks_in_vain(
        produce_request({(topic, 9): batch([b"x"])}, {}, 0), 12, does="produces with acks=0 to an unknown partition"
    )
    p.asks_in_vain(
        produce_request({(topic, 0): batch([b"x"], spoil_crc=True)}, {}, 0), 12, does="produces a bad batch with acks=0"
    )
    p.lists_offsets({(topic, 0): -1})


@story(sections=["produce"])
def partitions_that_are_not_there(s: Story) -> None:
    """Unknown topics, partitions and ids, together with known ones; an empty request."""
    stage = Stagehand(s)
    topic = stage.topic("orders")
    unknown = s.topic_name("unknown")
    p = DataClient(s, "p", ids={topic: stage.topic_id(topic), unknown: uuid.UUID(int=9)})
    good = batch([b"x"])
    for version in (3, 7, 8, 12, 13):
        p.produces({(topic, 0): good, (topic, 5): good, (unknown, 0): good, (topic, -1): good}, version)
    p.produces({}, 12)
    null = p.parks(produce_request({(topic, 0): None}, {}), 12, does="produces null")
    p.stays_unanswered(300, null)
    p.produces({(topic, 0): b""}, 12, does="produces nothing")
    p.ids[unknown] = None
    p.produces({(unknown, 0): good}, 13, does="produces to the zero id")
    p.produces({("__consumer_offsets", 0): good}, 12, does="produces to an internal topic")
    p.lists_offsets({(topic, 0): -1})


@story(sections=["produce"])
def batches_that_are_wrong(s: Story) -> None:
    """Every field of a batch that can be invalid, one at a time, and its error."""
    topic = Stagehand(s).topic("orders")
    p = DataClient(s, "p")
    good = batch([b"one", b"two"])
    wrong = {
        "a wrong checksum": batch([b"x"], spoil_crc=True),
        "a base offset of 5": batch([b"x"], base_offset=5),
        "a leader epoch of 7": batch([b"x"], leader_epoch=7),
        "magic 3": batch([b"x"], magic=3),
        "magic 0": old_message(b"x", magic=0),
        "magic 1": old_message(b"x", magic=1),
        "a count that is too high": batch([b"x", b"y"], count=3),
        "a count that is too low": batch([b"x", b"y"], count=1),
        "a count of zero": batch([b"x"], count=0),
        "a negative count": batch([b"x"], count=-1),
        "a last offset that is too high": batch([b"x", b"y"], last_offset_delta=5),
        "a last offset that is too low": batch([b"x", b"y"], last_offset_delta=0),
        "a negative last offset": batch([b"x"], last_offset_delta=-1),
        "offsets that jump": batch([b"x", b"y"], offset_deltas=[0, 5], last_offset_delta=5),
        "offsets that go back": batch([b"x", b"y"], offset_deltas=[1, 0]),
        "no records": batch([], last_offset_delta=0),
        "a control bit": batch([b"x"], attributes=0x20),
        "a transactional bit": batch([b"x"], attributes=0x10),
        "log append time": batch([b"x"], attributes=0x08),
        "an unknown codec": batch([b"x"], attributes=0x05),
        "unused attribute bits": batch([b"x"], attributes=0x4000),
        "a max timestamp that is too high": batch([b"x"], max_timestamp_ms=THEN_MS + 5),
        "a max timestamp that is too low": batch([b"x"], max_timestamp_ms=THEN_MS - 5),
        "no timestamp": batch([Rec(b"x", timestamp_ms=-1)]),
        "a negative timestamp": batch([Rec(b"x", timestamp_ms=-5)]),
        "a timestamp far ahead": batch([Rec(b"x", timestamp_ms=THEN_MS * 4)]),
        "a timestamp of zero": batch([Rec(b"x", timestamp_ms=0)]),
        "a length that is too long": batch([b"x"], length=500),
        "a length that is too short": batch([b"x"], length=20),
        "a negative length": batch([b"x"], length=-1),
        "half of its bytes": good[: len(good) // 2],
        "a header only": good[:61],
        "three bytes": good[:3],
        "two batches": good + good,
        "a good batch and half of one": good + good[:30],
        "bytes behind its records": batch([b"x"])[:-1] + b"zz",
        "gzip that is none": batch([b"x"], attributes=1),
    }
    for name, data in wrong.items():
        p.produces({(topic, 0): data}, does=f"produces a batch with {name}")
    p.lists_offsets({(topic, 0): -1})
    p.fetches({(topic, 0): 0})


@story(sections=["produce"])
def errors_of_produce_by_version(s: Story) -> None:
    """The same invalid batch in every version: older versions have fewer errors and no messages."""
    stage = Stagehand(s)
    topic = stage.topic("orders")
    p = DataClient(s, "p", ids={topic: stage.topic_id(topic)})
    for version in range(3, 14):
        p.produces({(topic, 0): batch([b"x", b"y"], count=3)}, version)
        p.produces({(topic, 0): batch([b"x"], spoil_crc=True)}, version)


@story(sections=["produce"])
def compressions(s: Story) -> None:
    """Batches of all four codecs are stored unchanged, also with several or large records; gzip level and framing are
    kept."""
    topic = Stagehand(s).topic("orders", partitions=5)
    p = DataClient(s, "p")
    for codec in range(5):
        p.produces({(topic, codec): batch([b"one", Rec(b"two" * 100, key=b"k"), b"three"], codec=codec)})
    p.fetches({(topic, codec): 0 for codec in range(5)})
    p.produces(
        {(topic, 3): batch([b"one" * 9], codec=3, compressor=linked_lz4)}, does="produces LZ4 with linked blocks"
    )
    p.lists_offsets({(topic, 3): -1})


@story(sections=["produce"])
def frames_of_lz4(s: Story) -> None:
    """Which LZ4 frames are accepted: bytes after the end, checksum and content size are not checked."""
    topic = Stagehand(s).topic("orders")
    p = DataClient(s, "p")
    plain = independent_lz4(content_checksum=False)
    summed = independent_lz4(content_checksum=True)
    for does, compressor in {
        "a checksum of the content": summed,
        "a wrong checksum of the content": lambda data: summed(data)[:-4] + b"junk",
        "half a checksum of the content": lambda data: summed(data)[:-2],
        "junk behind the end": lambda data: plain(data) + b"junk",
        "another frame behind the end": lambda data: plain(data) + plain(data),
        "no end": lambda data: plain(data)[:-4],
        "a wrong checksum of the header": lambda data: plain(data)[:6] + b"\x00" + plain(data)[7:],
        "no magic": lambda data: b"\x05" + plain(data)[1:],
        "no frame": lambda _: b"",
        "a spoilt block": lambda data: plain(data)[:12] + b"\xff\xff" + plain(data)[14:],
    }.items():
        data = batch([b"one" * 30, b"two"], codec=3, compressor=compressor)
        p.produces({(topic, 0): data}, does=f"produces LZ4 with {does}")
    p.lists_offsets({(topic, 0): -1})


@story(sections=["produce"])
def what_lies_behind_compressed_bytes(s: Story) -> None:
    """Two streams in a row, junk, nothing at all: by codec."""
    topic = Stagehand(s).topic("orders")
    p = DataClient(s, "p")
    ways: dict[str, Callable[[Pack, bytes], bytes]] = {
        "in two parts": lambda pack, data: pack(data[:9]) + pack(data[9:]),
        "with junk behind": lambda pack, data: pack(data) + b"junk",
        "with three bytes behind": lambda pack, data: pack(data) + b"abc",
        "with half a stream behind": lambda pack, data: pack(data) + pack(data)[:-3],
        "that is cut short": lambda pack, data: pack(data)[:-3],
        "of nothing": lambda _pack, _data: b"",
    }
    for codec, name in ((1, "gzip"), (2, "snappy"), (4, "zstd")):
        for does, way in ways.items():
            data = batch([b"one" * 30, b"two"], codec=codec, compressor=partial(way, COMPRESSORS[codec]))
            p.produces({(topic, 0): data}, does=f"produces {name} {does}")
    p.lists_offsets({(topic, 0): -1})


@story(sections=["produce"])
def records_that_say_a_wrong_size(s: Story) -> None:
    """In a compressed batch that is stored unchanged the size of a record is not checked until it is read."""
    stage = Stagehand(s)
    p = DataClient(s, "p")

    def resized(change: int) -> Callable[[bytes], bytes]:
        return lambda data: gzip.compress(bytes([data[0] + change]) + data[1:], mtime=0)

    for target in ("producer", "uncompressed"):
        topic = stage.topic(target, compression_type=target)
        for change in (2, -2, 100):
            data = batch([Rec(b"value", key=b"key")], codec=1, compressor=resized(change))
            p.produces({(topic, 0): data}, does=f"produces a record of {change // 2} bytes more")
        for timestamp in (-1, -3, THEN_MS):
            p.lists_offsets({(topic, 0): timestamp})


@story(sections=["produce"])
def batches_shorter_than_their_header(s: Story) -> None:
    """Batches that end before the producer id make the whole request fail, others only themselves."""
    topic = Stagehand(s).topic("orders", partitions=2)
    p = DataClient(s, "p")

    def short(size: int, attributes: int = 0, base_offset: int = 0) -> bytes:
        return batch([b"x" * 100], length=size - 12, attributes=attributes, base_offset=base_offset)[:size]

    for version in (3, 7, 12):
        for size in (26, 50, 51, 60):
            p.produces({(topic, 0): short(size), (topic, 1): batch([b"x"])}, version, does=f"produces {size} bytes")
        p.produces({(topic, 0): short(40, attributes=0x10)}, version, does="produces 40 transactional bytes")
        p.produces({(topic, 0): short(55, base_offset=5)}, version, does="produces 55 bytes with an offset")
        p.produces({(topic, 0): short(40, attributes=6)}, version, does="produces 40 bytes of an unknown codec")
        p.produces(
            {(topic, 0): batch([b"x"], attributes=6), (topic, 1): batch([b"x"])},
            version,
            does="produces an unknown codec",
        )
        p.produces({(topic, 7): short(40), (topic, 1): batch([b"x"])}, version, does="produces 40 bytes to nowhere")
    p.lists_offsets({(topic, 0): -1, (topic, 1): -1})


@story(sections=["produce"])
def topics_with_their_own_compression(s: Story) -> None:
    """compression.type of a topic: batches with another codec are compressed again, others are stored unchanged."""
    stage = Stagehand(s)
    p = DataClient(s, "p")
    for name in ("uncompressed", "gzip"):
        topic = stage.topic(name, compression_type=name)
        for codec in (0, 1):
            p.produces({(topic, 0): batch([b"one", b"two"], codec=codec)})
        p.fetches({(topic, 0): 0})


@story(sections=["produce"])
def times_of_append(s: Story) -> None:
    """message.timestamp.type=LogAppendTime: the broker's time in the response and in the batch; and limits before and
    after."""
    stage = Stagehand(s)
    append = stage.topic("append", message_timestamp_type="LogAppendTime")
    narrow = stage.topic("narrow", message_timestamp_before_max_ms="1000", message_timestamp_after_max_ms="1000")
    p = DataClient(s, "p")
    p.produces({(append, 0): batch([b"one", b"two"])})
    p.produces({(append, 0): batch([b"three"], codec=1)})
    p.fetches({(append, 0): 0})
    p.produces({(narrow, 0): batch([b"old", b"older"])})
    p.produces({(narrow, 0): batch([Rec(b"x", timestamp_ms=THEN_MS * 3)])})
    p.produces({(narrow, 0): batch([Rec(b"x", timestamp_ms=-1)])})


@story(sections=["produce"])
def compacted_topics_need_keys(s: Story) -> None:
    """A compacted topic refuses a record without a key, and names it; the valid records of the batch are refused, too."""
    topic = Stagehand(s).topic("orders", cleanup_policy="compact")
    p = DataClient(s, "p")
    p.produces({(topic, 0): batch([Rec(b"v", key=b"k")])})
    p.produces({(topic, 0): batch([Rec(b"v", key=b"k"), b"keyless", Rec(b"w", key=b"k"), b"keyless too"])})
    p.produces({(topic, 0): batch([b"keyless"])}, 7)
    p.lists_offsets({(topic, 0): -1})


@story(sections=["produce"], settings=SLOW_START)
def batches_that_are_too_large(s: Story) -> None:
    """message.max.bytes of the broker (2000) and of a topic: the size of the whole batch counts, as compressed."""
    stage = Stagehand(s)
    topic, own = stage.topic("orders"), stage.topic("own", max_message_bytes="300")
    p = DataClient(s, "p")
    p.produces({(topic, 0): batch([b"x" * 2500])})
    p.produces({(topic, 0): batch([b"x" * 2500], codec=1)})
    overhead = len(batch([b"x" * 1900])) - 1900
    p.produces({(topic, 0): batch([b"x" * (2000 - overhead)])}, does="produces exactly the limit")
    p.produces({(topic, 0): batch([b"x" * (2001 - overhead)])}, does="produces one byte more")
    p.produces({(own, 0): batch([b"x" * 300])})
    p.produces({(own, 0): batch([b"x" * 100])})
    p.lists_offsets({(topic, 0): -1, (own, 0): -1})


@story(sections=["produce"])
def a_transactional_id_in_produce(s: Story) -> None:
    """A transactional id without a transaction, and an empty one."""
    topic = Stagehand(s).topic("orders")
    p = DataClient(s, "p")
    request = produce_request({(topic, 0): batch([b"x"])}, {})
    p.asks(replace(request, transactional_id="nobody"), 12, does="produces with a transactional id")
    p.asks(replace(request, timeout_ms=-1), 12, does="produces with a negative timeout")


@story(sections=["produce"])
def a_partition_that_is_named_twice(s: Story) -> None:
    """Only the last batch of a partition is stored, but an error of another one is in the response."""
    stage = Stagehand(s)
    topic = stage.topic("orders")
    p = DataClient(s, "p")
    transactional = batch([b"in a transaction"], producer=(MADE_UP_ID, 0, 0), attributes=TRANSACTIONAL)
    two = batch([b"one"]) + batch([b"two"])
    unknown = PartitionProduceData(index=7, records=transactional)

    def twice(does: str, *records: bytes | None, version: int = 12, also: Sequence[PartitionProduceData] = ()) -> None:
        parts = (*also, *(PartitionProduceData(index=0, records=each) for each in records))
        request = produce_request({}, {})
        p.asks(replace(request, topic_data=(TopicProduceData(name=topic, partition_data=parts),)), version, does=does)

    twice("produces two valid batches", batch([b"first"]), batch([b"second"]))
    twice("produces a malformed batch, then a valid one", two, batch([b"third"]))
    twice("produces a valid batch, then a malformed one", batch([b"fourth"]), two)
    twice("produces nothing, then a valid batch", b"", batch([b"fifth"]))
    twice("produces null, then a valid batch", None, batch([b"sixth"]))
    twice("produces with a codec that is too new, then without", batch([b"x"], codec=4), batch([b"7th"]), version=5)
    twice("produces in a transaction without an id, then outside of it", transactional, batch([b"x"]))
    twice("produces a batch of a wrong length, then a valid one", batch([b"x"], length=10), batch([b"x"]))
    twice("the same to an unknown partition", batch([b"x"]), also=[unknown])
    p.fetches({(topic, 0): 0})


@story(sections=["produce"])
def what_cannot_be_compressed_again(s: Story) -> None:
    """A transactional batch without a producer, and one of a producer without an epoch, if the topic has another codec."""
    stage = Stagehand(s)
    own, other = stage.topic("own"), stage.topic("other", compression_type="gzip")
    until_coordinated(s, stage, s.topic_name("t"))
    p = DataClient(s, "p")
    for topic in (own, other):
        for producer in ((-1, -1, -1), (-1, 0, 0), (MADE_UP_ID, -1, 0), (MADE_UP_ID, 0, 0)):
            for attributes in (0, TRANSACTIONAL):
                data = batch([b"x"], producer=producer, attributes=attributes)
                request = replace(produce_request({(topic, 0): data}, {}), transactional_id=s.topic_name("t"))
                p.asks(request, 9, does=f"produces with {producer}, attributes {attributes}")
        p.fetches({(topic, 0): 0})
