"""TxnOffsetCommit, and the effects of pending offsets on a group (KIP-98, KIP-447, KIP-890)."""

import struct
from collections.abc import Sequence
from typing import Any

from groupcoord.protocol.apis.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from groupcoord.protocol.messages import TxnOffsetCommitRequest
from tests.conformance.actors import Stagehand
from tests.conformance.admin import Admin, until_forgotten
from tests.conformance.batches import shown_batches
from tests.conformance.data import DataClient
from tests.conformance.offsets_topic import (
    OFFSETS_TOPIC,
    end_request,
    fetch_request,
    next_offset,
    partition_of,
    records_of,
)
from tests.conformance.producers import MADE_UP_ID, Producer
from tests.conformance.settings import SLOW_START
from tests.conformance.stories.transaction_markers import Operator, marker
from tests.conformance.story import Story, story

VERSIONS = range(6)
"""Of TxnOffsetCommit."""


def shows_batches(s: Story, group_id: str, *producers: Producer) -> None:
    """The batches of ``producers`` in the group's partition of ``__consumer_offsets``, control batches included.

    Where they begin depends on who else writes there, so that offsets are not shown.
    """
    stage, partition = Stagehand(s), partition_of(group_id)
    ids = {producer.producer_id for producer in producers} - {-1}
    end = stage.ask(end_request(partition), 9).topics[0].partitions[0].offset
    data, offset = b"", 0
    while offset < end:
        found = bytes(stage.ask(fetch_request(partition, offset), 12).responses[0].partitions[0].records or b"")
        data, offset = data + found, next_offset(found, end)
    step = s.begin("log", "holds these batches of transactions in __consumer_offsets")
    shown, at = [], 0
    while at < len(data):
        size = 12 + struct.unpack_from(">i", data, at + 8)[0]
        one = data[at : at + size]
        at += size
        batch: Any = shown_batches(one)[0]
        if batch["producer_id"] in ids:
            del batch["base_offset"]
            if "records" in batch:
                batch["records"] = records_of(one, s.groups)
            shown.append(s.shown(batch, OFFSETS_TOPIC))
    step["gets"] = shown
    s.end()


@story(sections=["transactions"])
def every_version_of_transactional_commits(s: Story) -> None:
    """Without AddOffsetsToTxn: refused up to version 4, with different errors; from 5 on the broker adds the offsets."""
    topic = Stagehand(s).topic("orders", partitions=3)
    p, admin = Producer(s, "p"), Admin(s, "admin")
    p.init()
    for committed in (True, False):
        for version in VERSIONS:
            group = s.group(f"v{version}")
            p.commits_offsets(group, {(topic, 0): 1}, version, does="commits offsets that were not added")
            admin.fetches(group, None)
            p.adds_offsets(group)
            p.commits_offsets(group, {(topic, 0): (2, "m", 7), (topic, 1): (3, None), (topic, 2): 4}, version)
            p.commits_offsets(group, {(topic, 2): (5, "again")}, version)
            admin.fetches(group, {topic: [0, 1, 2]})
            admin.fetches(group, {topic: [0, 1, 2]}, stable=True)
        p.ends(committed=committed, version=4)
        for version in VERSIONS:
            admin.fetches(s.group(f"v{version}"), {topic: [0, 1, 2]}, stable=True)
    for version in VERSIONS:
        p.commits_offsets(s.group(f"v{version}"), {(topic, 0): 9}, version, does="commits offsets behind the end")
    p.commits(5)
    for version in VERSIONS:
        shows_batches(s, s.group(f"v{version}"), p)
    admin.fetches(s.group("v5"), {topic: [0, 1, 2]})


