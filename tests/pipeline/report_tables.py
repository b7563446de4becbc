"""The tables of a small history, as the report reads them: rows as dicts, times in milliseconds, what is not said null."""

from typing import Any

from groupcoord.pipeline.health_symptoms import SYMPTOMS, score_parts
from groupcoord.pipeline.schemas import END_EVENTS, TABLES
from tests.pipeline.plain_reader import Tables

START = 1_767_225_600_000
"""The first moment of 2026."""


def at(seconds: float) -> int:
    """So many seconds after it."""
    return START + round(seconds * 1000)


def empty() -> Tables:
    """All tables, of a log without records."""
    return {name: [] for name in TABLES}


def row(table: str, **said: Any) -> dict[str, Any]:
    """A row of ``table``."""
    unknown = said.keys() - set(TABLES[table].names)
    assert not unknown, unknown
    return {name: said.get(name) for name in TABLES[table].names}


def add(tables: Tables, table: str, **said: Any) -> None:
    """One more row."""
    tables[table].append(row(table, **said))


def add_group(tables: Tables, group: str, **said: Any) -> None:
    """A row of ``group_health``, with nothing wrong unless it is said."""
    counts: dict[str, Any] = {one.column: 0 for one in SYMPTOMS}
    counts |= {"hidden_generations": 0, "moved": 0, "commits": 0, "partitions": 0}
    counts |= {"kind": "classic", "state": "Stable", "protocol": "range", "generation": 3, "members": 2}
    counts |= {"first_ts": at(0), "last_ts": at(120), **said}
    score = said.get("score", round(sum(score_parts(counts).values()), 2))
    add(tables, "group_health", group=group, **{**counts, "score": score})


def add_generation(
    tables: Tables,
    group: str,
    number: int,
    seconds: float,
    members: dict[str, int],
    cause: str = "a joined",
    kind: str = "members_joined",
    **said: Any,
) -> None:
    """A generation with members and how many partitions each has: rows of ``rebalances`` and ``skew``; in a classic group of
    ``members``, too."""
    of = said.pop("of", "classic")
    place = {"log_partition": 0, "log_offset": round(seconds * 10)}
    total = sum(members.values())
    add(
        tables,
        "rebalances",
        **place,
        **{
            "group": group,
            "kind": of,
            "generation": number,
            "at": at(seconds),
            "cause_kind": kind,
            "likely_cause": cause,
            "hidden_generations": 0,
            "members_before": 1,
            "members_after": len(members),
            "partitions_total": total,
            "moved": 1,
            "moved_needlessly": 0,
            "imbalance": 1,
            **said,
        },
    )
    for member, partitions in members.items():
        add(
            tables,
            "skew",
            **place,
            group=group,
            kind=of,
            append_ts=at(seconds),
            generation=number,
            member=member,
            client_id=member.partition("-")[0],
            partitions=partitions,
            fair_share=total / len(members),
        )
    if of == "classic":
        _live_on(tables, group, seconds, members)


def _live_on(tables: Tables, group: str, seconds: float, members: dict[str, int]) -> None:
    """The rows of ``members`` that one more generation of a classic group gives."""
    there = {one["member"]: one for one in tables["members"] if one["group"] == group and one["until_ts"] is None}
    there = {member: one for member, one in there.items() if one["event"] not in END_EVENTS}
    for member in sorted({*there, *members}):
        had, has = there[member]["partitions"] if member in there else None, members.get(member)
        if had == has:
            continue
        if member in there:
            there[member]["until_ts"] = at(seconds)
        event = "left" if has is None else "joined" if had is None else "settled"
        add_change(tables, group, seconds, member, event, partitions=has or 0, target=has or 0, is_classic=True)


def add_epoch(tables: Tables, group: str, number: int | None, seconds: float, cause: str, **said: Any) -> None:
    """An epoch of a group that is not classic."""
    row = {"members": 1, "classic_members": 0, "cause_kind": "members_joined", **said}
    place = {"log_partition": 0, "log_offset": round(seconds * 10), "append_ts": at(seconds)}
    add(tables, "epochs", **place, group=group, group_epoch=number, cause=cause, **row)


