import base64
import json

from groupcoord.broker.topic_names import TRANSACTION_STATE
from groupcoord.coordinator.transaction.metadata import TransactionState
from groupcoord.offsets_log.entries import (
    CoordinatorRecord,
    EntryFilter,
    LogEntry,
    ProducerIdAndEpoch,
    TransactionMarker,
    entries,
    entry_json,
    entry_text,
    raw_records,
    time_text,
    unreadable_json,
)
from groupcoord.offsets_log.log_source import Batch, UnreadableData
from groupcoord.offsets_log.segment_dir_source import SegmentDirSource
from groupcoord.protocol.batches.record_batch import build_batch, read_header, records_of
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.consumer_protocol import ConsumerProtocolSubscription, TopicPartition, write_subscription
from groupcoord.protocol.coordinator_records import transaction_log
from groupcoord.protocol.coordinator_records.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    write_key,
    write_value,
)
from groupcoord.protocol.coordinator_records.record_formatting import parse_key, parse_value
from groupcoord.protocol.coordinator_records.transaction_log import PartitionsOfTopic, TransactionLogValue
from tests.offsets_log.recorded import KAFKA_FILES
from tests.offsets_log.test_entries import said


def test_a_commit_is_one_line() -> None:
    (entry,) = [entry for entry in said("4.3.1", 2) if entry.group == "simple"]
    assert entry_text(entry) == (
        '  2        9  2026-11-21T18:52:08.499Z  OffsetCommit group="simple" topic="orders" partition=0 = '
        'v4 offset=5 leaderEpoch=-1 metadata="by hand\\u0000" commitTimestamp=2026-11-21T18:52:08.498Z '
        "topicId=GXDKqs5DQyCapCjeYWm5tA"
    )


def test_transactions_and_tombstones_are_told() -> None:
    told = [entry_text(entry).split("Z  ", 1)[1] for entry in said("3.9.2", 2)]
    assert told[1].endswith(" [transaction of producer 1, epoch 0]")
    assert told[3] == "commit of the transaction of producer 1, epoch 0"
    assert told[-1] == 'OffsetCommit group="gone" topic="orders" partition=1 = tombstone'


def test_json_has_keys_and_values_as_kafka_says_them() -> None:
    (entry,) = [entry for entry in said("4.3.1", 2) if entry.group == "simple"]
    assert entry_json(entry) == {
        "partition": 2,
        "offset": 9,
        "timestamp": 1795287128499,
        "time": "2026-11-21T18:52:08.499Z",
        "kind": "OffsetCommit",
        "version": 4,
        "tombstone": False,
        "key": {"type": 1, "data": {"group": "simple", "topic": "orders", "partition": 0}},
        "value": {
            "version": 4,
            "data": {
                "offset": 5,
                "leaderEpoch": -1,
                "metadata": "by hand\0",
                "commitTimestamp": 1795287128498,
                "topicId": "GXDKqs5DQyCapCjeYWm5tA",
            },
        },
    }


def test_json_tells_of_transactions_and_tombstones() -> None:
    told = [entry_json(entry) for entry in said("4.3.1", 2)]
    assert told[2]["transaction"] == {"producerId": 1, "producerEpoch": 0}
    marker = told[4]
    assert (marker["kind"], marker["marker"], marker["coordinatorEpoch"]) == ("TransactionMarker", "commit", 0)
    assert "key" not in marker
    assert (told[-1]["tombstone"], told[-1]["version"], told[-1]["value"]) == (True, None, None)
    json.dumps(told)


def test_what_members_say_is_taken_apart() -> None:
    (told,) = [
        entry_json(entry)["value"]["data"]
        for entry in said("4.3.1", 1)
        if entry.offset == 1 and entry.group == "billing"
    ]
    (member,) = told["members"]
    assert member["groupInstanceId"] == "till-1"
    assert member["subscription"] == {
        "version": 3,
        "topics": ["orders"],
        "userData": "",
        "ownedPartitions": [],
        "generationId": -1,
        "rackId": "",
    }
    assert member["assignment"] == {
        "version": 0,
        "assignedPartitions": [{"topic": "orders", "partitions": [0, 1]}],
        "userData": "",
    }