@story(sections=["transactions"])
def transactional_commits_with_something_wrong(s: Story) -> None:
    """Wrong epochs, ids, groups and topics, before anything was added, and while offsets are pending."""
    topic = Stagehand(s).topic("orders", partitions=2)
    group, unknown = s.group(), s.group("unknown")
    p, q, admin = Producer(s, "p"), Producer(s, "q"), Admin(s, "admin")
    p.init()
    p.init()
    q.init()

    def everything(when: str) -> None:
        for version in (0, 2, 3, 4, 5):
            cases: dict[str, dict[str, Any]] = {
                "in an older epoch": {"producer_epoch": 0},
                "in a future epoch": {"producer_epoch": 7},
                "in epoch -1": {"producer_epoch": -1},
                "with another's producer id": {"producer_id": q.producer_id},
                "with a made-up producer id": {"producer_id": MADE_UP_ID},
                "with producer id -1": {"producer_id": -1},
                "with an unknown transactional id": {"transactional_id": f"{s.name}-nobody"},
                "with an empty transactional id": {"transactional_id": ""},
            }
            for does, changes in cases.items():
                p.commits_offsets(group, {(topic, 0): 1}, version, does=f"commits offsets {does}, {when}", **changes)
            p.commits_offsets("", {(topic, 0): 1}, version, does=f"commits offsets of no group, {when}")
            p.commits_offsets(
                group,
                {("nowhere", 0): 1, (topic, 77): 2, ("not a topic!", 0): 3},
                version,
                does=f"commits offsets of nothing that is there, {when}",
            )
            if version < 5 and "pending" not in when:
                p.commits_offsets(
                    group,
                    {("nowhere", 0): 1, (topic, 0): 2, (topic, 77): 3},
                    version,
                    does=f"commits offsets, some of nothing, {when}",
                )

    everything("nothing added")
    p.commits_offsets(group, {(topic, 1): 1, ("nowhere", 0): 1, (topic, 77): 2})
    admin.fetches(group, None)
    everything("some pending")
    for version in (0, 3, 5):
        p.commits_offsets(unknown, {(topic, 0): 1}, version, does="commits offsets of a group that is not there")
        if version >= 3:
            p.commits_offsets(
                s.group(f"never-{version}"),
                {(topic, 0): 1},
                version,
                does="commits offsets of a generation of no group",
                generation_id=0,
            )
    p.commits()
    for group_id in (group, unknown):
        admin.fetches(group_id, None, stable=True)
        shows_batches(s, group_id, p)
    admin.describes(group, unknown)


def txn_topics(topic: str, *commits: tuple[int, int, str]) -> TxnOffsetCommitRequestTopic:
    """A topic with (partition, offset, metadata) for each partition."""
    return TxnOffsetCommitRequestTopic(
        name=topic,
        partitions=tuple(
            TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata=metadata)
            for index, offset, metadata in commits
        ),
    )


@story(sections=["transactions"])
def odd_transactional_commits(s: Story) -> None:
    """No topics, no partitions, one partition twice, absurd offsets, much metadata, and a second group."""
    topic = Stagehand(s).topic("orders", partitions=4)
    group = s.group()
    p, admin = Producer(s, "p"), Admin(s, "admin")
    p.init()

    def sends(*topics: TxnOffsetCommitRequestTopic, does: str, version: int = 5) -> None:
        request = TxnOffsetCommitRequest(
            transactional_id=p.transactional_id or "",
            group_id=group,
            producer_id=p.producer_id,
            producer_epoch=p.epoch,
            topics=topics,
        )
        p.asks(request, version, does=does)

    nothing = TxnOffsetCommitRequestTopic(name=topic)
    for version in (2, 4, 5):
        sends(does="commits no topics", version=version)
        sends(nothing, does="commits no partitions", version=version)
        sends(TxnOffsetCommitRequestTopic(name="nowhere"), does="commits no partitions of nowhere", version=version)
    admin.describes(group)
    p.commits_offsets(group, {(topic, 0): (1, "x" * 4097), (topic, 1): (2, "x" * 4096)}, does="commits much metadata")
    p.commits_offsets(group, {(topic, 0): (1, "x" * 4097)}, does="commits too much metadata alone")
    for offset, epoch in ((-1, -1), (-2, -2), (2**63 - 1, 2**31 - 1), (-(2**63), 0)):
        p.commits_offsets(group, {(topic, 2): (offset, "odd", epoch)}, does=f"commits offset {offset}, epoch {epoch}")
    one, two = txn_topics(topic, (3, 1, "first")), txn_topics(topic, (3, 2, "second"), (0, 3, ""))
    sends(one, two, one, does="commits topics twice")
    p.commits_offsets(s.group("other"), {(topic, 0): 1})
    p.commits()
    admin.fetches(group, None, stable=True)
    admin.fetches(s.group("other"), None)
    shows_batches(s, group, p)


