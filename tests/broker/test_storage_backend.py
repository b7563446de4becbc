"""A broker tells its storage what is to be kept before it counts as done, and one that forgets costs nothing."""

import uuid
from collections.abc import Mapping, Sequence

import pytest

from groupcoord.broker.leader_election_and_isr import PartitionState
from groupcoord.broker.log_segment import LogSegment
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.storage_backend import IN_MEMORY_LOG_BACKEND, IN_MEMORY_STORAGE, StorageBackend
from groupcoord.broker.topic_config import LogConfig
from groupcoord.broker.topic_store import TopicStore
from groupcoord.config.broker_config import BrokerConfig, ConfigResource
from groupcoord.core.api_error import ApiError
from groupcoord.protocol.apis.init_producer_id import InitProducerIdRequest
from groupcoord.protocol.batches.record_batch import BatchError, read_header
from groupcoord.protocol.errors import ErrorCode
from tests.broker.data_plane import NOW_MS, DataPlane, batch

TOPIC = uuid.UUID(int=7)


def test_one_that_forgets() -> None:
    storage = StorageBackend()
    storage.topic_created("a", TOPIC, [PartitionState((1,), (1,), 1)], {}, NOW_MS)
    storage.partitions_added(TOPIC, [PartitionState((1,), (1,), 1)])
    storage.partition_changed(TOPIC, 0, PartitionState((1,), (1,), 1))
    storage.topic_configured(TOPIC, {})
    storage.resource_configured(ConfigResource(4, ""), {})
    storage.producer_ids_reserved(1000)
    storage.topic_deleted(TOPIC)
    storage.checkpoint()
    storage.broker_ended(1, in_order=False, lost_disk=False)
    assert storage.unclean_brokers() == frozenset()
    assert (storage.in_memory, storage.next_producer_id(), list(storage.recovered_topics())) == (True, 0, [])
    assert storage.log("a", 0, 1) is IN_MEMORY_LOG_BACKEND
    assert not IN_MEMORY_LOG_BACKEND.flush_if_due(PartitionLog(LogConfig()), NOW_MS)


def test_cleaned_segments_in_memory_are_what_they_are() -> None:
    plane = DataPlane()
    plane.topic("a", internal_segment_bytes=100)
    log = plane.log("a")
    for value in (b"1", b"2", b"3"):
        log.append(batch(value), NOW_MS)
    kept = LogSegment(0, NOW_MS)
    data = (1).to_bytes(8) + batch(b"2")[8:]
    kept.append(data, read_header(data), NOW_MS)
    last = log.segments[-1]
    log.replace_segments(log.segments[:2], [kept])
    assert list(log.segments) == [kept, last]
    assert read_header(log.read(0, 1 << 20, at_least_one=True).data()).base_offset == 1


_FULL = BatchError(ErrorCode.KAFKA_STORAGE_ERROR, "full")


class FullDisk(StorageBackend):
    """Keeps nothing, and says so."""

    def producer_ids_reserved(self, _end: int) -> None:
        raise _FULL

    def partitions_added(self, _topic_id: uuid.UUID, _partitions: Sequence[PartitionState]) -> None:
        raise _FULL

    def topic_configured(self, _topic_id: uuid.UUID, _configs: Mapping[str, str]) -> None:
        raise _FULL

    def topic_deleted(self, _topic_id: uuid.UUID) -> None:
        raise _FULL

    def topic_created(
        self,
        name: str,
        _topic_id: uuid.UUID,
        _partitions: Sequence[PartitionState],
        _configs: Mapping[str, str],
        _created_ms: int,
    ) -> None:
        if name == "new":
            raise _FULL


def test_what_cannot_be_kept_is_refused_and_nothing_has_changed() -> None:
    store = TopicStore(BrokerConfig.of(), new_topic_id=uuid.uuid4, storage=FullDisk())
    topic = store.create("old", 1, {}, NOW_MS)
    with pytest.raises(ApiError, match="full") as caught:
        store.create("new", 1, {}, NOW_MS)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(ApiError, match="full"):
        store.delete("old")
    with pytest.raises(ApiError, match="full"):
        topic.add_partitions(1)
    with pytest.raises(ApiError, match="full"):
        topic.configure({"retention.ms": "5"}, BrokerConfig.of())
    topic.configure({}, BrokerConfig.of())
    assert ([one.name for one in store], len(topic.partitions), topic.metadata.configs) == (["old"], 1, {})


def test_a_producer_gets_no_id_that_could_come_twice() -> None:
    plane = DataPlane()
    plane.broker.storage = FullDisk()
    response = plane.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0), 5)
    assert (response.error_code, response.producer_id) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
    plane.broker.storage = IN_MEMORY_STORAGE
    assert plane.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0), 5).producer_id == 0
