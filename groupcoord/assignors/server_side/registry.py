"""The server-side assignors by name."""

from collections.abc import Callable

from groupcoord.assignors.server_side.group_spec import GroupSpec, TargetAssignment
from groupcoord.assignors.server_side.range_assignor import assign_range
from groupcoord.assignors.server_side.simple_assignor import assign_simple
from groupcoord.assignors.server_side.uniform_assignor import assign_uniform

SERVER_ASSIGNORS: dict[str, Callable[[GroupSpec], TargetAssignment]] = {
    "uniform": assign_uniform,
    "range": assign_range,
    "simple": assign_simple,
}
"""Kafka's names: uniform and range are for ``group.consumer.assignors``, simple is for share groups."""
