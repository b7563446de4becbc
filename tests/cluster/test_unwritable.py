"""Names that are longer in a record than a record's string may be: Kafka's append fails then, and what it was for is undone.

What is expected here is what a Kafka 4.3.1 broker answered to names of 20,000 bytes that are no UTF-8.
"""

import pytest

from groupcoord.core.effects import Call, Reply
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import JoinGroupRequest, ListGroupsRequest
from tests.cluster.test_cluster_core import new_node

NAME = "\ufffd" * 20_000


@pytest.mark.parametrize(("version", "error"), [(3, ErrorCode.UNKNOWN_SERVER_ERROR), (9, ErrorCode.MEMBER_ID_REQUIRED)])
def test_a_group_whose_name_cannot_be_written_is_not_there(version: int, error: ErrorCode) -> None:
    node = new_node(group_initial_rebalance_delay_ms=0)

    def ask(key: ApiKey, request: object, version: int) -> Reply:
        (reply,) = [
            effect
            for effect in node.handle(Call(1, 1, APIS[key], version, "c", "/127.0.0.1"), request, 0)
            if isinstance(effect, Reply)
        ]
        return reply

    protocols = (JoinGroupRequestProtocol(name="range", metadata=b""),)
    join = JoinGroupRequest(
        group_id=NAME,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=protocols,
    )
    assert ask(ApiKey.JOIN_GROUP, join, version).response.error_code == error
    assert ask(ApiKey.LIST_GROUPS, ListGroupsRequest(), 4).response.groups == ()
