"""What a broker answers whose metadata is behind the controller's, or whose replicas are behind their leader.

Both are ordinary moments of a real cluster that a test on one quick broker never sees.
"""

from dataclasses import replace
from typing import Any

from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.errors import ErrorCode

TOPIC_METADATA_APIS = (ApiKey.METADATA, ApiKey.DESCRIBE_TOPIC_PARTITIONS)
"""The APIs whose answers describe the partitions of topics."""


def hide_topic(request: Any, answer: Any, topic: str) -> Any:
    """The ``answer`` of a broker that has not heard of ``topic`` yet (``KRaftMetadataCache``).

    Who names the topic is told UNKNOWN_TOPIC_OR_PARTITION, and who gives its id UNKNOWN_TOPIC_ID. A list of all topics is
    without it.
    """
    named = {each.name for each in request.topics or ()}
    ids = {getattr(each, "topic_id", None) for each in request.topics or ()} - {None}
    shown = []
    for found in answer.topics:
        if found.name != topic:
            shown.append(found)
        elif topic in named:
            shown.append(type(found)(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=topic))
        elif found.topic_id in ids:
            shown.append(type(found)(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=found.topic_id))
    return replace(answer, topics=tuple(shown))


def shrink_isr(answer: Any, topic: str | None, broker: int) -> Any:
    """The ``answer`` when ``broker`` has fallen behind as a follower of ``topic``, or of every topic: no ISR has it.

    Partitions that it leads stay as they are: a leader is in its own ISR.
    """

    def shrunk(partition: Any) -> Any:
        if partition.leader_id == broker:
            return partition
        return replace(partition, isr_nodes=tuple(each for each in partition.isr_nodes if each != broker))

    topics = (
        replace(found, partitions=tuple(map(shrunk, found.partitions))) if topic in (None, found.name) else found
        for found in answer.topics
    )
    return replace(answer, topics=tuple(topics))
