"""From what was decoded to the tables of records: commits, generations, modern_records, bad_records."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupcoord.pipeline.decode.split import REST, rest
from groupcoord.pipeline.schemas import COMMITS, LOG, Table


def undecoded(split: DataFrame) -> DataFrame:
    """The records that the fast decoder left, as LOG."""
    others = split.where("not is_commit")
    return others.select("*", F.unbase64("topic").alias("key"), F.unbase64("metadata").alias("value")).select(
        *LOG.names
    )


def decode_rest(log: DataFrame) -> DataFrame:
    """``log``, decoded record by record: as REST."""
    return log.select(*LOG.names).mapInArrow(rest, REST.ddl)


def table_of_rest(decoded: DataFrame, table: Table) -> DataFrame:
    """The rows of ``table`` in what ``decode_rest`` gave."""
    places, columns = table.names[:3], table.names[3:]
    rows = decoded.where(F.col("table") == table.name)
    return rows.select(*places, *(F.col(table.name)[name].alias(name) for name in columns))


def commits(split: DataFrame, decoded: DataFrame) -> DataFrame:
    """All commits: those decoded at once, and the odd ones."""
    return split.where("is_commit").select(*COMMITS.names).unionByName(table_of_rest(decoded, COMMITS))