@story(settings=SLOW_START, sections=["transactions"])
def a_small_limit_for_transactional_metadata(s: Story) -> None:
    """offset.metadata.max.bytes=16 applies, too; metadata that is too long gets an error, the rest is pending."""
    topic = Stagehand(s).topic("orders", partitions=2)
    group = s.group()
    p, admin = Producer(s, "p"), Admin(s, "admin")
    p.init()
    for version in (3, 5):
        p.adds_offsets(group)
        p.commits_offsets(group, {(topic, 0): (1, "x" * 17), (topic, 1): (2, "x" * 16)}, version)
        p.commits_offsets(group, {(topic, 0): (1, "ä" * 17), (topic, 1): (2, "ä" * 16)}, version)
        p.commits()
        admin.fetches(group, None)


@story(sections=["transactions"])
def every_version_of_stable_fetches(s: Story) -> None:
    """A request for stable offsets gets an error for unstable ones; others get the previously committed ones."""
    stage = Stagehand(s)
    topic, other = stage.topic("orders", partitions=4), stage.topic("payments")
    ids = {name: stage.topic_id(name) for name in (topic, other)}
    group, pending = s.group(), s.group("pending")
    p, admin = Producer(s, "p"), Admin(s, "admin", ids=ids)
    p.init()
    admin.commits(group, {(topic, 0): (1, "plain"), (topic, 1): (2, "plain"), (other, 0): 3})
    p.commits_offsets(group, {(topic, 1): (20, "pending"), (topic, 2): (30, "pending")})
    p.commits_offsets(pending, {(topic, 0): 40})

    def everything() -> None:
        for version in range(1, 11):
            for stable in (False, True) if version >= 7 else (False,):
                admin.fetches(group, {topic: [0, 1, 2, 3], other: [0]}, version, stable=stable)
                admin.fetches(pending, {topic: [0, 1]}, version, stable=stable)
                if version >= 2:
                    admin.fetches(group, None, version, stable=stable)
                    admin.fetches(pending, None, version, stable=stable)
        request_of_both: dict[str, dict[str, Sequence[int]] | None] = {group: None, pending: {topic: [0]}}
        admin.fetches_many(request_of_both)

    everything()
    p.commits()
    everything()
    p.commits_offsets(group, {(topic, 0): 100})
    admin.fetches(group, None, stable=True)
    p.aborts()
    admin.fetches(group, None, stable=True)
    admin.fetches(s.group("unknown"), {topic: [0]}, stable=True)


@story(sections=["transactions"])
def plain_commits_beside_pending_ones(s: Story) -> None:
    """Of a plain commit and a transactional one the later in the log counts when the transaction commits."""
    topic = Stagehand(s).topic("orders", partitions=4)
    group = s.group()
    p, admin = Producer(s, "p"), Admin(s, "admin")
    p.init()
    for committed in (True, False):
        admin.commits(group, {(topic, 0): (1, "plain before"), (topic, 1): (2, "plain before")})
        p.commits_offsets(
            group, {(topic, 0): (10, "pending"), (topic, 1): (20, "pending"), (topic, 2): (30, "pending")}
        )
        admin.fetches(group, None)
        admin.commits(group, {(topic, 1): (200, "plain behind"), (topic, 3): (400, "plain behind")})
        admin.fetches(group, None)
        admin.fetches(group, None, stable=True)
        p.commits_offsets(group, {(topic, 3): (40, "pending behind")})
        admin.fetches(group, {topic: [0, 1, 2, 3]}, stable=True)
        p.ends(committed=committed)
        admin.fetches(group, None, stable=True)
    shows_batches(s, group, p)