def generation(protocol_type: str, subscription: bytes, assignment: bytes = b"") -> list[dict[str, object]]:
    member = MemberMetadata(
        member_id="m",
        client_id="c",
        client_host="/h",
        session_timeout_ms=1,
        subscription=subscription,
        assignment=assignment,
    )
    value = GroupMetadataValue(protocol_type=protocol_type, generation=1, protocol="p", leader="m", members=(member,))
    key = parse_key(write_key(GroupMetadataKey(group="g")))
    entry = LogEntry(0, 0, 0, CoordinatorRecord(key, parse_value(key.record_type, write_value(value, 3))), None)
    members: list[dict[str, object]] = entry_json(entry)["value"]["data"]["members"]
    return members


def test_what_is_no_consumers_language_stays_base64() -> None:
    said_nothing = write_subscription(
        ConsumerProtocolSubscription(version=1, owned_partitions=(TopicPartition(topic="t", partitions=(3,)),))
    )
    assert generation("consumer", said_nothing)[0]["subscription"] == {
        "version": 1,
        "topics": [],
        "userData": None,
        "ownedPartitions": [{"topic": "t", "partitions": [3]}],
        "generationId": -1,
        "rackId": None,
    }
    assert generation("consumer", b"\xff")[0]["subscription"] == "/w=="
    assert generation("consumer", b"")[0]["assignment"] == ""
    assert generation("connect", b"\x00\x00")[0]["subscription"] == "AAA="


def test_times_that_no_calendar_has_are_numbers() -> None:
    assert time_text(0) == "1970-01-01T00:00:00.000Z"
    assert time_text(1 << 62) == str(1 << 62)


def test_a_fault_is_an_object_too() -> None:
    assert unreadable_json(UnreadableData(1, 2, "why")) == {"partition": 1, "offset": 2, "error": "why"}
    assert unreadable_json(UnreadableData(1, 2, "why", "where"))["place"] == "where"


def test_a_marker_alone_is_told() -> None:
    entry = LogEntry(0, 7, 0, TransactionMarker("abort", 3), ProducerIdAndEpoch(8, 1))
    assert entry_text(entry).endswith("abort of the transaction of producer 8, epoch 1")


EVERYTHING = EntryFilter()


def test_keys_and_values_are_the_bytes_of_the_log() -> None:
    for batch in SegmentDirSource(KAFKA_FILES / "4.3.1").read(1):
        assert isinstance(batch, Batch)
        for line, record in zip(raw_records(batch, EVERYTHING), records_of(batch.data, batch.header), strict=True):
            assert isinstance(line, dict)
            assert (line["partition"], line["offset"], line["timestamp"]) == (1, record.offset, record.timestamp_ms)
            assert base64.b64decode(line["key"]) == record.key
            assert line["value"] == (None if record.value is None else base64.b64encode(record.value).decode())


def test_of_transactions_the_ends_are_there_whatever_is_wanted() -> None:
    def lines(wanted: EntryFilter) -> list[dict[str, object]]:
        batches = [batch for batch in SegmentDirSource(KAFKA_FILES / "4.3.1").read(2) if isinstance(batch, Batch)]
        return [line for batch in batches for line in raw_records(batch, wanted) if isinstance(line, dict)]

    of_producer = [line for line in lines(EVERYTHING) if "transaction" in line]
    assert {str(line["transaction"]) for line in of_producer} == {"{'producerId': 1, 'producerEpoch': 0}"}
    ends = [line for line in of_producer if "marker" in line]
    assert [line["marker"] for line in ends] == ["commit", "abort"]
    assert not any("key" in line for line in ends)
    assert lines(EntryFilter(groups=["nobody"])) == ends
    assert len(lines(EntryFilter(groups=["payments"]))) > len(ends)


