"""Replays a recording against an in-process groupcoord cluster, and compares its responses with the recorded ones.

Requests are replayed in the order and at the times of the recording, and the clock is that of the recording, so that sessions
and rebalances end at the same times. Random ids (of members, topics, producers, fetch sessions) in requests are replaced by
those of this cluster, and compared by identity: the same id in the recording must be the same id here. So are the epochs of
each producer id, whose transactional id may have been initialized before the recording.

The cluster starts with the topics of the recording's first Metadata responses, without records and offsets from before the
recording.
"""

import dataclasses
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from groupcoord.cluster.assemble import Assembly, assemble
from groupcoord.config.broker_config import load
from groupcoord.core.effects import Call, CloseConnection, Effect, NoReply, Reply
from groupcoord.core.java_hash_order import partition_for
from groupcoord.protocol import messages as m
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.batches.record_batch import (
    ATTRIBUTES_BYTE,
    CONTROL,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    MAGIC,
    BatchHeader,
    frame_batch,
    read_header,
)
from groupcoord.protocol.errors import WireError
from groupcoord.protocol.framing import Request, encode_response, parse_request, parse_response
from groupcoord.proxy.recording import RecordedFrame
from groupcoord.testing.engine import SeededRandomSource

INTERNAL = ("__consumer_offsets", "__transaction_state")
_PATIENCE_MS = 600_000
"""How much later than in the recording a response may come, on the recording's clock; usually it is a few milliseconds."""
_EPOCHS = ("leader_epoch", "committed_leader_epoch", "current_leader_epoch", "last_fetched_epoch")
_TIMES = ("log_append_time_ms", "transaction_start_time_ms", "last_timestamp")
_NUMBERS_OF_THEIR_OWN = ("leader_epoch", "time")
"""Kinds of values where several in the recording may be one here, so that only their presence is compared."""
_DRAWN: dict[str, type] = {
    "member_id": str,
    "leader": str,
    "topic_id": uuid.UUID,
    "producer_id": int,
    "session_id": int,
    **dict.fromkeys(_EPOCHS, int),
    **dict.fromkeys(_TIMES, int),
}
"""Fields whose values are random, or depend on what happened before the recording."""
_LENGTH_BYTE, _EPOCH_BYTE, _MAGIC_BYTE = 8, 12, 16
"""The offsets of these fields in a record batch; its length counts the bytes after the length field."""
_OF_THE_PLACE = frozenset(
    {
        *("brokers", "node_endpoints", "host", "port", "rack", "cluster_id", "client_host", "controller_id"),
        *("replica_nodes", "isr_nodes", "finalized_features_epoch"),
    }
)
"""Fields about the addresses of a cluster and its replicas, which are not compared."""
_SORTED = {"topics": "name", "partitions": "partition_index"}
"""Lists in Metadata responses, which brokers return in any order, and the field by which they are sorted here."""


class Step(NamedTuple):
    """One compared response; ``differences`` is empty if it is as recorded."""

    number: int
    connection: int
    client_id: str | None
    api: str
    version: int
    differences: tuple[str, ...]

    def text(self) -> str:
        """The step and its differences, as text."""
        who = self.client_id or "a client without id"
        head = f"step {self.number}: {who} on connection {self.connection}, {self.api} v{self.version}"
        return "\n".join([head, *(f"  {difference}" for difference in self.differences)])


class Replayed(NamedTuple):
    """The result of a replay: the compared ``steps``, and in words what was ``left_out``."""

    steps: tuple[Step, ...]
    left_out: tuple[str, ...]

    @property
    def different(self) -> tuple[Step, ...]:
        """The steps that differ."""
        return tuple(step for step in self.steps if step.differences)


def replay(frames: Sequence[RecordedFrame]) -> Replayed:
    """Replay the recording against a new cluster, and compare the responses."""
    return _Replay(frames).run()


class _Asked(NamedTuple):
    """A recorded request, and its call in this cluster."""

    request: Request
    call: Call


