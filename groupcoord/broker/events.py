"""What happens to logs by itself, for those who want to see it."""

from dataclasses import dataclass

from groupcoord.core.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCleaned(Event):
    """``log`` was compacted up to ``end_offset``; what lies before ``first_dirty_offset`` had been compacted before."""

    log: str
    first_dirty_offset: int
    end_offset: int
    records_read: int
    records_kept: int
    bytes_read: int
    bytes_kept: int

    def text(self) -> str:
        records = f"{self.records_kept} of {self.records_read} records"
        return f"{self.log} is compacted up to offset {self.end_offset}: {records} are kept, {self.bytes_kept} bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogNotCleaned(Event):
    """``log`` cannot be compacted."""

    log: str
    why: str

    def text(self) -> str:
        return f"{self.log} cannot be compacted: {self.why}"
