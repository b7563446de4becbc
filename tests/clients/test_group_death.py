"""Members that die without a word: their partitions wait for their session, and then go to those who live."""

import pytest

from tests.clients import doomed
from tests.clients.cluster import Cluster
from tests.clients.conftest import MakeMember
from tests.clients.members import Flavour, Membership
from tests.clients.processes import running
from tests.clients.support import eventually, partitions_of

LIBRARIES = ("aiokafka", "kafka-python", "confluent")


@pytest.mark.slow
def test_the_partitions_of_the_killed_go_to_the_survivor(cluster: Cluster, group: str, member: MakeMember) -> None:
    topic = cluster.topic(partitions=4)
    survivor = member(Flavour("aiokafka", "range"), topic, client_id="survivor")
    memberships = [
        Membership(
            bootstrap=cluster.bootstrap,
            flavour=Flavour(library, "range"),
            group=group,
            topics=(topic,),
            client_id=f"doomed {library}",
            session_ms=cluster.shortest_session_ms,
        )
        for library in LIBRARIES
    ]

    with running(doomed.command(memberships)) as process:
        four = dict.fromkeys(["survivor", *(membership.client_id for membership in memberships)], 1)
        eventually(lambda: cluster.owners(group) == four, saying="each of the four owns one partition")
        process.kill()

        sent = cluster.produce(topic, [f"value {number}" for number in range(8)], partitions=4)
        eventually(lambda: survivor.owned == partitions_of(topic, 4), saying="the survivor owns everything")
        eventually(lambda: set(survivor.received) == set(sent), saying="the survivor reads everything")
