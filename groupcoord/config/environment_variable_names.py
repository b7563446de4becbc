"""The names of properties as environment variables, as in the image apache/kafka, with the prefix GROUPCOORD_.

Source: ``kafka.docker.KafkaDockerWrapper``.
"""

PREFIX = "GROUPCOORD_"


def property_variable(name: str) -> str:
    """``group.max.size`` is ``GROUPCOORD_GROUP_MAX_SIZE``: capitals, ``_`` for a dot, ``__`` for ``_``, ``___`` for ``-``."""
    return PREFIX + name.replace("_", "__").replace("-", "___").replace(".", "_").upper()
