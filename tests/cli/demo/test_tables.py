from groupcoord.cli.demo import output as view
from groupcoord.cli.demo.output import OwnersHistory
from groupcoord.offsets_log import compaction_preview as texts
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.consumer_protocol import ConsumerProtocolAssignment, TopicPartition, write_assignment
from groupcoord.protocol.coordinator_records.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    write_key,
    write_value,
)
from tests.cli.demo.support import GROUP, TOPIC, shown


def history() -> OwnersHistory:
    made = OwnersHistory("orders", 3)
    made.add(1, "sticky", {0: "kafka-python", 1: "kafka-python", 2: "kafka-python"})
    made.add(2, "range", {0: "confluent", 1: "kafka-python", 2: "kafka-python"})
    return made


def test_what_has_another_owner_than_before_has_moved() -> None:
    first, second = history().generations
    assert (first.moved, second.moved) == (frozenset(), frozenset({0}))


def test_what_had_no_owner_before_has_not_moved() -> None:
    made = OwnersHistory("orders", 2)
    made.add(1, "range", {0: "confluent"})
    assert made.add(2, "range", {0: "confluent", 1: "confluent"}).moved == frozenset()


def test_generations_go_down_and_partitions_across() -> None:
    assert shown(history().table(100)) == [
        "gen   orders-0       orders-1       orders-2",
        "────────────────────────────────────────────────",
        "  1   kafka-python   kafka-python   kafka-python",
        "  2  →confluent      kafka-python   kafka-python",
    ]


def test_a_partition_without_an_owner_is_nobodys() -> None:
    made = OwnersHistory("orders", 2)
    made.add(4, "range", {1: "aiokafka"})
    assert shown(made.table(100))[-1] == "  4   nobody         aiokafka"


def test_a_narrow_screen_gets_a_narrow_table() -> None:
    assert shown(history().table(50)) == [
        "gen   partitions of orders",
        "───────────────────────────────────────",
        "  1   kafka-python: 0 1 2",
        "  2   confluent: →0   kafka-python: 1 2",
    ]


Entry = tuple[bytes | None, bytes | None]


def log(*entries: Entry) -> list[Record]:
    return [Record(offset, 0, key, value) for offset, (key, value) in enumerate(entries)]


def commit(partition: int, offset: int | None, group: str = GROUP, metadata: str = "") -> Entry:
    value = None
    if offset is not None:
        value = write_value(OffsetCommitValue(offset=offset, metadata=metadata, commit_timestamp_ms=0), 4)
    return write_key(OffsetCommitKey(group=group, topic=TOPIC, partition=partition)), value


def generation(number: int, protocol: str | None = None, **owners: dict[str, tuple[int, ...]] | None) -> Entry:
    members = tuple(
        MemberMetadata(
            member_id=f"{name}-1",
            client_id=name,
            client_host="/127.0.0.1",
            session_timeout_ms=1,
            subscription=b"",
            assignment=b"" if owned is None else assignment(owned),
        )
        for name, owned in owners.items()
    )
    value = GroupMetadataValue(
        protocol_type="consumer", generation=number, protocol=protocol, leader=None, members=members
    )
    return write_key(GroupMetadataKey(group=GROUP)), write_value(value, 3)


def assignment(owned: dict[str, tuple[int, ...]]) -> bytes:
    topics = tuple(TopicPartition(topic=topic, partitions=numbers) for topic, numbers in owned.items())
    return write_assignment(ConsumerProtocolAssignment(version=0, assigned_partitions=topics))


LOG = log(
    generation(0),
    generation(1, "range", confluent={TOPIC: (0, 1)}),
    commit(1, 3),
    commit(0, 2),
    commit(1, 5),
    generation(2),
    commit(0, 7),
)


def test_before_compaction_each_key_has_all_its_values() -> None:
    assert shown(view.before_compaction(LOG)) == [
        "key                records   values, oldest first",
        "────────────────────────────────────────────────────────",
        "billing                  3   gen 0, no members",
        "                             gen 1, range: confluent 0 1",
        "                             gen 2, no members",
        "billing orders-0         2   2 → 7",
        "billing orders-1         2   3 → 5",
    ]


def test_of_many_commits_the_first_and_the_last_are_listed() -> None:
    lines = shown(view.before_compaction(log(*(commit(0, number) for number in range(14)))))
    assert lines[-1] == "billing orders-0        14   0 → 1 → 2 → 3 → 4 → 5 → … → 8 → 9 → 10 → 11 → 12 → 13"


def test_after_compaction_each_key_has_its_last_value_at_its_offset() -> None:
    assert shown(view.after_compaction(LOG)) == [
        "at offset   key                value",
        "───────────────────────────────────────────────────────────",
        "        4   billing orders-1   5 is the next offset to read",
        "        5   billing            gen 2, no members",
        "        6   billing orders-0   7 is the next offset to read",
    ]


def test_the_strips_stand_record_below_record() -> None:
    assert shown(view.compaction_strips(LOG)) == ["before  GG101G0", "after   ····1G0"]


def test_a_long_log_has_more_than_one_strip() -> None:
    lines = shown(view.compaction_strips(log(*(commit(0, number) for number in range(texts.STRIP + 2)))))
    assert lines == [f"before  {'0' * texts.STRIP}", f"after   {'·' * texts.STRIP}", "before  00", "after   ·0"]


def test_a_tombstone_is_called_by_its_name() -> None:
    assert shown(view.after_compaction(log(commit(0, 1), commit(0, None))))[-1].split("   ")[-1] == "tombstone"


def test_metadata_of_a_commit_is_shown() -> None:
    (record,) = log(commit(0, 1, metadata="batch 7"))
    assert texts.value_text(record) == "1 is the next offset to read, with metadata 'batch 7'"


def test_members_may_own_nothing_or_parts_of_several_topics() -> None:
    (record,) = log(generation(3, "range", confluent={TOPIC: (0,), "refunds": (1, 2)}, aiokafka={}, late=None))
    assert texts.short_value(record) == "gen 3, range: confluent orders 0, refunds 1 2; aiokafka nothing; late nothing"


def test_records_of_other_groups_and_other_kinds_are_left_out() -> None:
    unknown = (b"\x00\x03whatever", b"")
    records = log(commit(0, 1), commit(0, 1, group="another"), unknown, (None, b""))
    assert texts.of_group(records, GROUP) == records[:1]
