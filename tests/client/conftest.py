"""The broker under test for whole groups: groupcoord, and the real one if KAFKA_TEST_BOOTSTRAP names one."""

from tests.client.adapter import GroupcoordAdapter
from tests.clients.conftest import cluster, group, member, running_cluster
from tests.clients.members import ADAPTERS

__all__ = ["cluster", "group", "member", "running_cluster"]

ADAPTERS["groupcoord"] = GroupcoordAdapter
