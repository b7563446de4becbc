"""What Spark says went wrong, in one sentence: what it says itself is hundreds of lines of Java's and Python's stacks."""

import re

_OF_PIPELINE = re.compile(r"(?:PipelineError|ClusterUnavailableError|OffsetOutOfRangeError): (.+)")
"""What a task raised."""
_FULL = re.compile(r"No space left on device|Disk quota exceeded|Not enough space")
_CAUSE = re.compile(r"^\s*Caused by: (?:[\w.$]+: )*(.+)", re.MULTILINE)
_PYTHON = re.compile(r"^(\w+(?:Error|Exception)(?:: .+)?)$", re.MULTILINE)
"""The last line of a stack of Python."""
_CLASSES = re.compile(r"^: *(?:[\w.$]+: )*")
"""What Java's messages begin with, where Python shows them."""


def plain_reason(problem: BaseException) -> str:
    """Why it failed: what a task said, else the cause that Java names last, else the first line."""
    text = str(problem)
    if found := _OF_PIPELINE.search(text):
        return found[1]
    if found := _FULL.search(text):
        return f"a disk is full, that of --out or that of spark.local.dir, where Spark sorts: {found[0]}"
    if causes := _PYTHON.findall(text) or _CAUSE.findall(text):
        return str(causes[-1])
    for line in text.splitlines():
        if line.strip() and not line.startswith("An error occurred while calling"):
            return _CLASSES.sub("", line)
    return type(problem).__name__
