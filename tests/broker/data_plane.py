"""A broker on a manual clock, with helpers that produce and fetch."""

import itertools
import struct
import uuid
from typing import Any

from crc32c import crc32c

from groupcoord.broker import topic_and_log_dispatch
from groupcoord.broker.broker import Broker
from groupcoord.broker.broker_registry import BrokerRegistry
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.cluster.replica_fetcher import ReplicaFetcher
from groupcoord.config.broker_config import BrokerConfig
from groupcoord.core.effects import Call, CloseConnection, Effect, NoReply, Reply
from groupcoord.partitioners.java_random import JavaRandom
from groupcoord.protocol.apis import APIS
from groupcoord.protocol.apis.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from groupcoord.protocol.apis.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from groupcoord.protocol.batches.record_batch import HEADER_BYTES, build_batch, read_header
from groupcoord.protocol.batches.records import Record

THEN_MS = 1_700_000_000_000  # the time of records, unless a test says otherwise
NOW_MS = THEN_MS + 60_000  # the clock at the start
_API_OF = {api.request: api for api in APIS.values()}
_BEHIND_CRC = struct.Struct(">hiqqqhii")


def batch(
    *values: bytes | None, key: bytes | None = b"k", at_ms: int = THEN_MS, step_ms: int = 0, **fields: Any
) -> bytes:
    """A batch as a producer builds it; ``step_ms`` from one record to the next."""
    records = [Record(index, at_ms + index * step_ms, key, value) for index, value in enumerate(values)]
    return build_batch(records, **fields)


def patched(data: bytes, *, right_checksum: bool = True, **fields: int) -> bytes:
    """``data`` with other values in its header, as ``BatchHeader`` calls them."""
    header = read_header(data)._replace(**fields)
    body = data[HEADER_BYTES:]
    if right_checksum and "crc" not in fields:
        header = header._replace(crc=crc32c(_BEHIND_CRC.pack(*header[5:]) + body))
    return struct.pack(">qiibIhiqqqhii", *header) + body


