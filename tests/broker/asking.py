"""Sends requests to a broker as a client would: every request and response is encoded and parsed in its version."""

import itertools
import uuid
from typing import Any

from groupcoord.broker import topic_and_log_dispatch
from groupcoord.broker.broker import Broker
from groupcoord.config.broker_config import BrokerConfig
from groupcoord.core.effects import Call, Reply
from groupcoord.protocol.apis import APIS
from groupcoord.protocol.apis.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.framing import encode_request, encode_response, parse_request, parse_response

_API_OF = {api.request: api for api in APIS.values()}
NOW_MS = 1_000_000


class Asking:
    """A broker and someone who asks it; topic ids are 1000, 1001, ..."""

    def __init__(self, properties: dict[str, object] | None = None, *, config: BrokerConfig | None = None) -> None:
        self.ids = itertools.count(1000)
        self.broker = Broker(
            config or BrokerConfig.of(properties),
            new_topic_id=lambda: uuid.UUID(int=next(self.ids)),
            new_session_id=lambda: 1,
            now_ms=0,
        )

    def ask(self, request: Any, version: int | None = None) -> Any:
        """The answer to ``request`` in ``version``, or in the newest one."""
        api = _API_OF[type(request)]
        at = api.max_version if version is None else version
        parsed = parse_request(encode_request(api, at, 7, "client", request)[4:])
        call = Call(1, 7, api, at, "client", "/127.0.0.1")
        (reply,) = (
            one
            for one in topic_and_log_dispatch.handle(self.broker, call, parsed.message, NOW_MS)
            if isinstance(one, Reply)
        )
        assert reply.call is call
        return parse_response(api, at, encode_response(api, at, 7, reply.response)[4:])[1]

    def create(self, *names: str, **fields: Any) -> None:
        """Create topics, all in the same way; they must be created."""
        answer = self.ask(CreateTopicsRequest(topics=tuple(topic(name, **fields) for name in names)))
        assert [result.error_code for result in answer.topics] == [ErrorCode.NONE] * len(names)


def topic(
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    *,
    assignments: tuple[tuple[int, ...], ...] | dict[int, tuple[int, ...]] | None = None,
    configs: dict[str, str | None] | tuple[tuple[str, str | None], ...] = (),
) -> CreatableTopic:
    """A topic to create; with ``assignments`` by hand, of partitions 0, 1, ... or of those named."""
    places = assignments if isinstance(assignments, dict) else dict(enumerate(assignments or ()))
    if assignments is not None and (partitions, replicas) == (1, 1):
        partitions = replicas = -1
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers) for index, brokers in places.items()
        ),
        configs=tuple(
            CreatableTopicConfig(name=key, value=value)
            for key, value in (configs.items() if isinstance(configs, dict) else configs)
        ),
    )
