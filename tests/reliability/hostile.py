"""Frames as an enemy, a broken client or a bad network would send them: valid requests of every API and version, spoiled.

Each case is what one connection sends, and follows from the seed and the number of the case alone.
"""

import random
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from crc32c import crc32c

from groupcoord.protocol.apis import APIS, Api, ApiKey
from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol
from groupcoord.protocol.apis.produce import PartitionProduceData, TopicProduceData
from groupcoord.protocol.apis.sync_group import SyncGroupRequestAssignment
from groupcoord.protocol.errors import WireError
from groupcoord.protocol.framing import encode_request, parse_request
from groupcoord.protocol.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    JoinGroupRequest,
    ProduceRequest,
    SyncGroupRequest,
)
from tests.conformance.batches import Rec, batch
from tests.protocol import error_samples
from tests.protocol.samples import make

TOPIC = "orders"
"""What valid requests are about. Those that would remove it name another one instead, of the same length."""
DOOMED = "doomed"

LAST_CORRELATION_ID = 0x7FFF_1357
LAST = encode_request(APIS[ApiKey.API_VERSIONS], 0, LAST_CORRELATION_ID, "last", ApiVersionsRequest())
"""The request at the end of each case: whoever is still connected is answered."""

MOST_SOFT = 8
Spoiler = Callable[[random.Random], bytes]
_CLIENT_ID = "h%09d"
MOST_PARTITIONS = 50
"""Topics of thousands of partitions are what they ask for, not broken: how long others wait for them is another question."""
_CREATING = {struct.pack(">h", key) for key in (ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS)}
_SPARED = {ApiKey.DELETE_TOPICS, ApiKey.DELETE_RECORDS, ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS}
_INT32 = struct.Struct(">i")
_LENGTHS = (
    *(struct.pack(">i", number) for number in (-(2**31), -2, -1, 0, 1, 2**15, 2**16, 2**24, 2**31 - 1)),
    *(struct.pack(">h", number) for number in (-(2**15), -2, -1, 0, 2**15 - 1)),
    *(struct.pack(">q", number) for number in (-(2**63), -1, 2**31, 2**63 - 1)),
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x80\x80\x80\x80\x80",
    b"\xff\x7f",
    b"\x00",
    b"\x01",
    b"\xff",
)


@dataclass(frozen=True, slots=True)
class Case:
    """What one connection sends: ``frames`` whole or not, and whether the peer then just goes away."""

    number: int
    frames: tuple[bytes, ...]
    leaves: bool

    @property
    def data(self) -> bytes:
        """All of it, glued, with the last request if the peer stays."""
        return b"".join(self.frames) + (b"" if self.leaves else LAST)


def _batches() -> list[bytes]:
    records = [Rec(b"value", b"key", headers=(("h", b"x"),)), Rec(None), Rec(b"v" * 50)]
    plain = [batch(records, codec=codec) for codec in range(5)]
    return [*plain, batch([b"x"], producer=(4_000, 0, 0)), batch(records, attributes=0x10, producer=(4_000, 0, 3))]


