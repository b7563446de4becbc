"""The order in which Kafka's Java collections of names give them back, where it shows on the wire."""

from collections.abc import Iterable

from groupcoord.core.java import HashMap


def hash_order(names: Iterable[str]) -> list[str]:
    """The distinct ``names`` in the order of a ``HashSet`` or ``HashMap`` they were added to one by one."""
    ordered = HashMap[None]()
    for name in names:
        ordered[name] = None
    return list(ordered)
