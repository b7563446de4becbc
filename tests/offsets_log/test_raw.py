"""Records as they are: what is read back from them is what was in the log."""

import base64

from groupcoord.offsets_log.entries import Filter
from groupcoord.offsets_log.folders import Folders
from groupcoord.offsets_log.raw import raw
from groupcoord.offsets_log.source import Batch, Fault
from groupcoord.protocol.batches.record_batch import build_batch, read_header, records_of
from groupcoord.protocol.batches.records import Record
from tests.offsets_log.recorded import KAFKA_FILES

EVERYTHING = Filter()


def test_keys_and_values_are_the_bytes_of_the_log() -> None:
    for batch in Folders(KAFKA_FILES / "4.3.1").read(1):
        assert isinstance(batch, Batch)
        for line, record in zip(raw(batch, EVERYTHING), records_of(batch.data, batch.header), strict=True):
            assert isinstance(line, dict)
            assert (line["partition"], line["offset"], line["timestamp"]) == (1, record.offset, record.timestamp_ms)
            assert base64.b64decode(line["key"]) == record.key
            assert line["value"] == (None if record.value is None else base64.b64encode(record.value).decode())


def test_of_transactions_the_ends_are_there_whatever_is_wanted() -> None:
    def lines(wanted: Filter) -> list[dict[str, object]]:
        batches = [batch for batch in Folders(KAFKA_FILES / "4.3.1").read(2) if isinstance(batch, Batch)]
        return [line for batch in batches for line in raw(batch, wanted) if isinstance(line, dict)]

    of_producer = [line for line in lines(EVERYTHING) if "transaction" in line]
    assert {str(line["transaction"]) for line in of_producer} == {"{'producerId': 1, 'producerEpoch': 0}"}
    ends = [line for line in of_producer if "marker" in line]
    assert [line["marker"] for line in ends] == ["commit", "abort"]
    assert not any("key" in line for line in ends)
    assert lines(Filter(groups=["nobody"])) == ends
    assert len(lines(Filter(groups=["payments"]))) > len(ends)


def test_what_cannot_be_read_is_there_if_all_is_wanted() -> None:
    data = build_batch([Record(5, 9, b"nonsense", None)])
    batch = Batch(1, 0, read_header(data), data)
    assert list(raw(batch, EVERYTHING)) == [
        {"partition": 1, "offset": 5, "timestamp": 9, "key": "bm9uc2Vuc2U=", "value": None}
    ]
    assert list(raw(batch, Filter(groups=["g"]))) == []


def test_a_batch_that_cannot_be_unpacked_is_a_fault() -> None:
    data = bytearray(build_batch([Record(5, 9, b"key", b"value")], attributes=1))
    data[-1] ^= 255
    data[-12] ^= 255
    (fault,) = raw(Batch(1, 0, read_header(bytes(data)), bytes(data)), EVERYTHING)
    assert isinstance(fault, Fault)
    assert (fault.partition, fault.offset) == (1, 5)
    assert fault.reason.startswith("the records of the batch cannot be read: ")
