"""Arguments of the consumer, converted to what its parts need."""

from collections.abc import Iterable, Sequence

from groupcoord.assignors import ASSIGNORS, Assignor

DEFAULT_ASSIGNORS = ("range", "cooperative-sticky")
"""Kafka's own default: eager, and ready to go cooperative when ``range`` is taken away everywhere."""
ISOLATION_LEVELS = {"read_uncommitted": 0, "read_committed": 1}


def topic_names(topics: str | Iterable[str]) -> frozenset[str]:
    """The topics to subscribe to: one, or several. Raises ValueError if there is none."""
    names = frozenset([topics] if isinstance(topics, str) else topics)
    if not names or not all(names):
        raise ValueError("a consumer of a group subscribes to one topic at least, and topics have names")
    return names


def assignors_of(wanted: str | Assignor | Sequence[str | Assignor]) -> list[Assignor]:
    """Assignors by name or as they are, the most wanted first. Raises UnknownAssignorError."""
    listed: Sequence[str | Assignor] = (
        wanted if isinstance(wanted, Sequence) and not isinstance(wanted, str) else [wanted]
    )
    return [ASSIGNORS.create(each) if isinstance(each, str) else each for each in listed]


def isolation_level(name: str) -> int:
    """The number of an isolation level. Raises ValueError for one there is not."""
    if name not in ISOLATION_LEVELS:
        raise ValueError(f"isolation_level is one of {', '.join(ISOLATION_LEVELS)}, not {name}")
    return ISOLATION_LEVELS[name]
