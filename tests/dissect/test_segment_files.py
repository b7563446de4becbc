"""Files of segments, dissected."""

from groupcoord.dissect.segment_files import dissect_index, dissect_log
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record

BATCH = build_batch([Record(0, 0, b"\x00\x02\x00\x01g", None)])


def test_a_log_is_dissected_batch_by_batch() -> None:
    found = list(dissect_log(BATCH * 2, "__consumer_offsets"))
    assert [position for position, _ in found] == [0, len(BATCH)]
    for _, dissection in found:
        assert dissection.problem is None
        assert dissection.fields[-3].path == "batches[0].records[0].key.group"


def test_what_is_behind_the_last_batch_is_said() -> None:
    (_, whole), (position, cut) = dissect_log(BATCH + BATCH[:-1], None)
    assert whole.problem is None
    assert (position, cut.problem) == (len(BATCH), (0, f"the batch continues after these {len(BATCH) - 1} bytes"))
    ((_, garbage),) = dissect_log(b"\xff" * 20, None)
    assert garbage.problem is not None
    assert list(dissect_log(b"", None)) == []


def test_an_offset_index_says_where_offsets_are() -> None:
    dissection = dissect_index(bytes.fromhex("00000005 00001000 00000009 00002000") + bytes(16), ".index", 100)
    assert dissection.title == ".index file of the segment at offset 100"
    assert [(field.path, field.value, field.meaning) for field in dissection.fields] == [
        ("entries[0].relative_offset", 5, "offset 105"),
        ("entries[0].position", 4096, "bytes from the start of the .log file"),
        ("entries[1].relative_offset", 9, "offset 109"),
        ("entries[1].position", 8192, "bytes from the start of the .log file"),
        ("unused", 16, "zeros, for entries to come"),
    ]


def test_a_time_index_says_which_offset_a_time_is_at() -> None:
    dissection = dissect_index(bytes.fromhex("0000018bcfe56800 00000002"), ".timeindex", 0)
    assert [field.meaning for field in dissection.fields] == ["2023-11-14T22:13:20.000Z", "offset 2"]


def test_an_index_of_transactions_is_read() -> None:
    dissection = dissect_index(bytes(2) + bytes(7) + b"\x07" + bytes(24), ".txnindex", 0)
    assert [field.path for field in dissection.fields][1] == "entries[0].producer_id"
    assert dissection.fields[1].value == 7
    assert dissection.problem is None


def test_an_entry_that_is_cut_is_said() -> None:
    dissection = dissect_index(bytes.fromhex("00000005 00001000 00000009 0000"), ".index", 0)
    assert dissection.problem == (12, "entries[1].position: 4 bytes do not fit in the 2 that are left")