class DataPlane:
    """``broker`` and its clock; effects that are not an answer to the last request are kept in ``later``.

    Of several ``brokers``, with ids from node.id on, a request goes to the one it names by ``to``.
    """

    def __init__(self, *, brokers: int = 1, racks: tuple[str, ...] = (), **properties: object) -> None:
        ids, sessions = itertools.count(1), itertools.count(101)
        named = {name.replace("_", "."): value for name, value in properties.items()}
        config = BrokerConfig.of(named)
        self.broker = Broker(
            config,
            new_topic_id=lambda: uuid.UUID(int=next(ids) << 64),
            new_session_id=lambda: next(sessions),
            now_ms=NOW_MS,
            cluster=BrokerRegistry(config.node_id, brokers, racks=racks, random=JavaRandom(1)),
        )
        if brokers > 1:
            self.broker.replicate = ReplicaFetcher(self.broker, lambda _follower, _leader: True).replicate
        self.now_ms = NOW_MS
        self.later: list[Effect] = []
        self._correlation_ids = itertools.count(1)

    def topic(self, name: str, partitions: int = 1, **configs: object) -> uuid.UUID:
        """Create a topic; ``retention_bytes=5`` is ``retention.bytes``. Returns its id."""
        named = {key.replace("_", "."): str(value) for key, value in configs.items()}
        return self.broker.topics.create(name, partitions, named, self.now_ms).topic_id

    def log(self, topic: str, partition: int = 0) -> PartitionLog:
        """A log that must be there."""
        log = self.broker.log(topic, partition)
        assert log is not None
        return log

    def send(
        self, request: Any, version: int, *, client_id: str = "somebody", connection: int = 1, to: int | None = None
    ) -> Call:
        """Send ``request``, to the broker with the id ``to`` or to the first; what comes of it is in ``later``."""
        api = _API_OF[type(request)]
        number = 0 if to is None else self.broker.cluster.ids.index(to)
        call = Call(connection, next(self._correlation_ids), api, version, client_id, "/127.0.0.1", number)
        self.later += topic_and_log_dispatch.handle(self.broker, call, request, self.now_ms)
        return call

    def ask(self, request: Any, version: int, **how: Any) -> Any:
        """The answer to ``request``, which must come at once."""
        call = self.send(request, version, **how)
        answer = self.answer_to(call)
        assert answer is not None, "no answer yet"
        return answer

    def answer_to(self, call: Call) -> Any:
        """The answer to ``call``, or None if there is none yet. It is taken out of ``later``."""
        for effect in self.later:
            if isinstance(effect, Reply | NoReply | CloseConnection) and effect.call == call:
                self.later.remove(effect)
                return effect.response if isinstance(effect, Reply) else effect
        return None

    def wait(self, duration_ms: int) -> None:
        """Move the clock, firing what falls due on the way at its own time."""
        end_ms = self.now_ms + duration_ms
        while (deadline := self.broker.next_deadline()) is not None and deadline <= end_ms:
            self.now_ms = max(self.now_ms, deadline)
            self.later += self.broker.expire(self.now_ms)
        self.now_ms = end_ms

    def produce(self, topic: str, *batches: bytes | None, version: int = 12, acks: int = 1, **how: Any) -> Any:
        """The answer to a Produce of one batch to each partition from 0 on."""
        return self.ask(produce_request(self, topic, dict(enumerate(batches)), version, acks), version, **how)

    def produced(self, topic: str, data: bytes, partition: int = 0, **how: Any) -> PartitionProduceResponse:
        """What became of one batch for one partition."""
        version = how.pop("version", 12)
        response: ProduceResponse = self.ask(
            produce_request(self, topic, {partition: data}, version, how.pop("acks", 1)), version, **how
        )
        ((outcome,),) = (answer.partition_responses for answer in response.responses)
        return outcome

    def fetch(self, *topics: FetchTopic, version: int = 12, to: int | None = None, **fields: Any) -> FetchResponse:
        """The answer to a Fetch that does not wait."""
        response: FetchResponse = self.ask(fetch_request(*topics, **fields), version, to=to)
        return response

    def fetched(self, topic: str, offset: int, partition: int = 0, **fields: Any) -> PartitionData:
        """What a Fetch of one partition brings."""
        response = self.fetch(reading(topic, wanting(offset, partition)), **fields)
        ((data,),) = (answer.partitions for answer in response.responses)
        return data


def produce_request(
    plane: DataPlane, topic: str, batches: dict[int, bytes | None], version: int = 12, acks: int = 1, **fields: Any
) -> ProduceRequest:
    """A Produce to partitions of one topic, named as ``version`` names it."""
    data = tuple(PartitionProduceData(index=index, records=records) for index, records in batches.items())
    return ProduceRequest(
        acks=acks,
        timeout_ms=1_000,
        topic_data=(
            TopicProduceData(name=topic, partition_data=data)
            if version < 13
            else TopicProduceData(topic_id=plane.broker.topics.topic_id(topic), partition_data=data),
        ),
        **fields,
    )


def wanting(offset: int, partition: int = 0, max_bytes: int = 1 << 20, **fields: Any) -> FetchPartition:
    """One partition of a Fetch."""
    return FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes, **fields)


def reading(topic: str | uuid.UUID | None, *partitions: FetchPartition) -> FetchTopic:
    """One topic of a Fetch, by name or by id."""
    if isinstance(topic, str):
        return FetchTopic(topic=topic, partitions=partitions)
    return FetchTopic(topic_id=topic, partitions=partitions)


def fetch_request(*topics: FetchTopic, wait_ms: int = 0, min_bytes: int = 1, **fields: Any) -> FetchRequest:
    """A Fetch; it does not wait unless ``wait_ms`` says so."""
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=min_bytes, topics=topics, **fields)
