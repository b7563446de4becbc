"""Whose each partition was, generation by generation.

A cooperative rebalance has generations in which nobody has some partitions (KIP-429); so the owner before is not that of the
generation before, but the last one there was. A static member that comes back under a new member id is still who it was
(KIP-345).
"""

from pyspark.sql import DataFrame

from groupcoord.pipeline.schemas import OWNERSHIP
from groupcoord.pipeline.tables.hands import HANDS, hands

IDENTITY = "if(m.instance_id is null, concat('m:', m.member_id), concat('i:', m.instance_id))"
"""Who the member ``m`` is, across member ids."""


def owners(generations: DataFrame) -> DataFrame:
    """HANDS of all groups in ``generations``; a tombstone is a generation of nobody. A task has whole groups, one after the
    other."""
    given = generations.select("log_partition", "log_offset", "append_ts", "group", "generation", "members").selectExpr(
        "* except (members)",
        f"""transform(members, m -> struct(m.member_id as member_id, m.client_id as client_id, {IDENTITY} as who,
            m.assigned as assigned)) as members""",
    )
    return given.repartition("group").sortWithinPartitions("group", "log_offset").mapInArrow(hands, HANDS.ddl)


def ownership(owned: DataFrame) -> DataFrame:
    """The changes in what ``owners`` gave: a new owner, or nobody any more."""
    return owned.where("moved is null").select(*OWNERSHIP.names)