def transaction_state(*records: tuple[bytes, bytes | None]) -> list[LogEntry | UnreadableData]:
    """The entries of records of ``__transaction_state``."""
    data = build_batch([Record(offset, 9, *each) for offset, each in enumerate(records)])
    return list(entries(Batch(7, 0, read_header(data), data, TRANSACTION_STATE)))


ONGOING = TransactionLogValue(
    producer_id=4000,
    producer_epoch=3,
    timeout_ms=60_000,
    status=1,
    partitions=(PartitionsOfTopic(topic="orders", partition_ids=(0, 2)),),
    last_update_timestamp_ms=1_795_287_128_499,
    start_timestamp_ms=-1,
    client_transaction_version=2,
)


def test_a_transaction_is_one_line_with_its_state_in_words() -> None:
    key = transaction_log.write_key("billing")
    written, gone = transaction_state((key, transaction_log.write_value(ONGOING, 1)), (key, None))
    assert isinstance(written, LogEntry)
    assert isinstance(gone, LogEntry)
    assert entry_text(written) == (
        '  7        0  1970-01-01T00:00:00.009Z  TransactionLog transactionalId="billing" = v1 producerId=4000 producerEpoch=3 '
        'transactionTimeoutMs=60000 transactionStatus=Ongoing transactionPartitions=[{topic="orders" partitionIds=[0, 2]}] '
        "transactionLastUpdateTimestampMs=2026-11-21T18:52:08.499Z transactionStartTimestampMs=-1 clientTransactionVersion=2"
    )
    assert entry_text(gone).endswith('TransactionLog transactionalId="billing" = tombstone')
    assert (written.kind, written.group) == ("TransactionLog", None)


def test_a_transaction_as_json_has_the_numbers_of_kafka() -> None:
    (entry,) = transaction_state((transaction_log.write_key("x"), transaction_log.write_value(ONGOING, 0)))
    assert isinstance(entry, LogEntry)
    told = entry_json(entry)
    assert told["key"] == {"type": 0, "data": {"transactionalId": "x"}}
    assert told["value"] == {
        "version": 0,
        "data": {
            "producerId": 4000,
            "producerEpoch": 3,
            "transactionTimeoutMs": 60_000,
            "transactionStatus": 1,
            "transactionPartitions": [{"topic": "orders", "partitionIds": [0, 2]}],
            "transactionLastUpdateTimestampMs": 1_795_287_128_499,
            "transactionStartTimestampMs": -1,
        },
    }


def test_what_is_no_record_of_a_transaction_is_told_with_its_topic() -> None:
    (fault,) = transaction_state((b"\0\1\0\0", None))
    assert (
        str(fault) == "__transaction_state-7 at offset 0: the record cannot be read: "
        "key, field kind, offset 0: there is no record type 1"
    )


def test_the_states_in_the_log_are_those_of_the_coordinator() -> None:
    assert tuple(state.value for state in TransactionState) == transaction_log.STATES


def test_what_cannot_be_read_is_there_if_all_is_wanted() -> None:
    data = build_batch([Record(5, 9, b"nonsense", None)])
    batch = Batch(1, 0, read_header(data), data)
    assert list(raw_records(batch, EVERYTHING)) == [
        {"partition": 1, "offset": 5, "timestamp": 9, "key": "bm9uc2Vuc2U=", "value": None}
    ]
    assert list(raw_records(batch, EntryFilter(groups=["g"]))) == []


def test_a_batch_that_cannot_be_unpacked_is_a_fault() -> None:
    data = bytearray(build_batch([Record(5, 9, b"key", b"value")], attributes=1))
    data[-1] ^= 255
    data[-12] ^= 255
    (fault,) = raw_records(Batch(1, 0, read_header(bytes(data)), bytes(data)), EVERYTHING)
    assert isinstance(fault, UnreadableData)
    assert (fault.partition, fault.offset) == (1, 5)
    assert fault.reason.startswith("the records of the batch cannot be read: ")
