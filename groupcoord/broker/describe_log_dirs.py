"""DescribeLogDirs (versions 1–5): the log directory of a broker, and the sizes of the logs in it.

Source: ``ReplicaManager.describeLogDirs``.
"""

from typing import Any

from groupcoord.broker.broker import Broker
from groupcoord.broker.storage_backend import LogDirectory
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.protocol.apis.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def handle_describe_log_dirs(broker: Broker, ctx: HandlerContext, call: Call, request: DescribeLogDirsRequest) -> None:
    """Respond with those of the requested logs that the broker has; others are left out."""
    asked = (
        None if request.topics is None else {(each.topic, one) for each in request.topics for one in each.partitions}
    )
    here = broker.cluster.id_of(call)
    topics = []
    for topic in broker.topics.all():
        logs = tuple(
            DescribeLogDirsPartition(
                partition_index=index, partition_size=broker.log_here(call, topic, index).size, offset_lag=0
            )
            for index, replicas in enumerate(topic.metadata.replicas)
            if here in replicas and (asked is None or (topic.name, index) in asked)
        )
        if logs:
            topics.append(DescribeLogDirsTopic(name=topic.name, partitions=logs))
    configured: Any = broker.config["log.dirs"] or broker.config["log.dir"]
    directory = broker.storage.log_directory(here) or LogDirectory(configured[0], -1, -1)
    result = DescribeLogDirsResult(
        log_dir=directory.path,
        topics=tuple(topics),
        total_bytes=directory.total_bytes,
        usable_bytes=directory.usable_bytes,
    )
    ctx.reply(call, DescribeLogDirsResponse(results=(result,)))
