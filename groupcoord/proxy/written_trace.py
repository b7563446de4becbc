"""WrittenTrace, a trace that writes each entry at once, as JSON and as text, so that nothing is lost when the process ends."""

import json
from typing import TextIO

from groupcoord.testing.trace import file_format
from groupcoord.testing.trace.events import TraceEntry
from groupcoord.testing.trace.trace import LIMIT, Trace


class WrittenTrace(Trace):
    """Writes each entry to ``json_file``, in the format of ``Trace.save``, and to ``text_file``, as a line of ``Trace.text``.

    The files get all entries; only the newest ``limit`` entries stay in memory. Errors of writing are raised.
    """

    def __init__(self, *, limit: int = LIMIT, json_file: TextIO | None = None, text_file: TextIO | None = None) -> None:
        super().__init__(limit=limit)
        self._json_file, self._text_file = json_file, text_file
        self._has_header = False

    def insert(self, entry: TraceEntry) -> None:
        """Append ``entry``, and write it."""
        super().insert(entry)
        if self._json_file is not None:
            if not self._has_header:
                self._has_header = True
                self._json_file.writelines(file_format.lines((), start_ms=self.start_ms, dropped={}))
            self._json_file.write(f"{json.dumps(file_format.entry_as_json(entry), ensure_ascii=False)}\n")
        if self._text_file is not None:
            self._text_file.write(f"{entry.text()}\n")
