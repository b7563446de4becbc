"""The protocol of KIP-848 with every client that has it: who joins, leaves, dies or restarts, and the way there and back."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import pytest
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from tests.clients.cluster import Cluster
from tests.clients.program_members import COMMANDS, NoClient, Place, ProgramMember
from tests.clients.support import eventually, partitions_of

pytestmark = [pytest.mark.slow, pytest.mark.minutes(1)]

Start = Callable[..., ProgramMember]


@pytest.fixture(scope="module", params=COMMANDS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sequence[str]:
    """The command of a client's program; skips where it cannot be run."""
    try:
        return COMMANDS[request.param](tmp_path_factory.mktemp(request.param))
    except NoClient as reason:
        pytest.skip(str(reason))


@pytest.fixture
def start(cluster: Cluster, group: str, program: Sequence[str]) -> Iterator[Start]:
    """Starts a member of this test's ``group``; those still running at the end of the test are killed then."""
    with ExitStack() as running:

        def starts(
            client: str, topic: str, *, protocol: str = "consumer", instance: str | None = None
        ) -> ProgramMember:
            told = {
                "bootstrap": cluster.bootstrap,
                "group": group,
                "client": client,
                "topic": topic,
                "protocol": protocol,
            }
            if instance is not None:
                told["instance"] = instance
            member = ProgramMember([*program, *(f"{name}={value}" for name, value in told.items())])
            running.callback(member.kill)
            return member

        yield starts


def own_evenly(topic: str, partitions: int, *members: ProgramMember) -> None:
    """Wait until ``members`` own all of ``topic``, each as much as the others."""

    def settled() -> bool:
        owned = [member.owned for member in members]
        share = partitions // len(members)
        return all(len(some) == share for some in owned) and frozenset().union(*owned) == partitions_of(
            topic, partitions
        )

    eventually(settled, saying=f"{members} own it evenly")


def produced(cluster: Cluster, topic: str, partitions: int, count: int) -> list[Place]:
    """Where ``count`` new records are."""
    records = cluster.produce(topic, [f"value {number}" for number in range(count)], partitions=partitions)
    return [Place(record.topic, record.partition, record.offset) for record in records]


def all_read(expected: Sequence[Place], *members: ProgramMember) -> None:
    """Wait until ``members`` have read exactly what is ``expected``, each record once."""
    eventually(
        lambda: sorted(place for member in members for place in member.read) == sorted(expected),
        saying=f"{members} read {expected}",
    )


def read_once(cluster: Cluster, topic: str, partitions: int, member: ProgramMember) -> list[Place]:
    """A record of each partition, which ``member`` has read: it owns them all.

    librdkafka looks up where an empty partition begins. If the partition is revoked meanwhile, the late answer sets back the
    position of whoever has it by then: so each partition is read once before anything moves.
    """
    own_evenly(topic, partitions, member)
    sent = produced(cluster, topic, partitions, partitions)
    all_read(sent, member)
    return sent


def test_members_join_share_and_leave_and_keep_what_they_keep(cluster: Cluster, group: str, start: Start) -> None:
    topic = cluster.topic(partitions=6)

    first = start("first", topic)
    sent = read_once(cluster, topic, 6, first)
    second = start("second", topic)
    own_evenly(topic, 6, first, second)
    assert first.entries == [("assigned", partitions_of(topic, 6)), ("revoked", second.owned)]
    described = cluster.group(group)
    assert (described.state.name, described.type.name, described.partition_assignor) == (
        "STABLE",
        "CONSUMER",
        "uniform",
    )
    assert cluster.owners(group) == {"first": 3, "second": 3}

    sent += produced(cluster, topic, 6, 30)
    all_read(sent, first, second)
    eventually(lambda: cluster.committed(group) == dict.fromkeys(partitions_of(topic, 6), 6), saying="all is committed")

    moving = second.owned
    second.leave()
    own_evenly(topic, 6, first)
    assert first.entries[2:] == [("assigned", moving)]
    sent += produced(cluster, topic, 6, 6)
    all_read(sent, first, second)


