"""The rules for topic names, and the names of internal topics. Source: ``org.apache.kafka.common.internals.Topic``."""

import re

LONGEST_NAME = 249
CLUSTER_METADATA = "__cluster_metadata"  # KRaft's metadata log: no topic may have this name
CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
INTERNAL = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE})

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def fault_of(name: str) -> str | None:
    """Why ``name`` is not a valid topic name, in Kafka's words; None if it is valid."""
    if not name:
        return "the empty string is not allowed"
    if name in {".", ".."}:
        return f"'{name}' is not allowed"
    if len(name) > LONGEST_NAME:
        return f"the length of '{name}' is longer than the max allowed length {LONGEST_NAME}"
    if not _LEGAL.fullmatch(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def fault_text(name: str) -> str | None:
    """The message of INVALID_TOPIC_EXCEPTION for ``name``; None if it is valid."""
    fault = fault_of(name)
    return None if fault is None else f"Topic name is invalid: {fault}"


def collision_key(name: str) -> str | None:
    """The key that is equal for two names that may not both exist, because metric names have ``_`` for both ``.`` and ``_``."""
    return name.replace(".", "_") if "." in name or "_" in name else None
