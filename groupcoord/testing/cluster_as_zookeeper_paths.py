"""The registry (``kafka.registry``) of an in-process cluster: the brokers and topics as paths like ZooKeeper's.

It is built from the responses that the brokers would give, without requests, so that the trace does not contain any.
"""

from collections.abc import Callable
from typing import Any

from groupcoord.broker.metadata import handle_metadata
from groupcoord.client.member.metadata_and_commit_requests import metadata_request
from groupcoord.client.metadata_as_zookeeper_paths import ZooKeeperTree, zookeeper_tree
from groupcoord.client.zookeeper_paths_reader import METADATA_QUORUM
from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.cluster.metadata_quorum import handle_describe_quorum
from groupcoord.cluster.partition_admin import handle_list_partition_reassignments
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call, Reply
from groupcoord.protocol.apis import API_BY_REQUEST
from groupcoord.protocol.apis.list_partition_reassignments import ListPartitionReassignmentsRequest


def registry_of(core: ClusterCore, now_ms: int) -> ZooKeeperTree:
    """The registry of ``core``, which exists even while no broker runs."""
    broker, controller = core.broker, core.controller

    def answer(handle: Callable[[HandlerContext, Call, Any], None], request: Any) -> Any:
        api = API_BY_REQUEST[type(request)]
        call = Call(0, 0, api, api.max_version, "registry", "")
        ctx = HandlerContext(now_ms, call)
        handle(ctx, call, request)
        (reply,) = ctx.effects
        assert isinstance(reply, Reply)
        return reply.response

    return zookeeper_tree(
        answer(lambda ctx, call, request: handle_metadata(broker, ctx, call, request), metadata_request(None)),
        answer(
            lambda ctx, call, request: handle_describe_quorum(controller.quorum, ctx, call, request), METADATA_QUORUM
        ),
        answer(
            lambda ctx, call, request: handle_list_partition_reassignments(
                controller, broker.topics, ctx, call, request
            ),
            ListPartitionReassignmentsRequest(topics=None),
        ),
        has_controller=broker.cluster.has_controller,
    )
