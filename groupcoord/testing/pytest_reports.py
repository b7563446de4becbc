"""The sections that the pytest plugin adds to a failed test's report, one for each cluster that it used, and the trace files
for CI."""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from groupcoord.testing.cluster import STARTED, Cluster
from groupcoord.testing.trace import Trace

TITLE = "what happened on the broker"
MOST_CHARACTERS = 180
"""The longest file name, without the hash and number at its end; file systems allow 255 bytes."""
_NOT_IN_NAMES = re.compile(r'[^\x20-\x7e]|[\\/:*?"<>|]')
"""Characters that a file system, or a CI's artifact store, refuses in a name."""

SeenBefore = Mapping[int, tuple[Trace, int]]
"""Number of a cluster → its trace and the number of the last trace entry when the test began."""


def seen_now() -> SeenBefore:
    """The present state of the traces of all clusters. Those that have ended are forgotten: no test can use them any more."""
    for number in [number for number, cluster in STARTED.items() if cluster.has_ended]:
        del STARTED[number]
    return {number: (cluster.trace, cluster.trace.last_seq) for number, cluster in STARTED.items()}


def sections(test_id: str, seen_before: SeenBefore, directory: Path | None) -> Iterator[tuple[str, str]]:
    """(title, text) for each cluster that is new or whose trace has grown since ``seen_before``.

    With a ``directory``, the whole trace of each is saved there, in a file named after the test.
    """
    used: list[tuple[Cluster, int]] = []
    for number, cluster in tuple(STARTED.items()):
        trace, seq = seen_before.get(number, (None, -1))
        after = seq if trace is cluster.trace else -1
        if cluster.trace.last_seq > after:
            used.append((cluster, after))
    for place, (cluster, after) in enumerate(used, 1):
        title = TITLE if len(used) == 1 else f"{TITLE} at {cluster.address}"
        text = _attempt(partial(cluster.report, after=after))
        if directory is not None:
            path = directory / file_name(test_id, place)
            text += "\n\n" + _attempt(partial(_saved, cluster.trace, path))
        yield title, text


def file_name(test_id: str, place: int = 1) -> str:
    """The name of the trace file of the ``place``-th cluster of a test: ``tests.test_orders.py--test_it[a].jsonl``.

    Characters that are not allowed are replaced, and long names are cut; then a hash of the test's id keeps the name unique.
    """
    path, colons, name = test_id.partition("::")
    plain = path.replace("/", ".") + (colons + name).replace("::", "--")
    fitting = _NOT_IN_NAMES.sub("-", plain)[:MOST_CHARACTERS]
    if fitting != plain:
        fitting += f"-{hashlib.sha256(test_id.encode()).hexdigest()[:8]}"
    return f"{fitting}.jsonl" if place == 1 else f"{fitting}-{place}.jsonl"


def _saved(trace: Trace, path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    trace.save(path)
    return f"the whole trace is in {path}"


def _attempt(told: Callable[[], str]) -> str:
    try:
        return told()
    except Exception as problem:  # an error of the report must not hide the failure of the test
        return f"(this cannot be told: {problem!r})"
