"""The life of a group, told once for every library and assignor: join, share, commit, resume, leave."""

import pytest

from tests.clients.cluster import Cluster
from tests.clients.conftest import MakeMember
from tests.clients.members import FLAVOURS, Flavour, Member
from tests.clients.support import eventually, partitions_of, unique

pytestmark = pytest.mark.slow

every_flavour = pytest.mark.parametrize("flavour", FLAVOURS, ids=str)
every_library = pytest.mark.parametrize("library", ["aiokafka", "kafka-python", "confluent"])
cooperative_flavours = pytest.mark.parametrize("flavour", [f for f in FLAVOURS if f.cooperative], ids=str)


def values(first: int, last: int) -> list[str]:
    return [f"value {number}" for number in range(first, last + 1)]


@every_flavour
def test_a_successor_resumes_where_its_predecessor_committed(
    cluster: Cluster, flavour: Flavour, group: str, member: MakeMember
) -> None:
    topic = cluster.topic(partitions=4)
    early = cluster.produce(topic, values(1, 40), partitions=4)

    first = member(flavour, topic)
    eventually(lambda: len(first.received) >= 40, saying="the first member reads everything")
    assert first.received == early
    assert first.owned == partitions_of(topic, 4)
    first.commit()
    assert cluster.committed(group) == dict.fromkeys(partitions_of(topic, 4), 10)
    first.leave()
    eventually(lambda: cluster.group(group).state.name == "EMPTY", saying="the group is empty")

    late = cluster.produce(topic, values(41, 48), partitions=4)
    second = member(flavour, topic)
    eventually(lambda: len(second.received) >= 8, saying="the second member reads what came since")
    assert second.received == late


@every_flavour
def test_partitions_are_shared_anew_when_members_join_and_leave(
    cluster: Cluster, flavour: Flavour, group: str, member: MakeMember
) -> None:
    topic = cluster.topic(partitions=6)
    everything = partitions_of(topic, 6)

    first = member(flavour, topic)
    eventually(lambda: first.owned == everything, saying="the first owns everything")
    second = member(flavour, topic)
    eventually(lambda: shares(first, second) == [3, 3], saying="two own three each")
    third = member(flavour, topic)
    eventually(lambda: shares(first, second, third) == [2, 2, 2], saying="three own two each")
    assert first.owned | second.owned | third.owned == everything

    # A member that gave partitions up joins once more, so that who owns what may be settled a generation earlier.
    eventually(lambda: cluster.group(group).state.name == "STABLE", saying="the group is stable")
    described = cluster.group(group)
    assert described.partition_assignor == flavour.assignor
    assert sorted(member.client_id for member in described.members) == [f"{flavour.library}-{n}" for n in range(3)]

    sent = cluster.produce(topic, values(1, 30), partitions=6)
    eventually(lambda: len(first.received + second.received + third.received) >= 30, saying="all is read")
    assert sorted(first.received + second.received + third.received) == sent

    second.leave()
    eventually(lambda: shares(first, third) == [3, 3], saying="the two that stay own three each")
    assert first.owned | third.owned == everything


@cooperative_flavours
def test_what_a_cooperative_member_keeps_is_never_taken_away(
    cluster: Cluster, flavour: Flavour, member: MakeMember
) -> None:
    topic = cluster.topic(partitions=6)

    first = member(flavour, topic)
    eventually(lambda: len(first.owned) == 6, saying="the first owns everything")
    second = member(flavour, topic)
    eventually(lambda: shares(first, second) == [3, 3], saying="two own three each")

    assert first.diary.entries == [("assigned", partitions_of(topic, 6)), ("revoked", second.owned)]
    assert second.diary.entries == [("assigned", second.owned)]


@pytest.mark.parametrize("library", ["aiokafka", "confluent"])  # kafka-python: see its adapter
def test_a_group_takes_on_the_partitions_that_its_topic_gains(
    cluster: Cluster, library: str, member: MakeMember
) -> None:
    topic = cluster.topic(partitions=2)
    alone = member(Flavour(library, "range"), topic, metadata_age_ms=200)
    eventually(lambda: alone.owned == partitions_of(topic, 2), saying="it owns both partitions")

    cluster.enlarge(topic, 4)

    eventually(lambda: alone.owned == partitions_of(topic, 4), saying="it owns all four")
    sent = cluster.produce(topic, values(1, 8), partitions=4)
    eventually(lambda: alone.received == sent, saying="it reads all four")


@every_library
def test_who_waits_at_the_end_is_woken_at_once(cluster: Cluster, library: str, member: MakeMember) -> None:
    topic = cluster.topic()
    # Longer than ``eventually`` waits, shorter than any library waits for an answer.
    patient = member(Flavour(library, "range"), topic, fetch_wait_ms=25_000)

    for _ in range(3):
        eventually(lambda: patient.owned and patient.quiet, saying="it waits for records")
        wake(cluster, patient, topic)


def wake(cluster: Cluster, member: Member, topic: str) -> None:
    """A record comes to a member that waits for one."""
    [record] = cluster.produce(topic, ["value"])
    eventually(lambda: record in member.received, saying="it is woken")


def test_a_topic_comes_to_be_when_it_is_subscribed_to(cluster: Cluster, member: MakeMember) -> None:
    topic = unique("unheard-of")

    early = member(Flavour("aiokafka", "range"), topic, metadata_age_ms=200)

    count = int(cluster.broker_config("num.partitions"))
    eventually(lambda: early.owned == partitions_of(topic, count), saying="it owns what nobody created")
    sent = cluster.produce(topic, ["value"])
    eventually(lambda: early.received == sent, saying="it reads it")


def shares(*members: Member) -> list[int]:
    """How many partitions each of them owns."""
    return [len(member.owned) for member in members]
