import pytest

from groupcoord.broker.topic_and_log_dispatch import HANDLERS, handle
from groupcoord.cluster.controller_dispatch import CONTROLLER_HANDLERS
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call, LogRecord
from groupcoord.core.events import AdminAction
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.batches.record_batch import BatchError, records_in
from groupcoord.protocol.errors import ErrorCode
from tests.broker.data_plane import NOW_MS, DataPlane, fetch_request, reading, wanting

GROUP_APIS = {
    ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP, ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP, ApiKey.SYNC_GROUP, ApiKey.DESCRIBE_GROUPS, ApiKey.LIST_GROUPS, ApiKey.DELETE_GROUPS,
    ApiKey.OFFSET_DELETE, ApiKey.API_VERSIONS, ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE,
}  # fmt: skip
TRANSACTION_APIS = {
    ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN, ApiKey.WRITE_TXN_MARKERS,
    ApiKey.TXN_OFFSET_COMMIT, ApiKey.DESCRIBE_TRANSACTIONS, ApiKey.LIST_TRANSACTIONS,
}  # fmt: skip


def test_every_api_that_is_of_no_coordinator_has_a_handler() -> None:
    of_the_controller = {ApiKey.UPDATE_FEATURES, *CONTROLLER_HANDLERS}
    assert set(HANDLERS) == set(APIS) - GROUP_APIS - TRANSACTION_APIS - of_the_controller


def test_any_other_is_somebody_elses() -> None:
    call = Call(1, 1, APIS[ApiKey.HEARTBEAT], 4, "c", "/127.0.0.1")
    with pytest.raises(KeyError):
        handle(DataPlane().broker, call, None, NOW_MS)


def test_a_log_is_found_by_topic_and_partition() -> None:
    plane = DataPlane()
    plane.topic("orders", 2)
    assert plane.log("orders", 1).name == "orders-1"
    assert [plane.broker.log("orders", index) for index in (2, -1)] == [None, None]
    assert plane.broker.log("nothing", 0) is None


def test_the_node_appends_records_of_its_own() -> None:
    plane = DataPlane()
    plane.topic("__consumer_offsets", 2, cleanup_policy="compact")
    records = (LogRecord(key=b"k", value=b"v"), LogRecord(key=b"k", value=None))
    assert plane.broker.append_to("__consumer_offsets", 1, records, NOW_MS) == []
    data = bytes(plane.fetched("__consumer_offsets", 0, 1).records or b"")
    assert [(record.key, record.value) for record in records_in(data)] == [(b"k", b"v"), (b"k", None)]
    assert plane.broker.next_deadline() is not None


def test_which_wakes_who_waits_for_them() -> None:
    plane = DataPlane()
    plane.topic("__consumer_offsets")
    call = plane.send(fetch_request(reading("__consumer_offsets", wanting(0)), wait_ms=500), 12)
    plane.later += plane.broker.append_to("__consumer_offsets", 0, (LogRecord(key=b"k", value=b"v"),), NOW_MS)
    assert plane.answer_to(call) is not None


def test_records_that_do_not_fit_are_refused() -> None:
    plane = DataPlane()
    plane.topic("__consumer_offsets", max_message_bytes=100)
    with pytest.raises(BatchError) as refusal:
        plane.broker.append_to("__consumer_offsets", 0, (LogRecord(key=b"k", value=bytes(200)),), NOW_MS)
    assert refusal.value.error == ErrorCode.MESSAGE_TOO_LARGE
    with pytest.raises(KeyError, match="__consumer_offsets-1"):
        plane.broker.append_to("__consumer_offsets", 1, (), NOW_MS)


def test_whoever_wants_to_know_is_told_which_topics_go() -> None:
    plane = DataPlane()
    told: list[str] = []
    plane.topic("orders")
    topic = plane.broker.topics.delete("orders")
    ctx = HandlerContext(NOW_MS, AdminAction("a test"))
    plane.broker.topics_deleted(ctx, [topic])
    plane.broker.on_topics_deleted = lambda _turn, topics: told.extend(gone.name for gone in topics)
    plane.broker.topics_deleted(ctx, [topic])
    assert told == ["orders"]
