"""The order of Java's sets, as a real broker showed it."""

from groupcoord.broker.java_order import hash_order


def test_a_set_that_grew() -> None:
    names = ["log.retention.hours", "group.max.size", "num.partitions", "node.id", "offsets.retention.minutes"]
    assert hash_order([*names, "node.id"]) == [
        "log.retention.hours",
        "node.id",
        "num.partitions",
        "group.max.size",
        "offsets.retention.minutes",
    ]