class Frames:
    """Makes cases. ``topic_id`` is that of the topic that is there; ``batches_only`` has nothing but what Produce carries."""

    def __init__(self, seed: int, topic_id: uuid.UUID) -> None:
        self.seed = seed
        self.topic_id = topic_id
        self._valid: list[tuple[bytes, Api]] = []
        self._batches = _batches()
        chance = random.Random(seed)
        for api in APIS.values():
            for version in range(api.min_version, api.max_version + 1):
                codec = api.request_codec(version)
                asked = [*error_samples._requests(api, version), make(codec.schema, chance), make(codec.schema, chance)]
                self._valid += [(self._frame(api, version, request), api) for request in asked]
        # Mostly answered, and mostly the end of the connection: a case has some of the first, then one or two of the others.
        self._soft: list[Spoiler] = [self._valid_one, self._produced, self._produced, self._produced, self._embedded]
        self._hard: list[Spoiler] = [
            *[self._flipped] * 4,
            *[self._overwritten] * 4,
            *[self._cut] * 2,
            *[self._lengthened] * 2,
            self._tagged,
            self._other_api,
            self._noise,
            self._wrong_length,
        ]

    def case(self, number: int) -> Case:
        """Case ``number``."""
        chance = random.Random(f"{self.seed}:{number}")
        made = chance.choices(self._soft, k=chance.randint(0, MOST_SOFT)) + chance.choices(
            self._hard, k=chance.randint(1, 2)
        )
        mark, place = (_CLIENT_ID % number).encode(), (_CLIENT_ID % 0).encode()
        frames = [spoiler(chance).replace(place, mark, 1) for spoiler in made]
        frames = [frame for frame in frames if partitions_in(frame) <= MOST_PARTITIONS] or [self._noise(chance)]
        leaves = chance.random() < 0.03
        if leaves:
            frames[-1] = frames[-1][: chance.randrange(len(frames[-1]) + 1)]
        return Case(number, tuple(frames), leaves)

    def _frame(self, api: Api, version: int, request: object) -> bytes:
        data = encode_request(api, version, 7, _CLIENT_ID % 0, request)
        if api.key in _SPARED:
            return data.replace(TOPIC.encode(), DOOMED.encode())
        return data.replace(error_samples.ORDERS.bytes, self.topic_id.bytes)

    # Every spoiler returns a frame with its length.

    def _valid_one(self, chance: random.Random) -> bytes:
        return chance.choice(self._valid)[0]

    def _flipped(self, chance: random.Random) -> bytes:
        return _framed(_flip(chance, self._body(chance)))

    def _overwritten(self, chance: random.Random) -> bytes:
        return _framed(_overwrite(chance, self._body(chance)))

    def _cut(self, chance: random.Random) -> bytes:
        body = self._body(chance)
        return _framed(body[: chance.randrange(len(body))])

    def _lengthened(self, chance: random.Random) -> bytes:
        body = self._body(chance)
        start = chance.randrange(len(body))
        piece = body[start : start + chance.randint(1, 40)]
        if chance.random() < 0.5:
            return _framed(body[:start] + piece * chance.randint(1, 50) + body[start:])
        return _framed(body[:start] + body[start + len(piece) :])

    def _tagged(self, chance: random.Random) -> bytes:
        tags = chance.choice(
            (b"\xff\xff\xff\xff\x07", b"\x01\x00\x7f", b"\x03\x09\x01a\x05\x01a\x05\x01a", b"\x01\x00\x00")
        )
        body = self._body(chance)
        return _framed(body[:-1] + tags)

    def _other_api(self, chance: random.Random) -> bytes:
        body = self._body(chance)
        if chance.random() < 0.5:
            return _framed(
                struct.pack(">h", chance.choice((-1, 4, 7, 17, 61, 94, chance.randrange(-300, 300)))) + body[2:]
            )
        return _framed(body[:2] + struct.pack(">h", chance.choice((-1, 0, 99, chance.randrange(0, 20)))) + body[4:])

    def _noise(self, chance: random.Random) -> bytes:
        return _framed(chance.randbytes(chance.choice((0, 1, 3, 4, 8, 12, 40, 500))))

    def _wrong_length(self, chance: random.Random) -> bytes:
        length = chance.choice((-1, -(2**31), 0, 2**31 - 1, 104_857_601, 104_857_600, chance.randrange(1, 500)))
        return _INT32.pack(length) + self._body(chance)

    def _produced(self, chance: random.Random) -> bytes:
        """A batch that is spoiled and has the right checksum, so that everything behind it is looked at."""
        data = chance.choice(self._batches)
        if chance.random() < 0.3:
            data += chance.choice(self._batches)
        spoiled = chance.choice((_flip, _overwrite, _nothing))(chance, data)
        if len(spoiled) > 61 and chance.random() < 0.9:
            # Length and format are mostly right, too: otherwise nothing else is looked at.
            head = bytearray(data[:17] if chance.random() < 0.8 else spoiled[:17])
            spoiled = bytes(head) + crc32c(spoiled[21 : _INT32.unpack_from(data, 8)[0] + 12]).to_bytes(4) + spoiled[21:]
        version = chance.randint(3, 13)
        named = {"topic_id": self.topic_id} if version >= 13 else {"name": TOPIC}
        partition = PartitionProduceData(index=chance.randrange(2), records=spoiled)
        request = ProduceRequest(
            acks=chance.choice((-1, 1, 1, 0)),
            timeout_ms=1_000,
            topic_data=(TopicProduceData(**named, partition_data=(partition,)),),
        )
        return encode_request(APIS[ApiKey.PRODUCE], version, 7, _CLIENT_ID % 0, request)

    def _embedded(self, chance: random.Random) -> bytes:
        """A subscription or an assignment that is spoiled, in a group that it is the only member of."""
        metadata = chance.choice(_EMBEDDED)
        metadata = chance.choice((_flip, _overwrite, _nothing))(chance, metadata)
        group = f"g{chance.randrange(10_000)}"
        if chance.random() < 0.5:
            join = JoinGroupRequest(
                group_id=group,
                session_timeout_ms=chance.choice((6_000, 0, -1, 2**31 - 1)),
                rebalance_timeout_ms=chance.choice((100, 0, -1, 2**31 - 1)),
                member_id="",
                protocol_type=chance.choice(("consumer", "consumer", "", "connect")),
                protocols=tuple(JoinGroupRequestProtocol(name=name, metadata=metadata) for name in ("range", "a")),
            )
            return encode_request(APIS[ApiKey.JOIN_GROUP], chance.choice((0, 1, 2, 3, 5, 9)), 7, _CLIENT_ID % 0, join)
        sync = SyncGroupRequest(
            group_id=group,
            generation_id=chance.choice((1, 1, 0, -1, 2**31 - 1)),
            member_id="m",
            assignments=(SyncGroupRequestAssignment(member_id="m", assignment=metadata),),
        )
        return encode_request(APIS[ApiKey.SYNC_GROUP], chance.randint(0, 4), 7, _CLIENT_ID % 0, sync)

    def _body(self, chance: random.Random) -> bytes:
        return chance.choice(self._valid)[0][4:]