@story(sections=["transactions"])
def two_transactions_on_one_partition(s: Story) -> None:
    """The offset that was sent later counts, in whatever order the two commit; both must end before it is stable."""
    topic = Stagehand(s).topic()
    group = s.group()
    a, b, admin = Producer(s, "a"), Producer(s, "b"), Admin(s, "admin")
    a.init()
    b.init()
    number = 0
    for first_ends in (True, False):
        for first_commits in (True, False):
            for second_commits in (True, False):
                number += 10
                first, second = (a, b) if first_ends else (b, a)
                a.commits_offsets(group, {(topic, 0): (number, "a")})
                b.commits_offsets(group, {(topic, 0): (number + 1, "b")})
                admin.fetches(group, {topic: [0]}, stable=True)
                first.ends(committed=first_commits)
                admin.fetches(group, {topic: [0]}, stable=True)
                admin.fetches(group, {topic: [0]})
                second.ends(committed=second_commits)
                admin.fetches(group, {topic: [0]}, stable=True)
    a.commits_offsets(group, {(topic, 0): (500, "a")})
    b.commits_offsets(group, {(topic, 0): (501, "b")})
    a.commits_offsets(group, {(topic, 0): (502, "a again")})
    b.commits()
    admin.fetches(group, {topic: [0]})
    a.commits()
    admin.fetches(group, {topic: [0]})


@story(sections=["transactions"])
def groups_with_nothing_but_pending_offsets(s: Story) -> None:
    """Such a group exists, and is Empty; when the transaction is aborted it stays, without offsets."""
    topic = Stagehand(s).topic("orders", partitions=2)
    group = s.group()
    p, admin = Producer(s, "p"), Admin(s, "admin")
    p.init()

    def looks() -> None:
        admin.describes(group)
        admin.lists()
        admin.lists(states=["Empty"])
        admin.fetches(group, None)

    p.adds_offsets(group)
    looks()
    p.commits_offsets(group, {(topic, 0): 1})
    looks()
    p.aborts()
    looks()
    admin.deletes(group)
    looks()
    p.commits_offsets(group, {(topic, 0): 2})
    p.commits()
    looks()
    admin.deletes(group)
    looks()


@story(sections=["transactions"])
def deleting_what_is_pending(s: Story) -> None:
    """OffsetDelete and DeleteGroups drop pending offsets; the transaction then commits only later ones."""
    stage = Stagehand(s)
    topic, doomed = stage.topic("orders", partitions=3), stage.topic("doomed")
    p, admin = Producer(s, "p"), Admin(s, "admin")
    p.init()
    group = s.group("offsets")
    admin.commits(group, {(topic, 0): 1})
    p.commits_offsets(group, {(topic, 0): 10, (topic, 1): 20, (topic, 2): 30})
    admin.deletes_offsets(group, {topic: [0, 1]})
    admin.fetches(group, {topic: [0, 1, 2]}, stable=True)
    p.commits_offsets(group, {(topic, 1): 21})
    admin.fetches(group, {topic: [0, 1, 2]}, stable=True)
    p.commits()
    admin.fetches(group, None, stable=True)
    p.commits_offsets(group, {(topic, 0): 11})
    admin.deletes_offsets(group, {topic: [0, 1, 2]})
    admin.describes(group)
    p.commits()
    admin.fetches(group, None, stable=True)
    admin.describes(group)
    shows_batches(s, group, p)
    group = s.group("groups")
    admin.commits(group, {(topic, 0): 1})
    p.commits_offsets(group, {(topic, 0): 10, (topic, 1): 20})
    admin.deletes(group)
    admin.describes(group)
    admin.fetches(group, {topic: [0, 1]}, stable=True)
    p.commits()
    admin.fetches(group, {topic: [0, 1]}, stable=True)
    admin.describes(group)
    p.commits_offsets(group, {(topic, 0): 11})
    admin.deletes(group)
    p.commits_offsets(group, {(topic, 1): 21}, 4, does="commits offsets of the group that is gone")
    admin.describes(group)
    p.commits()
    admin.fetches(group, None, stable=True)
    shows_batches(s, group, p)
    group = s.group("topics")
    admin.commits(group, {(topic, 0): 1, (doomed, 0): 2})
    p.commits_offsets(group, {(doomed, 0): 10, (topic, 1): 20})
    stage.deletes(doomed)
    until_forgotten(s, stage, group, doomed)
    admin.fetches(group, None)
    admin.fetches(group, None, stable=True)
    p.commits_offsets(group, {(doomed, 0): 11})
    p.commits()
    admin.fetches(group, None, stable=True)


