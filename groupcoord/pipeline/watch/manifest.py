"""What a directory of ``watch`` holds, in one file: ``watch.json``. A batch is in the tables once this file says so.

The files of a batch are staged first. Then ``watch.json`` is replaced by one rename; it says which batch is in, and which files
are still to be moved to their places. Then they are moved. A process that finds moves in it at its start, because another one
was killed, makes them; files that were moved already are no longer at their origin.
"""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from groupcoord.pipeline.errors import PipelineError

FORMAT = 1
NONE = -1
"""The number of the batch before the first."""


@dataclass(frozen=True)
class BatchDirectory:
    """The rows of one or several batches in one directory of a table: ``batch=12``, or ``batch=0-99`` when it was merged."""

    first: int
    last: int
    rows: int
    level: int = 0
    """How often its rows have been merged."""

    @property
    def folder(self) -> str:
        """The name of the directory."""
        return f"batch={self.first}" if self.level == 0 else f"batch={self.first}-{self.last}"


@dataclass(frozen=True, kw_only=True)
class WatchManifest:
    """``source`` is what was asked for, ``identity`` what that is, so that another one is noticed.

    ``checkpoint`` is the id in Spark's checkpoint, ``writer`` the id of the watch, ``batch`` the last batch that is in, ``at``
    its time, ``records`` their number in all batches, ``positions`` the offset up to which each partition of the log was read,
    ``directories`` the directories of each table that grows, ``moves`` pairs of paths below the directory: from where to where.
    """

    source: str
    identity: dict[str, str]
    writer: str
    checkpoint: str | None = None
    batch: int = NONE
    at: str | None = None
    records: int = 0
    positions: dict[str, int] = field(default_factory=dict)
    directories: dict[str, list[BatchDirectory]] = field(default_factory=dict)
    moves: list[tuple[str, str]] = field(default_factory=list)

    def to_json(self) -> str:
        """The text of the file."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n"

    @staticmethod
    def from_json(text: str, where: str) -> "WatchManifest":
        """The manifest in ``text``. Raises PipelineError."""
        try:
            fields: dict[str, Any] = json.loads(text)
            if fields.pop("format") != FORMAT:
                raise PipelineError(f"{where} was written by another version of groupcoord")
            fields["directories"] = {
                name: [BatchDirectory(**directory) for directory in directories]
                for name, directories in fields["directories"].items()
            }
            fields["moves"] = [(origin, target) for origin, target in fields["moves"]]
            return WatchManifest(**fields)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise PipelineError(f"{where} is not what pipeline watch writes there") from None
