"""How a property of Kafka's is written as an environment variable: as in the image apache/kafka, with another prefix.

Source: ``kafka.docker.KafkaDockerWrapper``.
"""

PREFIX = "GROUPCOORD_"


def property_variable(name: str) -> str:
    """``group.max.size`` is ``GROUPCOORD_GROUP_MAX_SIZE``: capitals, ``_`` for a dot, ``__`` for ``_``, ``___`` for ``-``."""
    return PREFIX + name.replace("_", "__").replace("-", "___").replace(".", "_").upper()
