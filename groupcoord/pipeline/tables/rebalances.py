"""One generation compared with the one before: which members joined and left, what moved, what moved needlessly, and why.

Generations are those of classic groups and the target assignments of all others, in one frame: a group that became one of
another kind is compared with what it was before. The log does not say why a group rebalanced. It has the members before and
after, with client ids, hosts, subscriptions and the assignor. Leaving and timing out look the same. The first rule for a cause
that applies counts. Storms are rebalances that follow one another; skew is how evenly partitions were assigned.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from groupcoord.pipeline.schemas import REBALANCES, SKEW, STORMS
from groupcoord.pipeline.tables.current_state import PLACE
from groupcoord.pipeline.tables.group_history import FIRST_EPOCH
from groupcoord.pipeline.tables.ownership_changes import IDENTITY


def of_all_kinds(classic: DataFrame, modern: DataFrame) -> DataFrame:
    """The generations of ``classic`` (GENERATIONS) and of ``modern`` (MODERN_GENERATIONS) groups."""
    return classic.withColumn("kind", F.lit("classic")).unionByName(modern, allowMissingColumns=True)


def _names(people: str) -> str:
    """The first three names in the array ``people``, and how many more there are."""
    return f"""concat(
        array_join(slice(sort_array(array_distinct(transform({people}, p -> p.name))), 1, 3), ', '),
        if(size(array_distinct(transform({people}, p -> p.name))) > 3,
           concat(' and ', size(array_distinct(transform({people}, p -> p.name))) - 3, ' more'), ''),
        if(size({people}) > size(array_distinct(transform({people}, p -> p.name))),
           concat(' (', size({people}), ' members)'), ''))"""


def _machines(people: str) -> str:
    return f"sort_array(transform({people}, p -> concat(p.client, ' ', p.host)))"


_RULES = {
    "log_begins": ("is_unknown", "'the log begins here: what was before is compacted away'"),
    "became_consumer": (
        "old_kind = 'classic' and kind = 'consumer' and not old_is_tombstone",
        "'a classic group became a consumer group'",
    ),
    "became_classic": (
        "old_kind = 'consumer' and kind = 'classic' and not old_is_tombstone",
        "'a consumer group became a classic one'",
    ),
    "empty_join": ("members_after = 0 and members_before = 0", "'a join phase ended without members'"),
    "group_emptied": ("members_after = 0", f"concat('everybody left or timed out; the last: ', {_names('leavers')})"),
    "group_started": (
        "members_before = 0 and coalesce(previous_generation, 0) = 0",
        f"concat('the group began: ', {_names('newcomers')}, ' joined')",
    ),
    "group_refilled": ("members_before = 0", f"concat({_names('newcomers')}, ' joined a group that was empty')"),
    "assignor_changed": (
        "protocol_before <> protocol_after",
        "concat('the assignor changed from ', protocol_before, ' to ', protocol_after)",
    ),
    "members_restarted": (
        f"size(newcomers) > 0 and {_machines('newcomers')} = {_machines('leavers')}",
        f"concat({_names('newcomers')}, ' restarted: the same client ids and hosts under new member ids')",
    ),
    "members_joined_and_left": (
        "size(newcomers) > 0 and size(leavers) > 0",
        f"concat({_names('newcomers')}, ' joined; ', {_names('leavers')}, ' left or timed out')",
    ),
    "members_joined": ("size(newcomers) > 0", f"concat({_names('newcomers')}, ' joined')"),
    "members_left": ("size(leavers) > 0", f"concat({_names('leavers')}, ' left or timed out')"),
    "subscription_changed": (
        "size(array_except(topics, old_topics)) > 0 or size(array_except(old_topics, topics)) > 0",
        """concat('the subscription changed:',
            if(size(array_except(topics, old_topics)) > 0,
               concat(' now also ', array_join(sort_array(array_except(topics, old_topics)), ', ')), ''),
            if(size(array_except(old_topics, topics)) > 0,
               concat(' no longer ', array_join(sort_array(array_except(old_topics, topics)), ', ')), ''))""",
    ),
    "static_member_returned": (
        "size(returned) > 0",
        f"concat({_names('returned')}, ' came back under another member id')",
    ),
    "cooperative_second_step": (
        "old_total < partitions_total and protocol_after like '%cooperative%'",
        "'second step of a cooperative rebalance: what had been given up was handed out'",
    ),
    "partitions_added": ("old_total < partitions_total", "'there are more partitions than before'"),
    "partitions_removed": ("old_total > partitions_total", "'there are fewer partitions than before'"),
    "topics_changed": ("metadata_hash <> old_metadata_hash", "'topics came or went, or have other partitions'"),
    "other": ("kind <> 'classic'", "'nobody came or went, and nobody asked for anything else'"),
    "member_rejoined": (
        "true",
        "'nobody came or went: a member joined again, as after a poll that took too long or a lost connection'",
    ),
}

_HIDDEN = """
    if(coalesce(hidden_generations, 0) > 0 and not is_unknown,
       concat('; before it, ', hidden_generations, if(kind = 'classic', ' generation', ' epoch'),
              if(hidden_generations = 1, '', 's'),
              if(kind = 'classic', ' that left no record', ' without a target assignment')), '')
