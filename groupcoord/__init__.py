"""Apache Kafka's group coordination, small enough to hold in your hand and exact enough to trust.

The public API, by ``import groupcoord as gc``. Each name is imported when it is first used, so that the import itself is cheap.
Its types are in ``__init__.pyi``.
"""

import importlib
from typing import Any

_MODULES = {
    "events": "events",
    "Consumer": "client.consumer",
    "ConsumerRecord": "client.assigned_partitions",
    "Producer": "client.kafka_producer",
    "ErrorCode": "protocol.errors",
    "AutoMember": "testing.auto_member",
    "ClockError": "testing.cluster_clock",
    "Cluster": "testing.cluster",
    "ControlClient": "control.client",
    "FaultRulesFailed": "testing.faults",
    "GroupDescription": "testing.group_handle",
    "KafkaCluster": "testing.abstract_cluster",
    "ManualConsumer": "testing.manual_consumer_member",
    "ManualMember": "testing.manual_classic_member",
    "ManualProducer": "testing.manual_producer",
    "MemberDescription": "testing.group_handle",
    "ProducerRecord": "testing.record_writing",
    "RecordMetadata": "client.producer.sent_records",
    "RemoteCluster": "testing.remote_cluster",
    "SyncCluster": "testing.sync_api",
    "SyncRemoteCluster": "testing.sync_api",
    "Topic": "testing.topic_settings",
    "Trace": "testing.trace",
    "TransactionDescription": "testing.transaction_handle",
    "WaitTimeoutError": "testing.waiting",
    "assert_golden": "testing.trace.golden",
    "virtual_time": "testing.virtual_loop",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    found = globals()[name] = getattr(module, name, module)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