_EMBEDDED = (
    # A subscription of version 3 with user data, owned partitions, generation and rack, then an assignment.
    bytes.fromhex("0003 00000001 0006") + b"orders" + bytes.fromhex("00000001 61")
    + bytes.fromhex("00000001 0006") + b"orders" + bytes.fromhex("00000001 00000000 00000001 0001 72"),
    bytes.fromhex("0001 00000001 0006") + b"orders" + bytes.fromhex("00000002 00000000 00000001 ffffffff"),
    b"",
)  # fmt: skip


def partitions_in(frame: bytes) -> int:
    """The most partitions that a topic would have after this request, if it is understood and creates any."""
    if frame[4:6] not in _CREATING:
        return 0
    try:
        request = parse_request(frame[4:])
    except WireError:
        return 0
    if isinstance(request.message, CreateTopicsRequest):
        return max((topic.num_partitions for topic in request.message.topics), default=0)
    return max((topic.count for topic in request.message.topics), default=0)


def _framed(body: bytes) -> bytes:
    return _INT32.pack(len(body)) + body


def _nothing(_: random.Random, data: bytes) -> bytes:
    return data


def _flip(chance: random.Random, data: bytes) -> bytes:
    flipped = bytearray(data)
    for _ in range(chance.randint(1, 4) if flipped else 0):
        flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
    return bytes(flipped)


def _overwrite(chance: random.Random, data: bytes) -> bytes:
    length = chance.choice(_LENGTHS)
    at = chance.randrange(len(data) + 1)
    return data[:at] + length + data[at + len(length) :]
