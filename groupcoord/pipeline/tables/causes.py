"""Why a group rebalanced, as far as two generations show it, in words.

The log does not say why; it says who was there before and after, with which client ids and hosts, what they wanted, and by
which assignor. Leaving and timing out look the same. The first rule that applies has the word.
"""


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


_RULES = (
    ("is_unknown", "'the log begins here: what was before is compacted away'"),
    ("members_after = 0 and members_before = 0", "'a join phase ended without members'"),
    ("members_after = 0", f"concat('everybody left or timed out; the last: ', {_names('leavers')})"),
    (
        "members_before = 0 and coalesce(previous_generation, 0) = 0",
        f"concat('the group began: ', {_names('newcomers')}, ' joined')",
    ),
    ("members_before = 0", f"concat({_names('newcomers')}, ' joined a group that was empty')"),
    (
        "protocol_before <> protocol_after",
        "concat('the assignor changed from ', protocol_before, ' to ', protocol_after)",
    ),
    (
        f"size(newcomers) > 0 and {_machines('newcomers')} = {_machines('leavers')}",
        f"concat({_names('newcomers')}, ' restarted: the same client ids and hosts under new member ids')",
    ),
    (
        "size(newcomers) > 0 and size(leavers) > 0",
        f"concat({_names('newcomers')}, ' joined; ', {_names('leavers')}, ' left or timed out')",
    ),
    ("size(newcomers) > 0", f"concat({_names('newcomers')}, ' joined')"),
    ("size(leavers) > 0", f"concat({_names('leavers')}, ' left or timed out')"),
    (
        "size(array_except(topics, old_topics)) > 0 or size(array_except(old_topics, topics)) > 0",
        """concat('the subscription changed:',
            if(size(array_except(topics, old_topics)) > 0,
               concat(' now also ', array_join(sort_array(array_except(topics, old_topics)), ', ')), ''),
            if(size(array_except(old_topics, topics)) > 0,
               concat(' no longer ', array_join(sort_array(array_except(old_topics, topics)), ', ')), ''))""",
    ),
    (
        "old_total < partitions_total and protocol_after like '%cooperative%'",
        "'second step of a cooperative rebalance: what had been given up was handed out'",
    ),
    ("old_total < partitions_total", "'there are more partitions than before'"),
    ("old_total > partitions_total", "'there are fewer partitions than before'"),
    (
        "true",
        "'nobody came or went: a member joined again, as after a poll that took too long or a lost connection'",
    ),
)

_HIDDEN = """
    if(coalesce(hidden_generations, 0) > 0 and not is_unknown,
       concat('; before it, ', hidden_generations, if(hidden_generations = 1, ' generation', ' generations'),
              ' that left no record'), '')
"""

CAUSE = "concat(case " + " ".join(f"when {condition} then {words}" for condition, words in _RULES) + f" end, {_HIDDEN})"
"""An expression over the columns of ``rebalances._compared``."""