def add_change(tables: Tables, group: str, seconds: float, member: str, event: str, **said: Any) -> None:
    """A change in the life of a member; ``until`` in seconds."""
    until = said.pop("until", None)
    row = {"client_id": member.partition("-")[0], "is_classic": False, "revoking": 0, "target": 0, "is_settled": True}
    place = {"log_partition": 0, "log_offset": round(seconds * 10), "append_ts": at(seconds)}
    times = {"until_ts": None if until is None else at(until)}
    add(tables, "members", **place, **times, group=group, member=member, event=event, **(row | said))


def add_commits(tables: Tables, group: str, *seconds: float) -> None:
    """Commits, in ``commits`` and in ``commit_rates``."""
    for moment in seconds:
        place = {"log_partition": 0, "log_offset": round(moment * 10) + 1}
        add(tables, "commits", **place, group=group, topic="t", partition=0, append_ts=at(moment))
    for minute in sorted({int(moment // 60) for moment in seconds}):
        count = sum(moment // 60 == minute for moment in seconds)
        times = {"window_start": at(60 * minute), "window_end": at(60 * minute + 60)}
        add(tables, "commit_rates", group=group, commits=count, partitions=1, advanced=5, **times)


def add_owner(tables: Tables, group: str, seconds: float, partition: int, member: str | None, **said: Any) -> None:
    """A change of owner; ``until`` in seconds."""
    until = said.pop("until", None)
    add(
        tables,
        "ownership",
        log_partition=0,
        log_offset=round(seconds * 10),
        append_ts=at(seconds),
        group=group,
        generation=1,
        topic=said.pop("topic", "orders"),
        partition=partition,
        member=member,
        until_ts=None if until is None else at(until),
        **{"is_revoking": False, **said},
    )


def history() -> Tables:
    """Two groups with a past, one that only commits, and one of KIP-848."""
    tables = empty()
    add_group(tables, "app", rebalances=3, moved=6, moved_needlessly=3, storms=1, commits=9, commit_gaps=1, zombies=1,
              partitions=2, late_partitions=1, lost_partitions=1, lag=70)  # fmt: skip
    add_generation(tables, "app", 1, 0, {"a-1": 4})
    add_generation(tables, "app", 2, 30, {"a-1": 2, "b-2": 2}, "b joined")
    add_generation(tables, "app", 3, 90, {"b-2": 4}, "a left or timed out", "members_left", moved_needlessly=3, moved=4)
    add_owner(tables, "app", 0, 0, "a-1", until=90)
    add_owner(tables, "app", 90, 0, "b-2")
    add_owner(tables, "app", 0, 1, "a-1", until=30)
    add_owner(tables, "app", 30, 1, None, until=31)
    add_owner(tables, "app", 31, 1, "b-2")
    add_commits(tables, "app", 5, 6, 7, 50, 51, 52, 61, 100, 110)
    add(tables, "storms", **{"group": "app", "kind": "classic", "from": at(0), "to": at(90), "rebalances": 5,
        "hidden_generations": 2, "members_lowest": 1, "members_highest": 2, "moved": 6,
        "cause_kind": "members_joined", "of_cause_kind": 3,
        "likely_causes": ["b joined", "a left or timed out", "x", "y"],
        "came_and_went": [{"name": name, "members": 1} for name in "bc"]})  # fmt: skip
    committed = {"topic": "orders", "last_commit_ts": at(110)}
    add(
        tables,
        "lag",
        group="app",
        partition=0,
        **committed,
        committed_offset=30,
        end_offset=100,
        lag=70,
        status="STALL",
        lag_seconds=61.5,
        log_start_offset=35,
        records_lost=5,
    )
    add(tables, "lag", group="app", partition=1, **committed, committed_offset=9)
    add(tables, "commit_gaps", group="app", topic="orders", partition=0, from_ts=at(7), to_ts=at(50), gap_seconds=43.0,
        usual_seconds=1.0)  # fmt: skip
    pause = {"from_ts": at(7), "to_ts": at(50), "seconds": 43.0, "partitions": 1}
    add(tables, "commit_pauses", group="app", **pause)
    add_group(tables, "quiet", rebalances=1, commits=1)
    add_generation(tables, "quiet", 1, 10, {"q-1": 1}, "q joined a group that was empty", "group_refilled")
    add_commits(tables, "quiet", 11)
    add_group(tables, "simple", kind="simple", state="Empty", protocol=None, generation=0, members=0, commits=2)
    add_commits(tables, "simple", 20, 21)
    add_group(tables, "modern", kind="consumer", protocol="uniform", generation=7, members=1, rebalances=1,
              awaited_transactions=1)  # fmt: skip
    add_generation(tables, "modern", 7, 40, {"m-1": 3, "n-2": 2}, "n joined", of="consumer")
    add_epoch(tables, "modern", 6, 35, "m joined", assigned_ts=at(35), to_assign=5, reconciled_ts=at(36))
    add_epoch(tables, "modern", 7, 39, "n joined", members=2, assigned_ts=at(40), to_revoke=2, to_assign=2)
    add_change(tables, "modern", 35, "m-1", "joined", partitions=0, target=5, is_settled=False, until=36)
    add_change(tables, "modern", 36, "m-1", "settled", partitions=5, target=5, until=40)
    add_change(tables, "modern", 39, "n-2", "joined", partitions=0, target=2, is_settled=False, until=50)
    add_change(tables, "modern", 40, "m-1", "revoking", partitions=3, revoking=2, target=3, is_settled=False, until=45)
    add_change(tables, "modern", 45, "m-1", "settled", partitions=3, target=3)
    add_change(tables, "modern", 50, "n-2", "left", partitions=0)
    add_owner(tables, "modern", 36, 0, "m-1", until=40)
    add_owner(tables, "modern", 40, 0, "m-1", until=45, is_revoking=True)
    add_owner(tables, "modern", 45, 0, None)
    held_up = {"topic": "orders", "partition": 0, "stable_offset": 20, "end_offset": 100, "producer_id": 7,
               "transactional_id": "payments"}  # fmt: skip
    add(tables, "open_transactions", **held_up, since=at(15), groups=["app", "audit", "backup", "modern"],
        waiting=["modern"])  # fmt: skip
    counts = {"in": 20, "later": 0, "commits": 12, "generations": 4, "modern_records": 3, "bad_records": 1}
    for what, records in counts.items():
        add(tables, "record_counts", what=what, records=records)
    add(tables, "bad_records", log_partition=0, log_offset=3, append_ts=at(3), reason="the key is cut off")
    add(tables, "generations", group="app", problem="the subscription of a-1 is cut off")
    add(
        tables,
        "source_warnings",
        where="__consumer_offsets-0",
        what="torn tail: no whole batch",
        log_partition=0,
        bytes=17,
    )
    read = {"first_offset": 0, "last_offset": 40, "first_ts": at(0), "last_ts": at(110)}
    add(
        tables,
        "log_partitions",
        log_partition=0,
        **read,
        records=15,
        missing=26,
        whole_from_offset=30,
        whole_from_ts=at(60),
    )
    add(
        tables,
        "log_partitions",
        log_partition=1,
        **read,
        records=5,
        missing=0,
        whole_from_offset=0,
        whole_from_ts=at(80),
    )
    return tables


def what_if(tables: Tables) -> None:
    """What other assignors would have done to the group app."""
    for assignor, moved in (("as it was", 6), ("range", 8), ("sticky", 2)):
        add(tables, "what_if_summary", group="app", assignor=assignor, generations=3, problems=0, moved=moved,
            moved_needlessly=moved // 2, pauses=moved * 2, rebalances=3, imbalance_worst=1)  # fmt: skip
        for seconds in (30, 90, 100):  # the last is behind the storm
            add(tables, "what_if", group="app", at=at(seconds), assignor=assignor, pauses=moved)
    add(tables, "what_if", group="app", at=at(40), assignor="range", problem="it had no answer")


def crowd(size: int) -> Tables:
    """So many groups of all kinds, of which every third has trouble, and every tenth a storm."""
    tables = empty()
    kinds = (("classic", "Stable"), ("consumer", "Stable"), ("simple", "Empty"), ("classic", None))
    for number in range(size):
        kind, state = kinds[number % len(kinds)]
        name = f"{('payments', 'orders', 'search', 'audit')[number % 4]}-service-consumer-{number:04}"
        trouble = number % 97 if number % 3 == 0 else 0
        storms = number % 5 + 1 if number % 10 == 0 else 0
        add_group(tables, name, kind=kind, state=state, protocol=None if kind == "simple" else "range", storms=storms,
                  rebalances=trouble, moved_needlessly=trouble, commits=number * 31, partitions=8,
                  late_partitions=number % 9 if number % 6 == 0 else 0, lag=number * 1009)  # fmt: skip
    read = {"first_ts": at(0), "last_ts": at(110), "records": 2_345_678, "hidden": 12_345, "missing": 0}
    read |= {"first_offset": 6_419_753, "last_offset": 8_777_775}
    add(tables, "log_partitions", log_partition=0, **read, whole_from_offset=0, whole_from_ts=at(0))
    return tables


HOSTILE = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "<!--",
    "]]><style>*{display:none}</style>",
    "\u202egpj.exe\u2066",
    "שלום עולם",
    "a\x00b\x1b[31m\r\n\u2028",
    "\ud800 half",
    "x" * 300,
    "&lt;b&gt;",
    "",
    "javascript:alert(1)",
]
"""Names that would be more than text where they are not taken care of."""


def hostile(names: list[str]) -> Tables:
    """Every name that somebody chooses is one of ``names``."""
    tables = empty()
    for index, said in enumerate(names):
        add_group(tables, said, rebalances=len(names) - index, protocol=said, commits=3)
        add_generation(tables, said, 1, 0, {said: 2, f"{said}-2": 1}, f"{said} joined")
        tables["skew"][-1]["client_id"] = said
        add_owner(tables, said, 0, 0, said, topic=said)
        add_commits(tables, said, 1, 2)
        lag = {"committed_offset": 1, "end_offset": 9, "lag": 8, "last_commit_ts": at(1), "status": said or None}
        add(tables, "lag", group=said, topic=said, partition=0, log_start_offset=4, records_lost=3, **lag)
        add(tables, "bad_records", log_partition=0, log_offset=index, reason=said)
        add(tables, "generations", group=said, problem=said)
        add(tables, "source_warnings", where=said, what=said)
        times = {"from": at(0), "to": at(1)}
        kind = {"cause_kind": "members_restarted", "of_cause_kind": 5}
        add(tables, "storms", group=said, rebalances=5, hidden_generations=0, likely_causes=[said] * 5, **kind, **times,
            came_and_went=[{"name": said, "members": 1}])  # fmt: skip
        held_up = {"stable_offset": 1, "end_offset": 2, "groups": [said]}
        add(tables, "open_transactions", topic=said, partition=index, **held_up)
        gap = {"from_ts": at(0), "gap_seconds": 90.0, "usual_seconds": 1.0}
        add(tables, "commit_gaps", group=said, topic=said, partition=0, **gap)
        add(tables, "commit_pauses", group=said, from_ts=at(0), seconds=90.0, partitions=1)
        figures = {"generations": 1, "problems": 0, "moved": 1, "moved_needlessly": 0, "pauses": 1, "rebalances": 1}
        add(tables, "what_if_summary", group=said, assignor=said, **figures)
    return tables