"""

CAUSE_KIND = "case " + " ".join(f"when {condition} then '{kind}'" for kind, (condition, _) in _RULES.items()) + " end"
LIKELY_CAUSE = (
    "concat(case "
    + " ".join(f"when {condition} then {text}" for condition, text in _RULES.values())
    + f" end, {_HIDDEN})"
)
"""Expressions over the columns of ``_compared``: one of CAUSE_KINDS, and the same in words."""


FEWEST = 5
"""The fewest rebalances that make a storm."""
APART_S = 60
"""The longest time between two rebalances of a storm."""


def storms(rebalances: DataFrame) -> DataFrame:
    """Runs of at least FEWEST rebalances of a group, each at most APART_S after the one before, but for mere starts."""
    in_group = Window.partitionBy("group").orderBy("log_offset")
    starts = F.sum(F.when(F.col("seconds_since_previous") <= APART_S, 0).otherwise(1)).over(in_group)
    runs = rebalances.select("*", starts.alias("run"))
    causes = (
        runs.groupBy("group", "run", "likely_cause")
        .agg(F.count("*").alias("times"))
        .groupBy("group", "run")
        .agg(F.sort_array(F.collect_list(F.struct(-F.col("times"), "likely_cause"))).alias("counted"))
        .select("group", "run", F.expr("transform(counted, c -> c.likely_cause)").alias("likely_causes"))
    )
    kinds = (
        runs.groupBy("group", "run", "cause_kind")
        .agg(F.count("*").alias("times"))
        .groupBy("group", "run")
        .agg(F.min(F.struct(-F.col("times"), "cause_kind")).alias("first"), F.max("times").alias("times"))
        .select("group", "run", "first.cause_kind", F.col("times").cast("int").alias("of_cause_kind"))
    )
    members = (
        runs.select("group", "run", "cause_kind", F.expr("inline(came_and_went)"))
        .groupBy("group", "run", "cause_kind", "name")
        .agg(F.count("*").alias("times"), F.max("members").alias("members"))
        .groupBy("group", "run", "cause_kind")
        .agg(F.sort_array(F.collect_list(F.struct(-F.col("times"), "name", "members"))).alias("counted"))
        .select(
            *("group", "run", "cause_kind"),
            F.expr("transform(slice(counted, 1, 4), c -> struct(c.name, c.members)) as came_and_went"),
        )
    )
    return (
        runs.groupBy("group", "run")
        .agg(
            F.min("log_partition").alias("log_partition"),
            F.max_by("kind", "log_offset").alias("kind"),
            F.min("at").alias("from"),
            F.max("at").alias("to"),
            F.count("*").cast("int").alias("rebalances"),
            F.coalesce(F.sum("hidden_generations"), F.lit(0)).cast("int").alias("hidden_generations"),
            F.min("members_after").alias("members_lowest"),
            F.max("members_after").alias("members_highest"),
            F.sum("moved").cast("int").alias("moved"),
            _is_start().alias("is_start"),
        )
        .where((F.col("rebalances") >= FEWEST) & ~F.col("is_start"))
        .join(causes, ["group", "run"])
        .join(kinds, ["group", "run"])
        .join(members, ["group", "run", "cause_kind"], "left")
        .select(*STORMS.names)
    )


_BEGIN = ("group_started", "group_refilled")


def _is_start() -> Column:
    """Of a run: do members only come into a group that had none, each with the rebalances that takes?"""
    is_coming = F.col("cause_kind").isin(*_BEGIN, "members_joined", "cooperative_second_step")
    return F.min_by("cause_kind", "log_offset").isin(*_BEGIN) & F.bool_and(is_coming)


def skew(generations: DataFrame) -> DataFrame:
    """One row for each member of each of ``generations`` whose assignment could be read."""
    return (
        generations.where("not is_tombstone")
        .selectExpr(
            "*",
            """transform(filter(members, m -> m.assigned is not null), m -> struct(
                m.member_id as member,
                m.client_id as client_id,
                aggregate(m.assigned, 0, (sum, a) -> sum + size(a.partitions)) as partitions)) as shares""",
        )
        .where("size(shares) > 0")
        .select(
            "*",
            F.expr("aggregate(shares, 0, (sum, s) -> sum + s.partitions) / size(shares)").alias("fair_share"),
            F.expr("inline(shares)"),
        )
        .select(*SKEW.names)
    )


_SIZE = "aggregate(coalesce(m.assigned, array()), 0, (sum, a) -> sum + size(a.partitions))"


def rebalances(generations: DataFrame, owned: DataFrame) -> DataFrame:
    """Of ``generations``, those that begin, compared with the one before; ``owned`` is what ``find_ownership_changes`` gives of
    them."""
    compared = _compared(generations)
    return (
        compared.join(owned.where("moved is not null").select(*PLACE, "moved", "kept", "could_stay"), PLACE, "left")
        .select(
            "*",
            F.expr("cast(greatest(0, could_stay - kept) as int)").alias("moved_needlessly"),
            F.expr(CAUSE_KIND).alias("cause_kind"),
            F.expr(LIKELY_CAUSE).alias("likely_cause"),
        )
        .select(*REBALANCES.names)
    )


_OF_NAME = "size(filter({}, p -> p.name = n))"


def _compared(generations: DataFrame) -> DataFrame:
    """Each generation beside the record before it.

    No rebalance are a further record of the same generation, and generation 0, with which a group is made.
    """
    in_group = Window.partitionBy("group").orderBy("log_offset")
    after = {name: F.lead(name).over(in_group) for name in ("kind", "append_ts")}
    # A group that becomes one of another kind ends as the one and is there as the other at once: that is no end of the group.
    is_other = F.col("is_tombstone") & (after["kind"] != F.col("kind")) & (after["append_ts"] == F.col("append_ts"))
    described = (
        generations.select("*", F.coalesce(is_other, F.lit(False)).alias("is_other"))  # noqa: FBT003 - Spark's signature
        .where("not is_other")
        .select(
            "*",
            F.expr("coalesce(append_ts, state_ts)").alias("at"),
            F.expr(f"transform(members, m -> {IDENTITY})").alias("whos"),
            F.expr(
                f"transform(members, m -> struct(m.member_id as id, {IDENTITY} as who, "
                "coalesce(m.instance_id, m.client_id) as name, m.client_id as client, m.client_host as host))"
            ).alias("people"),
            F.expr("array_distinct(flatten(transform(members, m -> coalesce(m.topics, array()))))").alias("topics"),
            F.expr(f"transform(members, m -> {_SIZE})").alias("shares"),
        )
    )
    carried = (
        "kind",
        "metadata_hash",
        "generation",
        "is_tombstone",
        "protocol",
        "leader",
        "at",
        "whos",
        "people",
        "topics",
        "shares",
    )
    beside = described.select("*", *(F.lag(name).over(in_group).alias(f"old_{name}") for name in carried))
    begins = beside.where(
        "not is_tombstone and (generation > 0 or size(people) > 0) "
        "and (old_is_tombstone is null or old_is_tombstone or generation <> old_generation "
        "or kind <> old_kind)"
    )
    return (
        begins.select(
            "*",
            # Before the first generation, and after a group's end, there are no members. Before any other there were some.
            F.expr(f"old_is_tombstone is null and generation > if(kind = 'classic', 1, {FIRST_EPOCH})").alias(
                "is_unknown"
            ),
            F.expr("coalesce(old_people, array())").alias("old_folk"),
        )
        .selectExpr(
            "*",
            "old_generation as previous_generation",
            "if(old_generation is null, null, cast(greatest(0, generation - old_generation - 1) as int)) as hidden_generations",
            "if(kind = 'classic', unix_millis(append_ts) - unix_millis(state_ts), null) as assign_and_sync_ms",
            "if(is_unknown, null, size(old_folk)) as members_before",
            "size(people) as members_after",
            "if(is_unknown, null, filter(people, p -> not array_contains(transform(old_folk, o -> o.who), p.who))) "
            "as newcomers",
            "if(is_unknown, null, filter(old_folk, o -> not array_contains(whos, o.who))) as leavers",
            "if(is_unknown, null, filter(people, p -> exists(old_folk, o -> o.who = p.who and o.id <> p.id))) as returned",
            "old_leader as leader_before",
            "leader as leader_after",
            "old_protocol as protocol_before",
            "protocol as protocol_after",
            "aggregate(shares, 0, (sum, share) -> sum + share) as partitions_total",
            "aggregate(old_shares, 0, (sum, share) -> sum + share) as old_total",
            "coalesce(array_max(shares) - array_min(shares), 0) as imbalance",
            "(unix_millis(at) - unix_millis(old_at)) / 1000.0D as seconds_since_previous",
        )
        .select(
            "*",
            F.expr("transform(newcomers, p -> p.id)").alias("joined"),
            F.expr("transform(leavers, p -> p.id)").alias("left"),
            F.expr(
                f"""transform(array_distinct(transform(concat(newcomers, leavers), p -> p.name)), n ->
                    struct(n as name, greatest({_OF_NAME.format("people")}, {_OF_NAME.format("old_folk")}) as members))"""
            ).alias("came_and_went"),
        )
    )