class _Replay:
    def __init__(self, frames: Sequence[RecordedFrame]) -> None:
        self.frames = frames
        self.exchanges = list(_exchanges(frames))
        self.ids = _DrawnIds()
        self.answers: dict[tuple[int, int], Any] = {}
        """(connection, number of the request) → the response of this cluster."""
        self.nodes = _nodes_of(self.exchanges)
        self.now_ms = frames[0].at_ms
        self.assembly = self._cluster()

    def run(self) -> Replayed:
        steps: list[Step] = []
        left_out: dict[str, int] = {}
        asked: dict[int, _Asked] = {}
        for number, (frame, exchange) in enumerate(zip(self.frames, self.exchanges, strict=True)):
            self._advance(frame.at_ms)
            if exchange.request is None:
                left_out[exchange.why] = left_out.get(exchange.why, 0) + 1
            elif frame.sender == "client":
                asked[number] = self._ask(number, frame, exchange.request)
            else:
                steps.append(self._compare(len(steps) + 1, frame, exchange, asked[exchange.asked_in]))
        return Replayed(tuple(steps), tuple(f"{count} × {why}" for why, count in left_out.items()))

    # The cluster.

    def _cluster(self) -> Assembly:
        topics = _topics_of(self.exchanges)
        ids = sorted(set(self.nodes.values())) or [1]
        config = load([f"node.id={ids[0]}", "auto.create.topics.enable=true", *_PROPERTIES], brokers=len(ids))
        assembly = assemble(
            config,
            random=SeededRandomSource(0),
            now_ms=self.now_ms,
            topics=[(name, len(leaders)) for name, leaders in topics.items() if name not in INTERNAL],
            brokers=len(ids),
        )
        if len(ids) > 1:
            self._place(assembly, {name: leaders for name, leaders in topics.items() if name not in INTERNAL})
        elif (found := _first_coordinator_found(self.exchanges)) is not None:
            self._find_coordinator(assembly, 1, found)
        return assembly

    def _place(self, assembly: Assembly, topics: Mapping[str, tuple[int, ...]]) -> None:
        """Give each broker the leaderships and the coordinated groups and transactional ids of the recorded one."""
        core = assembly.core
        for name, leaders in topics.items():
            for partition, leader in enumerate(leaders):
                core.move_leader(name, partition, leader, self.now_ms)
        for key_type, key, node in _coordinators_of(self.exchanges):
            self._find_coordinator(assembly, key_type, key)
            core.move_leader(INTERNAL[key_type], partition_for(key, _COORDINATOR_PARTITIONS), node, self.now_ms)

    def _find_coordinator(self, assembly: Assembly, key_type: int, key: str) -> None:
        """Create the topic of the coordinators of ``key_type``, as the first request for one does."""
        call = Call(-1, 0, APIS[ApiKey.FIND_COORDINATOR], 4, None, "/127.0.0.1")
        request = m.FindCoordinatorRequest(key_type=key_type, coordinator_keys=(key,))
        assembly.core.handle(call, request, self.now_ms)

    def _advance(self, now_ms: int) -> None:
        """Advance the clock; every timer that expires runs at its own time."""
        core = self.assembly.core
        while (due := core.next_deadline()) is not None and due <= now_ms:
            self.now_ms = max(self.now_ms, due)
            self._take(core.expire(self.now_ms))
            self._take(core.flush(self.now_ms))
        self.now_ms = max(self.now_ms, now_ms)

    def _ask(self, number: int, frame: RecordedFrame, request: Request) -> _Asked:
        first = min(self.nodes.values(), default=0)
        node = self.nodes.get(frame.broker, first)
        call = Call(
            frame.connection,
            number,
            request.api,
            request.version,
            request.client_id,
            "/127.0.0.1",
            node - first,
        )
        message = self.ids.in_request(request.message)
        self._take(self.assembly.core.handle(call, message, self.now_ms))
        self._take(self.assembly.core.flush(self.now_ms))
        return _Asked(request, call)

    def _take(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Reply(call, response):
                    # Encoded and parsed, so that it has the fields of its version.
                    data = encode_response(call.api, call.version, 0, response)[4:]
                    self.answers[call.connection_id, call.correlation_id] = parse_response(
                        call.api, call.version, data
                    )[1]
                case NoReply(call):
                    self.answers[call.connection_id, call.correlation_id] = "no answer"
                case CloseConnection(call, reason):
                    self.answers[call.connection_id, call.correlation_id] = f"the connection is closed: {reason}"
                case _:
                    pass

    def _compare(self, number: int, frame: RecordedFrame, exchange: "_Exchange", asked: _Asked) -> Step:
        key = frame.connection, asked.call.correlation_id
        latest_ms = self.now_ms + _PATIENCE_MS
        while key not in self.answers and (due := self.assembly.core.next_deadline()) is not None and due <= latest_ms:
            self._advance(due)
        got = self.answers.pop(key, "no answer")
        request = asked.request
        differences = tuple(self.ids.differences(request.api.name, exchange.response, got))
        return Step(number, frame.connection, request.client_id, request.api.name, request.version, differences)


_COORDINATOR_PARTITIONS = 50
_PROPERTIES = tuple(
    f"{topic}.num.partitions={_COORDINATOR_PARTITIONS}" for topic in ("offsets.topic", "transaction.state.log")
)


class _Exchange(NamedTuple):
    """A parsed frame: a ``request``, or the ``response`` to the request in frame number ``asked_in``.

    Without a ``request`` the frame is left out, for the reason ``why``.
    """

    request: Request | None
    response: Any = None
    asked_in: int = -1
    why: str = ""


def _exchanges(frames: Sequence[RecordedFrame]) -> Iterator[_Exchange]:
    waiting: dict[int, list[tuple[int, Request | None, int, str]]] = {}
    for number, frame in enumerate(frames):
        queue = waiting.setdefault(frame.connection, [])
        if frame.sender == "client":
            correlation_id = int.from_bytes(frame.frame[4:8], signed=True)
            try:
                request = parse_request(frame.frame)
                why = "" if request.message is not None else "ApiVersions of a version that groupcoord does not have"
            except WireError as problem:
                request, why = None, f"a request that groupcoord does not serve ({problem})"
            if why:
                request = None
            queue.append((number, request, correlation_id, why))
            yield _Exchange(request, why=why)
        else:
            correlation_id = int.from_bytes(frame.frame[:4], signed=True)
            while queue and queue[0][2] != correlation_id:
                queue.pop(0)  # it had no response: a Produce with acks=0
            if not queue:
                yield _Exchange(None, why="an answer whose request is not in the recording")
                continue
            asked_in, request, _, why = queue.pop(0)
            if request is None:
                yield _Exchange(None, why=why.replace("a request", "an answer to a request"))
                continue
            try:
                response = parse_response(request.api, request.version, frame.frame)[1]
            except WireError as problem:
                yield _Exchange(None, why=f"an answer that cannot be read ({problem})")
            else:
                yield _Exchange(request, response, asked_in)


def _nodes_of(exchanges: Iterable[_Exchange]) -> dict[str, int]:
    """Address of a broker → its id, from the recorded Metadata responses."""
    return {
        f"{broker.host}:{broker.port}": broker.node_id
        for exchange in exchanges
        if isinstance(exchange.response, m.MetadataResponse)
        for broker in exchange.response.brokers
    }


def _topics_of(exchanges: Iterable[_Exchange]) -> dict[str, tuple[int, ...]]:
    """The leaders of the partitions of each topic, from the first Metadata response with the topic.

    Topics that are created during the recording are left out.
    """
    found: dict[str, tuple[int, ...]] = {}
    created: set[str] = set()
    for exchange in exchanges:
        if isinstance(exchange.response, m.MetadataResponse):
            for topic in exchange.response.topics:
                if topic.error_code:
                    created.add(topic.name or "")
                elif topic.name not in created:
                    leaders = sorted((each.partition_index, each.leader_id) for each in topic.partitions)
                    found.setdefault(topic.name or "", tuple(leader for _, leader in leaders))
        elif exchange.request is not None and exchange.request.api.key == ApiKey.CREATE_TOPICS:
            created |= {topic.name for topic in exchange.request.message.topics}
    return found


def _coordinators_of(exchanges: Iterable[_Exchange]) -> Iterator[tuple[int, str, int]]:
    """(key type, group or transactional id, node id) of each coordinator, from the recorded FindCoordinator responses."""
    for exchange in exchanges:
        if exchange.request is not None and isinstance(exchange.response, m.FindCoordinatorResponse):
            asked, told = exchange.request.message, exchange.response
            if asked.key_type < len(INTERNAL):
                one = ((asked.coordinator_keys[0], told.node_id, told.error_code),) if asked.key else ()
                for key, node, error in (
                    *one,
                    *((each.key, each.node_id, each.error_code) for each in told.coordinators),
                ):
                    if not error:
                        yield asked.key_type, key, node


def _first_coordinator_found(exchanges: Iterable[_Exchange]) -> str | None:
    """The transactional id in the first FindCoordinator for one, if the recorded cluster had its coordinator then."""
    for exchange in exchanges:
        request, is_answer = exchange.request, isinstance(exchange.response, m.FindCoordinatorResponse)
        if request is not None and is_answer and request.message.key_type == 1:
            return next((key for _, key, _ in _coordinators_of([exchange])), None)
    return None


class _DrawnIds:
    """Maps random values of the recording to those of this cluster."""

    def __init__(self) -> None:
        self._here: dict[str, dict[Any, Any]] = {}
        self._there: dict[str, dict[Any, Any]] = {}

    def in_request(self, value: Any) -> Any:
        """A recorded request, with its random values replaced by those of this cluster."""
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            changed = {}
            for field in dataclasses.fields(value):
                before = getattr(value, field.name)
                after = self._known(field.name, before)
                if field.name == "producer_epoch":
                    after = self._epoch_here(getattr(value, "producer_id", None), before)
                if field.name == "records" and isinstance(before, bytes):
                    after = self._batches_here(before)
                if after is not before:
                    changed[field.name] = after
            return dataclasses.replace(value, **changed) if changed else value
        if isinstance(value, tuple):
            items = tuple(self.in_request(item) for item in value)
            return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
        return value

    def _known(self, name: str, value: Any) -> Any:
        if name in _DRAWN and not isinstance(value, tuple):
            return self._here.get(_kind_of(name), {}).get(value, value)
        return self.in_request(value)

    def _epoch_here(self, producer_id: Any, epoch: Any) -> Any:
        """The epoch here of the recorded ``epoch`` of the recorded ``producer_id``."""
        return self._here.get("producer_epoch", {}).get((producer_id, epoch), (producer_id, epoch))[1]

    def differences(self, api: str, recorded: Any, got: Any) -> Iterator[str]:
        """The differences of a response, in words."""
        if isinstance(got, str):
            yield (
                f"the recording has an answer, here there is none: {got}"
                if got != "no answer"
                else ("the recording has an answer, here there is none")
            )
            return
        if api == "ApiVersions":
            recorded, got = _shared_versions(recorded, got)
        elif api == "Metadata":
            recorded, got = _own_topics(recorded), _own_topics(got)
        yield from self._differences("", recorded, got, is_sorted=api == "Metadata")

    def _differences(self, path: str, recorded: Any, got: Any, *, is_sorted: bool) -> Iterator[str]:
        if dataclasses.is_dataclass(recorded) and type(recorded) is type(got):
            yield from self._of_messages(path, recorded, got, is_sorted=is_sorted)
        elif isinstance(recorded, tuple) and isinstance(got, tuple):
            if len(recorded) != len(got):
                yield f"{path}: {len(recorded)} items in the recording, {len(got)} here"
            for index, pair in enumerate(zip(recorded, got, strict=False)):
                yield from self._differences(f"{path}[{index}]", *pair, is_sorted=is_sorted)
        elif isinstance(recorded, str) and isinstance(got, str):
            if self._text_here(recorded) != got:
                yield f"{path}: {recorded!r} in the recording, {got!r} here"
        elif recorded != got:
            yield f"{path}: {_short(recorded)} in the recording, {_short(got)} here"

    def _of_messages(self, path: str, recorded: Any, got: Any, *, is_sorted: bool) -> Iterator[str]:
        for field in dataclasses.fields(recorded):
            if field.name in _OF_THE_PLACE:
                continue
            where = f"{path}.{field.name}" if path else field.name
            pair = getattr(recorded, field.name), getattr(got, field.name)
            if field.name == "producer_epoch":
                if not self._is_same_epoch(recorded.producer_id, *pair):
                    yield f"{where}: {pair[0]} in the recording, {pair[1]} here"
                continue
            if _is_drawn(field.name, *pair):
                if not self._is_same_drawn(field.name, *pair):
                    yield f"{where}: {_short(pair[0])} in the recording, {_short(pair[1])} here"
                continue
            if field.name == "records":
                for (_, told), (_, here) in zip(*map(_whole_batches, pair), strict=False):
                    self._is_same_epoch(told.producer_id, told.producer_epoch, here.producer_epoch)
                pair = (
                    _without_broker_epochs_and_times(self._batches_here(pair[0])),
                    _without_broker_epochs_and_times(pair[1]),
                )
            elif field.name == "members":
                pair = pair[0], self._in_recorded_order(*pair)
            elif is_sorted:
                pair = _sorted(field.name, pair[0]), _sorted(field.name, pair[1])
            yield from self._differences(where, *pair, is_sorted=is_sorted)

    def _in_recorded_order(self, recorded: Any, got: Any) -> Any:
        """Members in the order of the recording, because their order depends on the hash of random ids."""
        known = self._here.get("member_id", {})
        places = {known.get(each.member_id): place for place, each in enumerate(recorded)}
        return tuple(sorted(got, key=lambda each: places.get(each.member_id, len(places))))

    def _is_same_drawn(self, name: str, recorded: Any, got: Any) -> bool:
        """Does ``got`` correspond to the recorded value? The first pair of values establishes the correspondence."""
        kind = _kind_of(name)
        here, there = self._here.setdefault(kind, {}), self._there.setdefault(kind, {})
        if kind in _NUMBERS_OF_THEIR_OWN:
            here.setdefault(recorded, got)
            return bool((recorded < 0) == (got < 0))
        none = 0 if name == "session_id" else -1 if name == "producer_id" else ""
        if none in (recorded, got):
            return bool(recorded == got)
        return bool(here.setdefault(recorded, got) == got and there.setdefault(got, recorded) == recorded)

    def _is_same_epoch(self, producer_id: int, recorded: int, got: int) -> bool:
        """Does the epoch ``got`` correspond to the one of the recorded ``producer_id``? As in ``_is_same_drawn``."""
        if -1 in (recorded, got):
            return recorded == got
        return self._is_same_drawn("producer_epoch", (producer_id, recorded), (producer_id, got))

    def _batches_here(self, records: Any) -> Any:
        """Record batches with their producer ids and epochs replaced by those of this cluster, and their checksums too."""
        if not isinstance(records, bytes):
            return records
        here = self._here.get("producer_id", {})
        batches = bytearray(records)
        for start, header in _whole_batches(records):
            if header.producer_id in here:
                epoch = self._epoch_here(header.producer_id, header.producer_epoch)
                changed = header._replace(producer_id=here[header.producer_id], producer_epoch=epoch)
                end = start + header.size
                batches[start:end] = frame_batch(changed, records[start + HEADER_BYTES : end])
        return bytes(batches)

    def _text_here(self, text: str) -> str:
        """A recorded text, with member ids replaced by those of this cluster."""
        for recorded, here in self._here.get("member_id", {}).items():
            text = text.replace(recorded, here)
        return text


def _whole_batches(records: Any) -> Iterator[tuple[int, BatchHeader]]:
    """The place and header of each record batch; ends before another format, which has no producer ids, and a cut batch."""
    start = 0
    while isinstance(records, bytes) and start + HEADER_BYTES <= len(records):
        header = read_header(records, start)
        if header.magic != MAGIC or not HEADER_BYTES <= header.size <= len(records) - start:
            break
        yield start, header
        start += header.size


def _kind_of(name: str) -> str:
    """The kind of a random field; fields of one kind share their values."""
    if name in _TIMES:
        return "time"
    return "leader_epoch" if name in _EPOCHS else "member_id" if name == "leader" else name


def _is_drawn(name: str, recorded: object, got: object) -> bool:
    kind = _DRAWN.get(name)
    return kind is not None and isinstance(recorded, kind) and isinstance(got, kind)


def _without_broker_epochs_and_times(records: Any) -> Any:
    """Record batches without what depends on the broker's past and clock: leader epochs, which the checksum does not cover, are
    set to zero, and of batches with the broker's time also that time and the checksum, of markers also the coordinator's epoch.
    """
    if not isinstance(records, bytes):
        return records
    batches, start = bytearray(records), 0
    while start + _MAGIC_BYTE < len(batches):
        end = start + _EPOCH_BYTE + int.from_bytes(batches[start + _LENGTH_BYTE : start + _EPOCH_BYTE])
        if batches[start + _MAGIC_BYTE] == MAGIC:
            batches[start + _EPOCH_BYTE : start + _MAGIC_BYTE] = bytes(_MAGIC_BYTE - _EPOCH_BYTE)
            is_whole = start + HEADER_BYTES <= end <= len(batches)
            if is_whole and batches[start + ATTRIBUTES_BYTE] & (CONTROL | LOG_APPEND_TIME):
                batches[start + 17 : start + 21] = bytes(4)  # the checksum
                batches[start + 27 : start + 43] = bytes(16)  # the first and the largest timestamp
            if is_whole and batches[start + ATTRIBUTES_BYTE] & CONTROL:
                batches[end - 5 : end - 1] = bytes(4)  # the coordinator's epoch, before an empty list of headers
        start = end
    return bytes(batches)


def _sorted(name: str, items: Any) -> Any:
    """``items``, which a broker returns in any order, sorted for comparison."""
    key = _SORTED.get(name)
    if key is None or not isinstance(items, tuple):
        return items

    def place(item: Any) -> tuple[bool, Any]:
        value = getattr(item, key)
        return value is None, value

    return tuple(sorted(items, key=place))


def _own_topics(metadata: m.MetadataResponse) -> m.MetadataResponse:
    """``metadata`` without the topics of coordinators, which are created when they are first needed."""
    return dataclasses.replace(metadata, topics=tuple(each for each in metadata.topics if each.name not in INTERNAL))


def _shared_versions(recorded: m.ApiVersionsResponse, got: m.ApiVersionsResponse) -> tuple[Any, Any]:
    """Both responses with only the APIs that both have, because groupcoord serves fewer APIs and features."""
    both = {each.api_key for each in recorded.api_keys} & {each.api_key for each in got.api_keys}
    pair = []
    for one in (recorded, got):
        keys = tuple(sorted((each for each in one.api_keys if each.api_key in both), key=lambda each: each.api_key))
        pair.append(dataclasses.replace(one, api_keys=keys, supported_features=(), finalized_features=()))
    return pair[0], pair[1]


def _short(value: object) -> str:
    text = re.sub(r"(\\x00){8,}", "…", repr(value))
    return text if len(text) <= 200 else f"{text[:200]}…"
