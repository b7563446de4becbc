"""What a source has to say beside its records."""

from typing import NamedTuple


class Remark(NamedTuple):
    """One row of ``source_remarks``."""

    where: str
    what: str
    log_partition: int | None
    records: int | None
    bytes: int | None
