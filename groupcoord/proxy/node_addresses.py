"""Where brokers are, in answers: found, and replaced by the proxy's own addresses, so that clients go on talking to the proxy.

Those answers carry addresses that clients connect to: Metadata, FindCoordinator and DescribeCluster; Produce, Fetch, ShareFetch
and ShareAcknowledge where a leader has moved (KIP-951). Addresses in the answers of the quorum's APIs are those of controllers,
and in the answers of Streams groups those of applications: clients are not sent there.
"""

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any

from groupcoord.dissect.message_layouts import response_layout
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.codec.message_codec import Codec
from groupcoord.protocol.codec.schema import MessageSchema
from groupcoord.protocol.errors import WireError
from groupcoord.protocol.messages import ApiVersionsResponse

LocalAddress = Callable[[str, int, int], tuple[str, int]]
"""(host, port, node id) of a broker → host and port of the proxy that stand for it."""

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
"""The APIs whose answers are rewritten, and the newest version of each that can be."""
_LISTS = ("brokers", "coordinators", "node_endpoints")


def with_local_addresses(response: Any, local: LocalAddress) -> Any:
    """``response`` with the addresses that ``local`` says; the same object if it has none."""
    changed = {}
    for name in _LISTS:
        nodes = getattr(response, name, ())
        if nodes:
            changed[name] = tuple(_local(node, local) for node in nodes)
    moved = dataclasses.replace(response, **changed) if changed else response
    return _local(moved, local) if hasattr(moved, "host") else moved


def _local(node: Any, local: LocalAddress) -> Any:
    if node.port <= 0:  # no such broker is known
        return node
    host, port = local(node.host, node.port, getattr(node, "node_id", getattr(node, "broker_id", -1)))
    return dataclasses.replace(node, host=host, port=port)


def limited(response: ApiVersionsResponse) -> ApiVersionsResponse:
    """The versions that the cluster offers, without those whose answers could not be rewritten; the same object if all can."""
    kept = tuple(
        dataclasses.replace(each, max_version=min(each.max_version, NEWEST_READ.get(each.api_key, each.max_version)))
        for each in response.api_keys
        if each.min_version <= NEWEST_READ.get(each.api_key, each.min_version)
    )
    return response if kept == response.api_keys else dataclasses.replace(response, api_keys=kept)


@cache
def share_codec(key: int, version: int) -> Codec[Any]:
    """The codec of answers of ShareFetch and ShareAcknowledge. Raises WireError for a version that is not known."""
    if version > NEWEST_READ[key]:
        raise WireError(f"version {version} is not known")
    return Codec(_with_plain_messages(response_layout(key, version).schema))


def _with_plain_messages(schema: MessageSchema) -> MessageSchema:
    """``schema``, which reads into dataclasses of its own: those of kio have other names for times."""
    fields = tuple(
        field._replace(struct=field.struct and _with_plain_messages(field.struct)) for field in schema.fields
    )
    message = dataclasses.make_dataclass(
        schema.message.__name__,
        [(field.name, Any, dataclasses.field(default=() if field.is_array else None)) for field in fields],
        kw_only=True,
    )
    return schema._replace(message=message, fields=fields)
