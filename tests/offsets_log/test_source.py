from groupcoord.offsets_log.source import Fault


def test_a_fault_says_where_it_is() -> None:
    assert str(Fault(3, 7, "the checksum is wrong")) == "__consumer_offsets-3 at offset 7: the checksum is wrong"
    assert str(Fault(3, 7, "torn", "x.log at byte 9")) == "__consumer_offsets-3 at offset 7: torn (x.log at byte 9)"
