"""The table of records."""

from groupcoord.protocol.coordinator_records.schemas import RECORD_TYPES


def test_the_kinds_are_those_of_kafka() -> None:
    assert {number: kind.name for number, kind in RECORD_TYPES.items()} == {
        0: "LegacyOffsetCommit",
        1: "OffsetCommit",
        2: "GroupMetadata",
        3: "ConsumerGroupMetadata",
        4: "ConsumerGroupPartitionMetadata",
        5: "ConsumerGroupMemberMetadata",
        6: "ConsumerGroupTargetAssignmentMetadata",
        7: "ConsumerGroupTargetAssignmentMember",
        8: "ConsumerGroupCurrentMemberAssignment",
        10: "ShareGroupMemberMetadata",
        11: "ShareGroupMetadata",
        12: "ShareGroupTargetAssignmentMetadata",
        13: "ShareGroupTargetAssignmentMember",
        14: "ShareGroupCurrentMemberAssignment",
        15: "ShareGroupStatePartitionMetadata",
        16: "ConsumerGroupRegularExpression",
        17: "StreamsGroupMetadata",
        19: "StreamsGroupMemberMetadata",
        20: "StreamsGroupTargetAssignmentMetadata",
        21: "StreamsGroupTargetAssignmentMember",
        22: "StreamsGroupCurrentMemberAssignment",
        23: "StreamsGroupTopology",
    }


def test_only_offsets_and_classic_groups_have_values_of_several_versions() -> None:
    assert {kind.name: kind.versions for kind in RECORD_TYPES.values() if kind.versions != range(1)} == {
        "OffsetCommit": range(5),
        "GroupMetadata": range(5),
    }


def test_what_a_version_lacks_is_not_in_its_layout() -> None:
    names = [[column.name for column in RECORD_TYPES[1].value.layout(version).columns] for version in range(5)]
    assert names == [
        ["offset", "metadata", "commitTimestamp"],
        ["offset", "metadata", "commitTimestamp", "expireTimestamp"],
        ["offset", "metadata", "commitTimestamp"],
        ["offset", "leaderEpoch", "metadata", "commitTimestamp"],
        ["offset", "leaderEpoch", "metadata", "commitTimestamp", "topicId"],
    ]


def test_keys_are_never_flexible_and_new_values_are() -> None:
    for kind in RECORD_TYPES.values():
        assert not kind.key.layout(0).flexible
        flexible = [kind.value.layout(version).flexible for version in kind.versions]
        assert flexible == [False] if kind.number == 0 else flexible[-1]