def test_the_partitions_of_a_killed_member_wait_for_the_session_that_its_group_is_configured_with(
    cluster: Cluster, group: str, start: Start
) -> None:
    topic = cluster.topic(partitions=4)
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    try:
        timeout_ms = cluster.broker_config("group.consumer.min.session.timeout.ms")
        configs = {"consumer.session.timeout.ms": timeout_ms}
        admin.alter_configs([ConfigResource(ConfigResourceType.GROUP, group, configs)])
    finally:
        admin.close()
    survivor = start("survivor", topic)
    sent = read_once(cluster, topic, 4, survivor)
    doomed = start("doomed", topic)
    own_evenly(topic, 4, survivor, doomed)

    doomed.kill()

    sent += produced(cluster, topic, 4, 8)
    own_evenly(topic, 4, survivor)
    all_read(sent, survivor)


@pytest.mark.parametrize("program", ["confluent", "java"], indirect=True)
def test_a_static_member_that_restarts_keeps_its_partitions_and_disturbs_nobody(
    cluster: Cluster, group: str, start: Start
) -> None:
    topic = cluster.topic(partitions=4)
    stays = start("stays", topic, instance="one")
    sent = read_once(cluster, topic, 4, stays)
    restarts = start("restarts", topic, instance="two")
    own_evenly(topic, 4, stays, restarts)
    owned, undisturbed = restarts.owned, list(stays.entries)

    restarts.leave()
    assert {member.group_instance_id for member in cluster.group(group).members} == {"one", "two"}
    restarted = start("restarted", topic, instance="two")

    eventually(lambda: restarted.owned == owned, saying="it has its partitions back")
    all_read(sent + produced(cluster, topic, 4, 8), stays, restarted)
    assert stays.entries == undisturbed


@pytest.mark.parametrize("program", ["franz-go"], indirect=True)
def test_who_leaves_for_now_without_its_instance_id_is_not_let_in_again_before_its_session_is_over(
    cluster: Cluster, group: str, start: Start
) -> None:
    topic = cluster.topic()
    leaves = start("leaves", topic, instance="one")
    eventually(lambda: leaves.owned, saying="it is in the group")

    leaves.leave()  # franz-go 1.22 sends the epoch -2, but not the instance id

    restarted = start("restarted", topic, instance="one")
    [why] = eventually(lambda: restarted.said("failed"), saying="it is refused")
    assert "UNRELEASED_INSTANCE_ID:" in why


def test_a_subscription_by_expression_has_all_that_matches(cluster: Cluster, start: Start) -> None:
    first, second, other = cluster.topic(partitions=2), cluster.topic(), cluster.topic()
    del other

    member = start("member", f"^({first}|{second}|nothing-else)$")

    eventually(lambda: member.owned == partitions_of(first, 2) | partitions_of(second, 1), saying="it owns both topics")
    all_read([*produced(cluster, first, 2, 4), *produced(cluster, second, 1, 2)], member)


def test_a_group_goes_over_to_the_consumer_protocol_and_back_member_by_member(
    cluster: Cluster, group: str, start: Start
) -> None:
    topic = cluster.topic(partitions=6)
    old = [start(f"old-{number}", topic, protocol="classic") for number in range(2)]
    own_evenly(topic, 6, *old)
    assert cluster.group(group).type.name == "CLASSIC"

    new = [start("new-0", topic)]
    own_evenly(topic, 6, *old, *new)
    assert cluster.group(group).type.name == "CONSUMER"
    old[0].leave()
    own_evenly(topic, 6, old[1], *new)
    new.append(start("new-1", topic))
    own_evenly(topic, 6, old[1], *new)
    old[1].leave()
    own_evenly(topic, 6, *new)
    assert cluster.group(group).type.name == "CONSUMER"
    all_read(produced(cluster, topic, 6, 12), *new)
    eventually(lambda: cluster.committed(group) == dict.fromkeys(partitions_of(topic, 6), 2), saying="all is committed")

    back = start("back", topic, protocol="classic")
    own_evenly(topic, 6, back, *new)
    new[0].leave()
    own_evenly(topic, 6, back, new[1])
    assert cluster.group(group).type.name == "CONSUMER"
    new[1].leave()
    own_evenly(topic, 6, back)
    eventually(lambda: cluster.group(group).type.name == "CLASSIC", saying="the last of the new ones is gone")
    all_read(produced(cluster, topic, 6, 12), back)
