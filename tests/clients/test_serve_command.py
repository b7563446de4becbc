"""``groupcoord serve`` as a user starts it, with a group on it, until it is told to stop."""

import sys

import pytest

from tests.clients.cluster import Cluster
from tests.clients.members import FLAVOURS, Member, Membership
from tests.clients.processes import running
from tests.clients.support import eventually, partitions_of, unique

pytestmark = pytest.mark.slow


def test_a_group_lives_on_a_served_broker() -> None:
    command = [sys.executable, "-m", "groupcoord.cli.main", "serve", "--port", "0", "--dev", "--topic", "orders:6"]
    group = unique("group")

    with running(command) as server:
        eventually(lambda: server.lines, saying="it says where it listens")
        bootstrap = server.lines[0].removeprefix("listening on ")
        cluster = Cluster(bootstrap)
        one_of_each_library = {flavour.library: flavour for flavour in FLAVOURS if flavour.assignor == "range"}
        members = [
            Member(Membership(bootstrap=bootstrap, flavour=flavour, group=group, topics=("orders",), client_id=library))
            for library, flavour in one_of_each_library.items()
        ]
        try:
            everybody = dict.fromkeys(one_of_each_library, 2)
            eventually(lambda: cluster.owners(group) == everybody, saying="each library owns two partitions")
            sent = cluster.produce("orders", [f"order {number}" for number in range(12)], partitions=6)
            eventually(lambda: sorted(r for m in members for r in m.received) == sent, saying="everything is read")
            for member in members:
                member.commit()
            assert cluster.committed(group) == dict.fromkeys(partitions_of("orders", 6), 2)
        finally:
            for member in members:
                member.end()
            cluster.close()

        assert server.terminate() == 0


def test_a_group_lives_on_two_listeners_and_each_client_is_told_its_own() -> None:
    command = [sys.executable, "-m", "groupcoord.cli.main", "serve", "--dev", "--topic", "orders:6"]
    command += ["-c", "listeners=INSIDE://127.0.0.1:0,HOST://127.0.0.1:0", "-c", "inter.broker.listener.name=INSIDE"]
    command += ["-c", "advertised.listeners=INSIDE://127.0.0.1:0,HOST://localhost:0"]
    command += ["-c", "listener.security.protocol.map=INSIDE:PLAINTEXT,HOST:PLAINTEXT"]
    group = unique("group")

    with running(command) as server:
        eventually(lambda: len(server.lines) == 2, saying="it says where it listens")
        inside = server.lines[0].removeprefix("listening on ")
        host = server.lines[1].removeprefix("listening on ").removesuffix(" for HOST").replace("127.0.0.1", "localhost")
        flavour = next(flavour for flavour in FLAVOURS if flavour.assignor == "range")
        members = []
        clusters = [Cluster(inside), Cluster(host)]
        try:
            for bootstrap, cluster in zip((inside, host), clusters, strict=True):
                assert cluster.brokers() == [bootstrap]
                membership = Membership(
                    bootstrap=bootstrap, flavour=flavour, group=group, topics=("orders",), client_id=bootstrap
                )
                members.append(Member(membership))
            both = {inside: 3, host: 3}
            eventually(lambda: clusters[0].owners(group) == both, saying="each owns three partitions")
            sent = clusters[1].produce("orders", [f"order {number}" for number in range(12)], partitions=6)
            eventually(lambda: sorted(r for m in members for r in m.received) == sent, saying="everything is read")
        finally:
            for member in members:
                member.end()
            for cluster in clusters:
                cluster.close()

        assert server.terminate() == 0
