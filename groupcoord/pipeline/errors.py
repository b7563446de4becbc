"""PipelineError, which stops a run, and SourceWarning, which a source reports without stopping it."""

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
