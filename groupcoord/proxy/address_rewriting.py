"""Replaces the addresses of brokers in responses by the proxy's own addresses, so that clients keep connecting to the proxy.

The responses with addresses to which clients connect are Metadata, FindCoordinator and DescribeCluster; and Produce, Fetch,
ShareFetch and ShareAcknowledge when a leader has moved (KIP-951). Responses of the quorum's APIs have addresses of controllers,
those of Streams groups have addresses of applications; clients do not connect to these.
"""

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any

from groupcoord.dissect.message_schemas import response_layout
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.codec.message_codec import Codec
from groupcoord.protocol.codec.schema import MessageSchema
from groupcoord.protocol.errors import WireError
from groupcoord.protocol.messages import ApiVersionsResponse

LocalAddress = Callable[[str, int, int], tuple[str, int]]
"""(host, port, node id) of a broker → the host and port on which the proxy listens for it."""

NEWEST_READ = {
    **{
        int(key): APIS[key].max_version
        for key in (
            ApiKey.METADATA,
            ApiKey.FIND_COORDINATOR,
            ApiKey.DESCRIBE_CLUSTER,
            ApiKey.PRODUCE,
            ApiKey.FETCH,
            ApiKey.API_VERSIONS,
        )
    },
    int(ApiKey.SHARE_FETCH): 2,
    int(ApiKey.SHARE_ACKNOWLEDGE): 2,
}
"""The APIs whose responses are rewritten, and the newest version of each that can be rewritten."""
_LISTS = ("brokers", "coordinators", "node_endpoints")


def with_local_addresses(response: Any, local: LocalAddress) -> Any:
    """``response`` with its addresses replaced by ``local``; the same object if it has none."""
    changed = {}
    for name in _LISTS:
        nodes = getattr(response, name, ())
        if nodes:
            changed[name] = tuple(_local(node, local) for node in nodes)
    moved = dataclasses.replace(response, **changed) if changed else response
    return _local(moved, local) if hasattr(moved, "host") else moved


def _local(node: Any, local: LocalAddress) -> Any:
    if node.port <= 0:  # the broker is unknown
        return node
    host, port = local(node.host, node.port, getattr(node, "node_id", getattr(node, "broker_id", -1)))
    return dataclasses.replace(node, host=host, port=port)


def limited(response: ApiVersionsResponse) -> ApiVersionsResponse:
    """An ApiVersions response without versions whose responses could not be rewritten; the same object if there are none."""
    kept = tuple(
        dataclasses.replace(each, max_version=min(each.max_version, NEWEST_READ.get(each.api_key, each.max_version)))
        for each in response.api_keys
        if each.min_version <= NEWEST_READ.get(each.api_key, each.min_version)
    )
    return response if kept == response.api_keys else dataclasses.replace(response, api_keys=kept)


@cache
def share_codec(key: int, version: int) -> Codec[Any]:
    """The codec of ShareFetch and ShareAcknowledge responses. Raises WireError for an unknown version."""
    if version > NEWEST_READ[key]:
        raise WireError(f"version {version} is not known")
    return Codec(_with_plain_messages(response_layout(key, version).schema))


def _with_plain_messages(schema: MessageSchema) -> MessageSchema:
    """``schema`` with plain dataclasses of its own, because those of kio have other field names for times."""
    fields = tuple(
        field._replace(struct=field.struct and _with_plain_messages(field.struct)) for field in schema.fields
    )
    message = dataclasses.make_dataclass(
        schema.message.__name__,
        [(field.name, Any, dataclasses.field(default=() if field.is_array else None)) for field in fields],
        kw_only=True,
    )
    return schema._replace(message=message, fields=fields)
