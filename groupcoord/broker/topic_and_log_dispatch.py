"""The table of handlers by API key, for every API that is not about groups or transactions. Source: ``KafkaApis.handle``.

A handler is ``handle_x(broker, ctx, call, request) -> None``. It replies through ``ctx``, at once or later.
"""

from collections.abc import Callable, Mapping
from typing import Any

from groupcoord.broker.alter_configs import handle_alter_configs, handle_incremental_alter_configs
from groupcoord.broker.broker import Broker
from groupcoord.broker.delete_records import handle_delete_records
from groupcoord.broker.describe_configs import handle_describe_configs
from groupcoord.broker.describe_log_dirs import handle_describe_log_dirs
from groupcoord.broker.describe_producers import handle_describe_producers
from groupcoord.broker.fetch import handle_fetch
from groupcoord.broker.init_producer_id import handle_init_producer_id
from groupcoord.broker.list_config_resources import handle_list_config_resources
from groupcoord.broker.list_offsets import handle_list_offsets
from groupcoord.broker.metadata import handle_describe_cluster, handle_describe_topic_partitions, handle_metadata
from groupcoord.broker.offset_for_leader_epoch import handle_offset_for_leader_epoch
from groupcoord.broker.produce import handle_produce
from groupcoord.broker.topic_admin import handle_create_partitions, handle_create_topics, handle_delete_topics
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call, Effect
from groupcoord.protocol.apis import ApiKey

Handler = Callable[[Broker, HandlerContext, Call, Any], None]

HANDLERS: Mapping[ApiKey, Handler] = {
    ApiKey.PRODUCE: handle_produce,
    ApiKey.FETCH: handle_fetch,
    ApiKey.LIST_OFFSETS: handle_list_offsets,
    ApiKey.DELETE_RECORDS: handle_delete_records,
    ApiKey.INIT_PRODUCER_ID: handle_init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: handle_offset_for_leader_epoch,
    ApiKey.CREATE_PARTITIONS: handle_create_partitions,
    ApiKey.DELETE_TOPICS: handle_delete_topics,
    ApiKey.CREATE_TOPICS: handle_create_topics,
    ApiKey.DESCRIBE_CLUSTER: handle_describe_cluster,
    ApiKey.METADATA: handle_metadata,
    ApiKey.DESCRIBE_CONFIGS: handle_describe_configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: handle_incremental_alter_configs,
    ApiKey.ALTER_CONFIGS: handle_alter_configs,
    ApiKey.LIST_CONFIG_RESOURCES: handle_list_config_resources,
    ApiKey.DESCRIBE_PRODUCERS: handle_describe_producers,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: handle_describe_topic_partitions,
    ApiKey.DESCRIBE_LOG_DIRS: handle_describe_log_dirs,
}


def handle(broker: Broker, call: Call, request: Any, now_ms: int) -> list[Effect]:
    """Handle ``request`` at ``broker``; returns the effects, in order. Raises KeyError for an API without a handler here."""
    ctx = HandlerContext(now_ms, call)
    HANDLERS[call.api.key](broker, ctx, call, request)
    return ctx.effects
