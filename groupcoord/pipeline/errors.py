"""PipelineError, which stops a run; SourceWarning, which a source reports without stopping it; and the errors of Spark in plain
words."""

import re
from typing import NamedTuple


class PipelineError(Exception):
    """The input cannot be read, the output cannot be written, or something is not installed; the text says it in one line."""


class SourceWarning(NamedTuple):
    """One row of ``source_warnings``."""

    where: str
    what: str
    log_partition: int | None
    records: int | None
    bytes: int | None


_OF_PIPELINE = re.compile(r"(?:PipelineError|ClusterUnavailableError|OffsetOutOfRangeError): (.+)")
"""An error that the pipeline itself raised in a task."""
_FULL = re.compile(r"No space left on device|Disk quota exceeded|Not enough space")
_NO_PYTHON = re.compile(r'Cannot run program "([^"]+)"')
"""Python is the only program that Spark starts."""
_CAUSE = re.compile(r"^\s*Caused by: (?:[\w.$]+: )*(.+)", re.MULTILINE)
_PYTHON = re.compile(r"^(\w+(?:Error|Exception)(?:: .+)?)$", re.MULTILINE)
"""The last line of a Python stack trace."""
_CLASSES = re.compile(r"^: *(?:[\w.$]+: )*")
"""The class names that Py4J puts before a Java message."""


def plain_reason(problem: BaseException) -> str:
    """The reason in one line: the pipeline's own error, a full disk, a missing Python, the last error of Python or
    ``Caused by`` of Java, else the first line of the message."""
    text = str(problem)
    if found := _OF_PIPELINE.search(text):
        return found[1]
    if found := _FULL.search(text):
        return f"a disk is full, that of --out or that of spark.local.dir, where Spark sorts: {found[0]}"
    if found := _NO_PYTHON.search(text):
        return f"{found[1]} cannot be started: PYSPARK_PYTHON must name a Python of the driver and of each executor"
    if causes := _PYTHON.findall(text) or _CAUSE.findall(text):
        return str(causes[-1])
    for line in text.splitlines():
        if line.strip() and not line.startswith("An error occurred while calling"):
            return _CLASSES.sub("", line)
    return type(problem).__name__
