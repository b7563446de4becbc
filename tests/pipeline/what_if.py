"""Small histories of one group for the replay, without Spark."""

from collections.abc import Mapping, Sequence
from typing import Any

from groupcoord.assignors import ASSIGNORS, Registry
from groupcoord.pipeline.assignor_replay.assignor_choice import RECORDED_HISTORY, choices
from groupcoord.pipeline.assignor_replay.replay import rows

AssignmentArrays = Mapping[str, Sequence[int]]


def _grouped(given: AssignmentArrays | None) -> list[dict[str, Any]] | None:
    return None if given is None else [{"topic": topic, "partitions": list(some)} for topic, some in given.items()]


def person(member_id: str, assigned: AssignmentArrays | None = None, **said: Any) -> dict[str, Any]:
    """A member; without anything said it wants ``t``."""
    return {
        "member_id": member_id,
        "who": f"i:{said['instance']}" if "instance" in said else f"m:{member_id}",
        "instance_id": said.get("instance"),
        "topics": said.get("topics", ["t"]),
        "rack": said.get("rack"),
        "owned": _grouped(said.get("owned", {})),
        "assigned": _grouped(assigned),
    }


def record(offset: int, generation: int | None, *people: dict[str, Any], **said: Any) -> dict[str, Any]:
    """A record that describes the group; without anything said a new generation, 0.1 s after its join phase."""
    return {
        "topic": None,
        "log_partition": 0,
        "log_offset": offset,
        "at": offset,
        "generation": generation,
        "leader": people[0]["member_id"] if people else None,
        "protocol": said.get("protocol", "range"),
        "begins": said.get("begins", True),
        "follows": said.get("follows", False),
        "goes_on": said.get("goes_on", False),
        "modern": said.get("modern", False),
        "assign_and_sync_ms": said.get("took", 100),
        "problem": said.get("problem"),
        "members": list(people),
    }


def topic(name: str, partitions: int, since: int = 0) -> dict[str, Any]:
    """From then on a topic has so many partitions."""
    return {"topic": name, "partitions": partitions, "at": since}


def play(assignor: str, *said: dict[str, Any], registry: Registry = ASSIGNORS) -> list[dict[str, Any]]:
    """The rows of what_if that ``said`` gives with one assignor, or as it was."""
    chosen = () if assignor == RECORDED_HISTORY else choices(assignor, registry)
    history = ({"group": "g", "assignor": assignor, **one} for one in said)
    return list(rows(history, {choice.spec: choice for choice in chosen}))


def columns(found: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    """Only these columns."""
    return [tuple(row.get(name) for name in names) for row in found]
