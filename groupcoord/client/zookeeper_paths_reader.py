"""Reads the metadata of a running cluster as a ``ZooKeeperTree``, over the network; blocking, for ``cluster tree``."""

import asyncio
from types import TracebackType
from typing import Any, Self

from groupcoord.client.client_errors import BrokerError, UnsupportedVersionError
from groupcoord.client.exponential_backoff import ExponentialBackoff
from groupcoord.client.member.metadata_and_commit_requests import metadata_request
from groupcoord.client.metadata_as_zookeeper_paths import ZooKeeperTree, zookeeper_tree
from groupcoord.client.network_client import NetworkClient
from groupcoord.client.option_value_parsing import Address
from groupcoord.protocol.apis.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from groupcoord.protocol.apis.list_partition_reassignments import ListPartitionReassignmentsRequest
from groupcoord.protocol.errors import ErrorCode

REQUEST_TIMEOUT_MS = 30_000
METADATA_QUORUM = DescribeQuorumRequest(
    topics=(
        DescribeQuorumRequestTopicData(
            topic_name="__cluster_metadata", partitions=(DescribeQuorumRequestPartitionData(partition_index=0),)
        ),
    )
)
"""The request for the active controller of a KRaft cluster."""


class ZooKeeperTreeReader:
    """Reads the tree of the cluster of the ``bootstrap`` brokers. Use it as a context manager."""

    def __init__(self, bootstrap: tuple[Address, ...]) -> None:
        self._runner = asyncio.Runner()
        self._cluster = NetworkClient(
            bootstrap,
            client_id="groupcoord-cluster",
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            metadata_max_age_ms=REQUEST_TIMEOUT_MS,
            backoff=ExponentialBackoff(100, 1_000, lambda: 0.5),
            allow_auto_create_topics=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.run(self._cluster.close())
        self._runner.close()

    def read(self) -> ZooKeeperTree:
        """The tree as it is now. Raises DisconnectedError, UnsupportedVersionError, BrokerError."""
        return self._runner.run(self._read())

    async def _read(self) -> ZooKeeperTree:
        metadata = await self._cluster.request_any(metadata_request(None))
        if metadata.error_code:
            raise BrokerError(ErrorCode(metadata.error_code), "the metadata of all topics")
        return zookeeper_tree(
            metadata,
            await self._if_served(METADATA_QUORUM),
            await self._if_served(ListPartitionReassignmentsRequest(topics=None)),
        )

    async def _if_served(self, request: Any) -> Any:
        """The response; None if the brokers are too old for the request, or refuse it to this client."""
        try:
            answer = await self._cluster.request_any(request)
        except UnsupportedVersionError:
            return None
        return None if answer.error_code else answer
