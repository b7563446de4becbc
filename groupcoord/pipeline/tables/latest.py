"""The last record of each key, as compaction would leave it."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

PLACE = ["log_partition", "log_offset"]


def latest_places(records: DataFrame, keys: list[str]) -> DataFrame:
    """Where the last record of each of ``keys`` is.

    Maxima of numbers are added up in a hash table; a maximum of whole rows would sort all records first, five times as long.
    A key is in one partition of the log, as a group is.
    """
    return records.select(*keys, *PLACE).groupBy(*keys).agg(*(F.max(name).alias(name) for name in PLACE)).select(*PLACE)


def at_places(records: DataFrame, places: DataFrame) -> DataFrame:
    """The records at ``places``. Spark sends these to all tasks where they are few, as its own estimate says."""
    return records.join(places, PLACE, "left_semi").select(*records.columns)
