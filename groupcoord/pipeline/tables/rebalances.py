"""The tables rebalances, storms and skew. A rebalance is a generation compared with the one before: members that joined and
left, partitions that moved, and the likely cause.

A generation here is a generation of a classic group, or a target assignment of a group of another kind (KIP-848). Both are in
one DataFrame, so that a converted group is compared across the conversion. The log does not say why a group rebalanced, so the
cause is inferred from the members before and after: their ids, client ids, hosts, subscriptions and assignor. The first rule
that applies counts. Leaving and timing out look the same. Storms are rebalances in quick succession; skew is how evenly
partitions were assigned.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupcoord.pipeline.schemas import REBALANCES, SKEW, STORMS
from groupcoord.pipeline.tables.modern_group_history import FIRST_EPOCH
from groupcoord.pipeline.tables.ownership_changes import IN_GROUP


def of_all_kinds(classic: DataFrame, modern: DataFrame) -> DataFrame:
    """The generations of all groups: ``classic`` (GENERATIONS) and ``modern`` (MODERN_GENERATIONS)."""
    return classic.withColumn("kind", F.lit("classic")).unionByName(modern, allowMissingColumns=True)


def _names(people: str) -> str:
    """SQL: the first three names in the array ``people``, and how many more there are."""
    return f"""concat(
        array_join(slice(sort_array(array_distinct(transform({people}, p -> p.name))), 1, 3), ', '),
        if(size(array_distinct(transform({people}, p -> p.name))) > 3,
           concat(' and ', size(array_distinct(transform({people}, p -> p.name))) - 3, ' more'), ''),
        if(size({people}) > size(array_distinct(transform({people}, p -> p.name))),
           concat(' (', size({people}), ' members)'), ''))"""


def _machines(people: str) -> str:
    return f"sort_array(transform({people}, p -> concat(p.client_id, ' ', p.client_host)))"


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
    "group_emptied": ("members_after = 0", "concat('everybody left or timed out; the last: ', went)"),
    "group_started": (
        "members_before = 0 and coalesce(previous_generation, 0) = 0",
        "concat('the group began: ', came, ' joined')",
    ),
    "group_refilled": ("members_before = 0", "concat(came, ' joined a group that was empty')"),
    "assignor_changed": (
        "protocol_before <> protocol_after",
        "concat('the assignor changed from ', protocol_before, ' to ', protocol_after)",
    ),
    "members_restarted": (
        f"size(newcomers) > 0 and {_machines('newcomers')} = {_machines('leavers')}",
        "concat(came, ' restarted: the same client ids and hosts under new member ids')",
    ),
    "members_joined_and_left": (
        "size(newcomers) > 0 and size(leavers) > 0",
        "concat(came, ' joined; ', went, ' left or timed out')",
    ),
    "members_joined": ("size(newcomers) > 0", "concat(came, ' joined')"),
    "members_left": ("size(leavers) > 0", "concat(went, ' left or timed out')"),
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
        "old_partitions_total < partitions_total and protocol_after like '%cooperative%'",
        "'second step of a cooperative rebalance: what had been given up was handed out'",
    ),
    "partitions_added": ("old_partitions_total < partitions_total", "'there are more partitions than before'"),
    "partitions_removed": ("old_partitions_total > partitions_total", "'there are fewer partitions than before'"),
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
"""SQL over the columns of ``_compared``: a key of CAUSE_KINDS."""
LIKELY_CAUSE = (
    "concat(case cause_kind "
    + " ".join(f"when '{kind}' then {text}" for kind, (_, text) in _RULES.items())
    + f" end, {_HIDDEN})"
)
"""SQL over the same columns and ``cause_kind``: a description."""


FEWEST = 5
"""The fewest rebalances that make a storm."""
APART_S = 60
"""The longest time between two rebalances of a storm."""


_BEGIN = "'group_started', 'group_refilled'"
_IS_START = f"""min_by(cause_kind, log_offset) in ({_BEGIN})
    and bool_and(cause_kind in ({_BEGIN}, 'members_joined', 'cooperative_second_step'))"""
"""SQL over a run of rebalances: is it only the start of a group, in which members joined an empty group and nobody left?"""
_OF_RUN = (
    "min(log_partition) as log_partition",
    "max_by(kind, log_offset) as kind",
    "min(at) as `from`",
    "max(at) as `to`",
    "int(count(*)) as rebalances",
    "int(coalesce(sum(hidden_generations), 0)) as hidden_generations",
    "min(members_after) as members_lowest",
    "max(members_after) as members_highest",
    "int(sum(moved)) as moved",
    f"{_IS_START} as is_start",
)


def storms(rebalances: DataFrame) -> DataFrame:
    """Runs of at least FEWEST rebalances of a group, each at most APART_S after the one before; not runs that only start a
    group."""
    runs = rebalances.selectExpr("*", f"sum(if(seconds_since_previous <= {APART_S}, 0, 1)) {IN_GROUP} as run")
    causes = (
        runs.groupBy("group", "run", "likely_cause")
        .agg(F.expr("count(*) as times"))
        .groupBy("group", "run")
        .agg(F.expr("sort_array(collect_list(struct(-times, likely_cause))).likely_cause as likely_causes"))
    )
    kinds = (
        runs.groupBy("group", "run", "cause_kind")
        .agg(F.expr("count(*) as times"))
        .groupBy("group", "run")
        .agg(
            F.expr("min(struct(-times, cause_kind)).cause_kind as cause_kind"),
            F.expr("int(max(times)) as of_cause_kind"),
        )
    )
    members = (
        runs.selectExpr("`group`", "run", "cause_kind", "inline(came_and_went)")
        .groupBy("group", "run", "cause_kind", "name")
        .agg(F.expr("count(*) as times"), F.expr("max(members) as members"))
        .groupBy("group", "run", "cause_kind")
        .agg(F.expr("slice(sort_array(collect_list(struct(-times, name, members))), 1, 4) as counted"))
        .selectExpr(
            *("`group`", "run", "cause_kind"),
            "transform(counted, c -> struct(c.name, c.members)) as came_and_went",
        )
    )
    return (
        runs.groupBy("group", "run")
        .agg(*map(F.expr, _OF_RUN))
        .where(f"rebalances >= {FEWEST} and not is_start")
        .join(causes, ["group", "run"])
        .join(kinds, ["group", "run"])
        .join(members, ["group", "run", "cause_kind"], "left")
        .select(*STORMS.names)
    )


def skew(assignments: DataFrame) -> DataFrame:
    """SKEW: a row for each member, with a readable assignment, of each of ``assignments`` (ASSIGNMENTS)."""
    return (
        assignments.where("not is_tombstone")
        .selectExpr("*", "filter(members, m -> m.partitions is not null).partitions as shares")
        .where("size(shares) > 0")
        .selectExpr(
            "*", "aggregate(shares, 0, (sum, share) -> sum + share) / size(shares) as fair_share", "inline(members)"
        )
        .where("partitions is not null")
        .withColumnRenamed("member_id", "member")
        .select(*SKEW.names)
    )


def rebalances(assignments: DataFrame) -> DataFrame:
    """REBALANCES: each new generation of ``assignments`` (ASSIGNMENTS) compared with the one before."""
    return (
        _compared(assignments)
        .selectExpr(
            "*",
            "int(greatest(0, could_stay - kept)) as moved_needlessly",
            f"{CAUSE_KIND} as cause_kind",
            # Each of them is evaluated once, and not wherever LIKELY_CAUSE names it.
            f"{_names('newcomers')} as came",
            f"{_names('leavers')} as went",
        )
        .selectExpr("*", f"{LIKELY_CAUSE} as likely_cause")
        .select(*REBALANCES.names)
    )


_OF_NAME = "size(filter({}, p -> p.name = n))"
_CARRIED = (
    *("kind", "metadata_hash", "generation", "is_tombstone", "protocol", "leader", "at"),
    *("members", "topics", "partitions_total"),
)


def _compared(assignments: DataFrame) -> DataFrame:
    """Each new generation, with the columns of the record before it as ``old_…``.

    Further records of the same generation are left out, and so is generation 0, with which a group is created.
    """
    # A group that is converted gets a tombstone of the old kind and a record of the new kind at once. That is not its end.
    is_other = f"is_tombstone and lead(kind) {IN_GROUP} <> kind and lead(append_ts) {IN_GROUP} = append_ts"
    described = (
        assignments.selectExpr("*", f"coalesce({is_other}, false) as is_other")
        .where("not is_other")
        .selectExpr(
            "*",
            "coalesce(append_ts, state_ts) as at",
            "array_distinct(flatten(transform(members, m -> coalesce(m.topics, array())))) as topics",
            "transform(members, m -> coalesce(m.partitions, 0)) as shares",
        )
        .selectExpr("*", "aggregate(shares, 0, (sum, share) -> sum + share) as partitions_total")
    )
    beside = described.selectExpr("*", *(f"lag({name}) {IN_GROUP} as old_{name}" for name in _CARRIED))
    begins = beside.where(
        "not is_tombstone and (generation > 0 or size(members) > 0) "
        "and (old_is_tombstone is null or old_is_tombstone or generation <> old_generation "
        "or kind <> old_kind)"
    )
    return (
        begins.selectExpr(
            "*",
            # Before the first generation, and after a tombstone, a group has no members. Otherwise they are unknown.
            f"old_is_tombstone is null and generation > if(kind = 'classic', 1, {FIRST_EPOCH}) as is_unknown",
            "coalesce(old_members, array()) as old_folk",
            "coalesce(old_members.who, array()) as old_whos",
        )
        .selectExpr(
            "*",
            "old_generation as previous_generation",
            "if(old_generation is null, null, cast(greatest(0, generation - old_generation - 1) as int)) as hidden_generations",
            "if(kind = 'classic', unix_millis(append_ts) - unix_millis(state_ts), null) as assign_and_sync_ms",
            "if(is_unknown, null, size(old_folk)) as members_before",
            "size(members) as members_after",
            "if(is_unknown, null, filter(members, p -> not array_contains(old_whos, p.who))) as newcomers",
            "if(is_unknown, null, filter(old_folk, o -> not array_contains(members.who, o.who))) as leavers",
            """if(is_unknown, null, filter(members, p -> p.instance_id is not null
                and exists(old_folk, o -> o.who = p.who and o.member_id <> p.member_id))) as returned""",
            "old_leader as leader_before",
            "leader as leader_after",
            "old_protocol as protocol_before",
            "protocol as protocol_after",
            "coalesce(array_max(shares) - array_min(shares), 0) as imbalance",
            "(unix_millis(at) - unix_millis(old_at)) / 1000.0D as seconds_since_previous",
        )
        .selectExpr(
            "*",
            "newcomers.member_id as joined",
            "leavers.member_id as `left`",
            f"""transform(array_distinct(transform(concat(newcomers, leavers), p -> p.name)), n -> struct(n as name,
                greatest({_OF_NAME.format("members")}, {_OF_NAME.format("old_folk")}) as members)) as came_and_went""",
        )
    )
