"""Static members (KIP-345): who restarts under its instance id gets its own partitions back, and nobody else notices."""

import pytest
from kafka.admin import KafkaAdminClient, MemberToRemove

from tests.clients.cluster import Cluster
from tests.clients.conftest import MakeMember
from tests.clients.members import Flavour
from tests.clients.support import eventually, partitions_of

EVERY_LIBRARY = (
    Flavour("aiokafka", "range"),
    Flavour("kafka-python", "range"),
    Flavour("confluent", "range"),
    Flavour("confluent", "cooperative-sticky"),
)

pytestmark = pytest.mark.slow
every_library = pytest.mark.parametrize("flavour", EVERY_LIBRARY, ids=str)


@every_library
def test_a_static_member_that_restarts_keeps_its_partitions_and_disturbs_nobody(
    cluster: Cluster, flavour: Flavour, group: str, member: MakeMember
) -> None:
    topic = cluster.topic(partitions=4)
    stays = member(flavour, topic, instance_id="one")
    restarts = member(flavour, topic, instance_id="two")
    eventually(lambda: len(stays.owned) == len(restarts.owned) == 2, saying="both own two partitions")
    owned, undisturbed = restarts.owned, list(stays.diary.entries)

    restarts.leave()
    assert {described.group_instance_id for described in cluster.group(group).members} == {"one", "two"}
    restarted = member(flavour, topic, instance_id="two")
    eventually(lambda: restarted.owned == owned, saying="it has its partitions back")

    sent = cluster.produce(topic, ["a", "b", "c", "d"], partitions=4)
    eventually(lambda: sorted(stays.received + restarted.received) == sent, saying="both read their own partitions")
    assert stays.diary.entries == undisturbed


def test_the_elder_of_two_with_one_instance_id_is_fenced(cluster: Cluster, member: MakeMember) -> None:
    topic = cluster.topic(partitions=2)
    elder = member(Flavour("confluent", "range"), topic, instance_id="twin")
    eventually(lambda: elder.owned, saying="the elder owns everything")

    younger = member(Flavour("confluent", "range"), topic, instance_id="twin")

    eventually(lambda: younger.owned == partitions_of(topic, 2), saying="the younger takes over")
    failure = eventually(lambda: elder.failure, saying="the elder is told that it is fenced")
    assert "Static consumer fenced by other consumer with same group.instance.id" in str(failure)


def test_an_operator_removes_a_static_member_by_its_instance_id(
    cluster: Cluster, group: str, member: MakeMember
) -> None:
    topic = cluster.topic(partitions=2)
    flavour = Flavour("confluent", "range")
    gone = member(flavour, topic, instance_id="gone")
    stays = member(flavour, topic, instance_id="stays")
    eventually(lambda: len(gone.owned) == len(stays.owned) == 1, saying="both own one partition")
    gone.leave()

    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    try:
        admin.remove_group_members(group, [MemberToRemove(group_instance_id="gone")])
    finally:
        admin.close()

    eventually(lambda: stays.owned == partitions_of(topic, 2), saying="who stays owns everything")
    assert [described.group_instance_id for described in cluster.group(group).members] == ["stays"]