@story(sections=["transactions"])
def a_new_incarnation_drops_pending_offsets(s: Story) -> None:
    """InitProducerId aborts the pending offsets of the previous producer; the zombie's commits are refused."""
    topic = Stagehand(s).topic()
    group = s.group()
    old, new, admin = Producer(s, "p"), Producer(s, "p"), Admin(s, "admin")
    old.init()
    old.commits_offsets(group, {(topic, 0): 1})
    admin.fetches(group, {topic: [0]}, stable=True)
    new.init()
    new.init()
    admin.fetches(group, {topic: [0]}, stable=True)
    for version in (2, 4, 5):
        old.commits_offsets(group, {(topic, 0): 2}, version)
    new.commits_offsets(group, {(topic, 0): 3})
    for version in (2, 4, 5):
        old.commits_offsets(group, {(topic, 0): 2}, version)
    new.commits()
    admin.fetches(group, {topic: [0]}, stable=True)
    shows_batches(s, group, old)


@story(sections=["transactions"])
def markers_for_pending_offsets(s: Story) -> None:
    """An operator's marker in the group's partition ends the transaction there; refused markers change nothing."""
    topic = Stagehand(s).topic()
    group = s.group()
    p, op = Producer(s, "p"), Operator(s, "op")
    home = {OFFSETS_TOPIC: [partition_of(group)]}
    p.init()
    p.init()
    p.commits_offsets(group, {(topic, 0): 1})
    for does, version, epoch, rules in (
        ("an older epoch", 1, 0, 0),
        ("an older epoch by the new rules", 2, 0, 2),
        ("the same epoch by the new rules", 2, 1, 2),
        ("no epoch", 1, -1, 0),
    ):
        made = marker(home, p.producer_id, epoch, committed=True, transaction_version=rules)
        op.writes(made, version=version, does=f"commits {does}")
        op.fetches(group, {topic: [0]}, stable=True)
    op.writes(marker(home, p.producer_id, 1, committed=True), does="commits")
    op.fetches(group, {topic: [0]}, stable=True)
    p.commits_offsets(group, {(topic, 0): 2}, 4, does="does not know it")
    p.commits_offsets(group, {(topic, 0): 3}, does="does not know it")
    op.writes(marker(home, p.producer_id, 1), does="aborts")
    op.fetches(group, {topic: [0]}, stable=True)
    op.writes(marker(home, p.producer_id, 1, coordinator_epoch=-1), does="aborts as an older coordinator")
    p.commits_offsets(group, {(topic, 0): 4})
    op.writes(
        marker(home, p.producer_id, 2, transaction_version=2), version=2, does="aborts by the new rules, next epoch"
    )
    op.fetches(group, {topic: [0]}, stable=True)
    p.commits_offsets(group, {(topic, 0): 5}, does="does not know the epoch")
    p.commits()
    op.fetches(group, {topic: [0]}, stable=True)
    p.commits_offsets(group, {(topic, 0): 6})
    p.commits()
    op.fetches(group, {topic: [0]}, stable=True)
    op.writes(marker(home, MADE_UP_ID), does="aborts for nobody")
    shows_batches(s, group, p)


@story(sections=["transactions"])
def offsets_and_records_in_one_transaction(s: Story) -> None:
    """Consume, transform, produce: records and offsets take effect together, or not at all."""
    topic = Stagehand(s).topic("orders", partitions=2)
    group = s.group()
    p, admin, reader = Producer(s, "p"), Admin(s, "admin"), DataClient(s, "reader")
    p.init()
    for version, committed in ((4, False), (5, False), (4, True), (5, True)):
        p.produces({(topic, 0): [b"one"], (topic, 1): [b"two"]})
        if version == 4:
            p.adds_offsets(group)
        p.commits_offsets(group, {(topic, 0): version}, version - 1 if version == 4 else 5)
        admin.fetches(group, {topic: [0]}, stable=True)
        reader.lists_offsets({(topic, 0): -1, (topic, 1): -1}, isolation_level=1)
        p.ends(committed=committed, version=version)
        admin.fetches(group, {topic: [0]}, stable=True)
        reader.lists_offsets({(topic, 0): -1, (topic, 1): -1}, isolation_level=1)
    reader.fetches({(topic, 0): 0, (topic, 1): 0}, isolation_level=1)
    shows_batches(s, group, p)
