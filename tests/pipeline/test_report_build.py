"""From tables to the report: what is asked of them, in which order it comes, and what is left out."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.report.build_report import LISTED, ON_TOP, RANKED, build_report
from groupcoord.pipeline.report.group_details import COUNTED, MEMBERS, PARTITIONS, REBALANCES
from groupcoord.pipeline.report.report_files import report_from_json, report_to_json
from groupcoord.pipeline.report.report_model import (
    DETAILED,
    AssignorPauses,
    AssignorResult,
    CommitPause,
    GroupDetail,
    HeldUpPartition,
    LagStatus,
    MembershipSpan,
    NamedCount,
    OpenTransaction,
    OwnershipSpan,
    Report,
)
from groupcoord.pipeline.schemas import CAUSE_KINDS
from tests.pipeline.plain_reader import PlainReader, Tables
from tests.pipeline.report_checks import check_causes
from tests.pipeline.report_tables import (
    START,
    add,
    add_change,
    add_commits,
    add_epoch,
    add_generation,
    add_group,
    add_owner,
    at,
    empty,
    history,
    what_if,
)

SUMMARY = {"source": "segments:data", "as_of": None, "now": "2026-01-01T00:01:50"}


def build(tables: Tables) -> Report:
    return build_report(PlainReader(tables), SUMMARY)


def detail(report: Report, group: str) -> GroupDetail:
    return next(one for one in report.details if one.group.group == group)


def test_the_overview_is_the_sum_of_all_groups() -> None:
    of = build(history()).overview
    assert (of.records, of.groups, of.groups_with_members, of.groups_gone) == (20, 4, 3, 0)
    assert (of.rebalances, of.moved, of.moved_needlessly, of.storms) == (5, 6, 3, 1)
    assert (of.commits, of.partitions, of.late_partitions, of.lag) == (12, 2, 1, 70)
    assert (of.from_ms, of.to_ms, of.missing) == (at(0), at(110), 26)


def test_history_is_whole_from_where_the_last_hole_ends() -> None:
    tables = history()
    assert build(tables).overview.whole_from_ms == at(60)  # partition 1 begins later, and lacks nothing
    tables["log_partitions"] = tables["log_partitions"][1:]
    assert build(tables).overview.whole_from_ms == at(0)


def test_the_activity_counts_every_rebalance_and_every_commit() -> None:
    activity = build(history()).overview.activity
    assert activity is not None
    assert (sum(activity.rebalances), sum(activity.commits.counts)) == (5, 12)
    assert activity.commits.table == "commits"  # a piece is shorter than a minute


@pytest.mark.slow
@given(
    rebalances=st.lists(
        st.tuples(st.sampled_from(list(CAUSE_KINDS)), st.integers(0, 9), st.sampled_from(["classic", "share"])),
        max_size=80,
    )
)
def test_every_rebalance_counts_under_one_kind_of_cause(rebalances: list[tuple[str, int, str]]) -> None:
    tables = empty()
    for number, (kind, group, of) in enumerate(rebalances):
        # No two sentences are alike, as in a log of many groups.
        add_generation(tables, f"g{group}", number, number, {}, f"client-{number} did it", kind, of=of)
    check_causes(build(tables).causes, tables["rebalances"])


def test_groups_come_by_score_and_say_how_it_comes_about() -> None:
    groups = build(history()).groups
    assert [one.group for one in groups] == ["app", "modern", "quiet", "simple"]
    assert groups[0].points == {
        "storms": 5.0,
        "late_partitions": 2.34,  # one of two
        "awaited_transactions": 0.0,
        "commit_gaps": 3.0,
        "lost_partitions": 2.92,
        "zombies": 3.0,
        "moved_needlessly": 4.0,
        "rebalances": 2.0,
    }
    assert groups[0].score == 22.26


def test_members_are_there_from_one_generation_to_the_next() -> None:
    app = detail(build(history()), "app")
    end = app.end_ms
    assert [(one.member, one.client_id, one.spans) for one in app.members] == [
        ("a-1", "a", (MembershipSpan(at(0), at(30), 4), MembershipSpan(at(30), at(90), 2))),
        ("b-2", "b", (MembershipSpan(at(30), at(90), 2), MembershipSpan(at(90), end, 4))),
    ]
    assert app.start_ms == at(0)
    assert at(110) < end < at(115)


def test_generations_in_which_nothing_changes_are_one_piece() -> None:
    tables = empty()
    add_group(tables, "g", rebalances=3)
    for number, seconds in enumerate((0, 10, 20)):
        add_generation(tables, "g", number, seconds, {"a-1": 4 if number < 2 else 5})
    [member] = build(tables).details[0].members
    assert [(piece.from_ms, piece.partitions) for piece in member.spans] == [(at(0), 4), (at(20), 5)]


def test_a_static_member_that_comes_back_and_numbers_that_begin_anew() -> None:
    tables = empty()
    add_group(tables, "g", rebalances=2)
    add_generation(tables, "g", 1, 0, {"a-1": 4})
    add_change(tables, "g", 0.5, "a-1", "replaced", partitions=0)
    tables["members"][0]["until_ts"] = at(0.5)
    add_change(tables, "g", 0.5, "a-2", "joined", partitions=4, target=4)
    tables["skew"].append({**tables["skew"][0], "member": "a-2", "log_offset": 5})
    add_generation(tables, "g", 1, 10, {"b-1": 4})
    members = build(tables).details[0].members
    assert [(one.member, one.spans[0].from_ms) for one in members] == [
        ("a-1", at(0)),
        ("a-2", at(0.5)),
        ("b-1", at(10)),
    ]


def test_partitions_belong_to_somebody_or_to_nobody() -> None:
    app = detail(build(history()), "app")
    end = app.end_ms
    assert [(one.partition, one.spans) for one in app.partitions] == [
        (0, (OwnershipSpan(at(0), at(90), "a-1"), OwnershipSpan(at(90), end, "b-2"))),
        (
            1,
            (
                OwnershipSpan(at(0), at(30), "a-1"),
                OwnershipSpan(at(30), at(31), None),
                OwnershipSpan(at(31), end, "b-2"),
            ),
        ),
    ]


def test_the_newest_generation_says_who_has_how_much() -> None:
    tables = history()
    add_generation(tables, "app", 4, 95, {"c-3": 1, "b-2": 5, "d-4": 0})
    shares = detail(build(tables), "app").shares
    assert shares is not None
    assert (shares.generation, shares.fair_share) == (4, 2.0)
    assert [(one.client_id, one.partitions) for one in shares.shares] == [("b", 5), ("c", 1), ("d", 0)]


def test_a_group_of_kip_848_has_the_same() -> None:
    modern = detail(build(history()), "modern")
    assert [(one.likely_cause, one.kind) for one in modern.rebalances] == [("n joined", "consumer")]
    assert modern.shares is not None
    assert [one.client_id for one in modern.shares.shares] == ["m", "n"]


def test_members_of_a_group_of_kip_848_have_what_they_have_and_not_what_they_are_to_have() -> None:
    modern = detail(build(history()), "modern")
    assert [(one.client_id, one.spans) for one in modern.members] == [
        (
            "m",
            (
                MembershipSpan(at(35), at(36), 0, is_settled=False),
                MembershipSpan(at(36), at(40), 5),
                MembershipSpan(at(40), at(45), 5, is_settled=False),
                MembershipSpan(at(45), modern.end_ms, 3),
            ),
        ),
        ("n", (MembershipSpan(at(39), at(50), 0, is_settled=False),)),
    ]
    assert [(one.event, one.partitions, one.revoking, one.target) for one in modern.changes][3:] == [
        ("revoking", 3, 2, 3),
        ("settled", 3, 0, 3),
        ("left", 0, 0, 0),
    ]
    [partition] = modern.partitions
    assert partition.spans == (
        OwnershipSpan(at(36), at(40), "m-1"),
        OwnershipSpan(at(40), at(45), "m-1", is_revoking=True),
        OwnershipSpan(at(45), modern.end_ms, None),
    )


def test_epochs_say_what_began_them_and_how_long_they_took() -> None:
    modern = detail(build(history()), "modern")
    assert [(one.group_epoch, one.cause, one.assigned_ms, one.reconciled_ms) for one in modern.epochs] == [
        (6, "m joined", at(35), at(36)),
        (7, "n joined", at(40), None),
    ]
    assert modern.start_ms <= at(35)


def test_a_classic_group_that_became_a_consumer_group_has_one_history() -> None:
    tables = empty()
    add_group(tables, "g", kind="consumer", rebalances=2)
    add_generation(tables, "g", 1, 0, {"a-1": 2})
    add_owner(tables, "g", 0, 0, "a-1", until=10)
    add_owner(tables, "g", 10, 0, None, until=10.1)
    add_change(tables, "g", 10, "a-1", "converted", partitions=0)
    tables["members"][0]["until_ts"] = at(10)
    add_generation(tables, "g", 2, 10.1, {"a-1": 2}, "a classic group became a consumer group", of="consumer")
    add_epoch(tables, "g", 2, 10.1, "a classic group became a consumer group", cause_kind="became_consumer")
    add_change(tables, "g", 10.1, "a-1", "joined", partitions=2, target=2, is_classic=True, until=30)
    add_change(tables, "g", 30, "a-1", "left", partitions=0)
    add_owner(tables, "g", 10.1, 0, "a-1", until=30)
    add_owner(tables, "g", 30, 0, None)
    add_epoch(tables, "g", 3, 40, "a left or was fenced", members=0)
    [of] = build(tables).details
    assert [(one.kind, one.generation) for one in of.rebalances] == [("classic", 1), ("consumer", 2)]
    [member] = of.members
    assert (member.spans[0].from_ms, member.spans[-1].until_ms, of.members_left_out) == (at(0), at(30), 0)
    [partition] = of.partitions
    assert [(one.from_ms, one.member) for one in partition.spans] == [
        (at(0), "a-1"),
        (at(10), None),
        (at(10.1), "a-1"),
        (at(30), None),
    ]


def test_a_group_that_only_commits_has_commits_and_nothing_else() -> None:
    simple = detail(build(history()), "simple")
    assert simple.commits is not None
    assert sum(simple.commits.counts) == 2
    assert (simple.rebalances, simple.members, simple.partitions, simple.shares) == ((), (), (), None)


def test_groups_with_lag_whose_offsets_expire_within_a_day_are_told() -> None:
    tables = empty()
    for group, days in (("soon", 0.9), ("sooner", 0.1), ("later", 1.1), ("never", None)):
        add_group(tables, group, lag=3, expire_ts=None if days is None else at(days * 86_400))
    now = datetime.fromtimestamp(START / 1000, UTC).isoformat()
    report = build_report(PlainReader(tables), {"now": now})
    assert [(one.group, one.lag) for one in report.expiring] == [("sooner", 3), ("soon", 3)]
    assert build_report(PlainReader(tables), {}).expiring == ()


def test_lags_and_gaps_storms_and_remarks_are_listed() -> None:
    report = build(history())
    assert [(one.group, one.lag, one.lag_seconds) for one in report.lags] == [("app", 70, 61.5)]
    assert [(one.group, one.records_lost) for one in report.losses] == [("app", 5)]
    assert report.losses_left_out == 0
    assert report.statuses == (LagStatus("STALL", 1, 70), LagStatus(None, 1, None))
    app = detail(report, "app")
    assert [one.lag for one in app.lags] == [70]
    assert [one.gap_seconds for one in app.gaps] == [43.0]
    assert [(one.likely_causes[0], one.came_and_went) for one in report.storms] == [("b joined", (("b", 1), ("c", 1)))]
    assert report.pauses == (CommitPause("app", at(7), at(50), 43.0, 1),)
    assert [one.bytes for one in report.quality.warnings] == [17]
    assert report.quality.bad == (NamedCount("the key is cut off", 1),)
    assert report.quality.problems == (NamedCount("the subscription of a-1 is cut off", 1),)


def test_counts_that_do_not_add_up_are_seen() -> None:
    tables = history()
    assert build(tables).quality.adds_up
    add(tables, "record_counts", what="lost", records=1)
    assert not build(tables).quality.adds_up


def test_long_histories_are_counted_and_not_shown() -> None:
    tables = empty()
    many = REBALANCES + 30
    add_group(tables, "g", rebalances=many)
    for number in range(many):
        members = {f"m-{number}": 1, "steady-1": 1}
        add_generation(tables, "g", number, 10 * number, members)
    for partition in range(PARTITIONS + 4):
        add_owner(tables, "g", 0, partition, "steady-1")
    add_owner(tables, "g", 50, PARTITIONS + 3, "m-9")
    [found] = build(tables).details
    assert len(found.rebalances) == REBALANCES
    assert found.rebalances_left_out == 30
    assert found.start_ms == found.rebalances[0].at_ms == at(300)
    assert len(found.members) == MEMBERS
    assert found.members[0].member == "steady-1"
    assert found.members_left_out == many + 1 - MEMBERS
    assert (found.partitions_left_out, found.owned_from_ms) == (4, None)
    assert found.partitions[-1].partition == PARTITIONS + 3  # it changed hands more often


def test_owners_that_are_too_long_ago_to_be_drawn_are_said_to_be() -> None:
    tables = empty()
    add_group(tables, "g")
    for number in range(COUNTED + 5):
        add_owner(tables, "g", number, 0, f"m-{number}", until=number + 1)
    [found] = build(tables).details
    assert found.owned_from_ms == at(5)


@pytest.mark.slow
def test_many_groups_are_ranked_and_the_rest_counted() -> None:
    tables = empty()
    for number in range(RANKED + 7):
        add_group(tables, f"g{number:04}", rebalances=number)
    report = build(tables)
    assert (len(report.groups), report.groups_left_out) == (RANKED, 7)
    assert len(report.details) == DETAILED
    assert [one.group for one in build_report(PlainReader(tables), SUMMARY, 2).details] == list(report.groups[:2])
    assert report.groups[0].group == f"g{RANKED + 6:04}"


def test_the_group_of_an_incident_on_the_first_screen_has_a_section_although_others_have_more_trouble() -> None:
    tables = empty()
    for number in range(ON_TOP + 3):
        add_group(tables, f"busy-{number}", rebalances=number + 9)
        add_group(tables, f"asleep-{number}")
        add(tables, "commit_pauses", group=f"asleep-{number}", from_ts=at(0), seconds=100.0 - number, partitions=1)
    details = build_report(PlainReader(tables), SUMMARY, 2).details
    asleep = [f"asleep-{number}" for number in range(ON_TOP)]
    assert [one.group.group for one in details] == [f"busy-{ON_TOP + 2}", f"busy-{ON_TOP + 1}", *asleep]


def test_storms_that_are_left_out_are_counted() -> None:
    tables = empty()
    add_group(tables, "g", storms=LISTED + 2)
    for number in range(LISTED + 2):
        times = {"from": at(number), "to": at(number)}
        add(tables, "storms", **{"group": "g", **times, "rebalances": 5 + number, "hidden_generations": 0})
    report = build(tables)
    assert (len(report.storms), report.storms_left_out) == (LISTED, 2)
    assert report.storms[0].rebalances == 5 + LISTED + 1


def test_commits_over_days_come_from_their_windows() -> None:
    tables = empty()
    add_group(tables, "g", kind="simple", commits=2, first_ts=at(0), last_ts=at(500_000))
    add_commits(tables, "g", 30, 400_000)
    read = {"records": 2, "missing": 0, "first_ts": at(30), "last_ts": at(400_000)}
    add(tables, "log_partitions", log_partition=0, first_offset=0, last_offset=1, **read)
    report = build(tables)
    commits = report.details[0].commits
    assert commits is not None
    assert (commits.table, sum(commits.counts), commits.bins.width_ms % 60_000) == ("commit_rates", 2, 0)
    assert report.overview.activity is not None
    assert report.overview.activity.commits.table == "commit_rates"


def test_a_log_without_records_gives_a_report_too() -> None:
    report = build(empty())
    assert report == build_report(PlainReader(empty()), SUMMARY)
    assert (report.overview.groups, report.overview.activity, report.groups, report.details) == (0, None, (), ())


def test_what_if_is_there_if_it_was_asked_for() -> None:
    tables = history()
    assert build(tables).what_if is None
    what_if(tables)
    found = build(tables).what_if
    assert found is not None
    assert [(one.assignor, one.moved) for one in found.together] == [("as it was", 6), ("range", 8), ("sticky", 2)]
    assert found.groups["app"] == found.together
    assert isinstance(found.together[0], AssignorResult)


def test_a_storm_says_what_other_assignors_would_have_stopped_in_its_time() -> None:
    tables = history()
    assert build(tables).storms[0].what_if == ()
    what_if(tables)
    # Once of range's there was no answer, so that its numbers are not to be compared.
    assert build(tables).storms[0].what_if == (AssignorPauses("as it was", 12), AssignorPauses("sticky", 4))


def test_open_transactions_are_listed_the_oldest_first_with_their_groups() -> None:
    tables = history()
    add(tables, "open_transactions", topic="later", partition=1, stable_offset=0, end_offset=9, since=at(16))
    for number in range(LISTED):
        add(tables, "open_transactions", topic=f"t{number:02}", partition=0, stable_offset=0, end_offset=1)
    report = build(tables)
    assert report.open_transactions[:3] == (
        OpenTransaction(
            7,
            "payments",
            at(15),
            1,
            (HeldUpPartition("orders", 0, 20, 100),),
            80,
            ("app", "audit", "backup"),
            1,
            ("modern",),
            0,
        ),
        OpenTransaction(None, None, at(16), 1, (HeldUpPartition("later", 1, 0, 9),), 9, (), 0),
        OpenTransaction(None, None, None, 1, (HeldUpPartition("t00", 0, 0, 1),), 1, (), 0),
    )
    assert (len(report.open_transactions), report.open_transactions_left_out) == (LISTED, 2)


def test_an_open_transaction_is_told_once_however_many_partitions_it_holds_up() -> None:
    tables = history()
    for number in range(5):
        held_up = {"stable_offset": 10, "end_offset": 20 + number, "producer_id": 7, "since": at(14 + number)}
        add(tables, "open_transactions", topic="ledger", partition=number, groups=["books"], waiting=["app"], **held_up)
    report = build(tables)
    [found] = report.open_transactions
    assert (found.producer_id, found.since_ms, found.partitions, found.held_up) == (7, at(14), 6, 80)
    assert [(one.topic, one.partition) for one in found.places] == [("ledger", 0), ("ledger", 1), ("ledger", 2)]
    assert (found.groups, found.groups_left_out) == (("app", "audit", "backup"), 2)
    assert (found.waiting, found.waiting_left_out) == (("app", "modern"), 0)
    [of_app] = detail(report, "app").awaited
    assert (of_app.partitions, of_app.since_ms, of_app.places) == (5, at(14), found.places)
    assert detail(report, "simple").awaited == ()


def test_the_document_for_machines_says_the_same() -> None:
    tables = history()
    what_if(tables)
    said = report_to_json(build(tables))
    document = json.loads(said)
    assert document["version"] == 4
    assert document["run"] == {**SUMMARY, "long_open_after_s": 60}
    assert document["overview"]["whole_from_ts"] == "2026-01-01T00:01:00.000Z"
    assert document["groups"][0]["group"] == "app"
    assert document["groups"][0]["points"]["storms"] == 5.0
    assert document["details"][0]["rebalances"][2]["likely_cause"] == "a left or timed out"
    assert document["details"][0]["group"]["group"] == "app"
    assert document["details"][0]["gaps"][0]["to_ts"] == "2026-01-01T00:00:50.000Z"
    assert document["what_if"]["groups"]["app"][1]["assignor"] == "range"
    assert document["quality"]["adds_up"] is True
    assert document["details"][0]["rebalances"][2]["cause_kind"] == "members_left"
    assert document["causes"][0] == {
        "cause_kind": "members_joined",
        "count": 3,
        "groups": [{"group": "app", "count": 2}, {"group": "modern", "count": 1}],
        "in_other_groups": 0,
    }
    assert set(re.findall(r"\w+_ms", said)) == {"width_ms"}


def test_the_document_is_read_back_as_it_was() -> None:
    tables = history()
    what_if(tables)
    tables["log_partitions"][0]["whole_from_ts"] = 10**18  # no calendar has it
    report = build(tables)
    assert report.overview.whole_from_ms == 10**18
    said = report_to_json(report)
    assert report_from_json(said, "report.json") == report
    older = {**json.loads(said), "version": 1}
    for text, problem in [
        (json.dumps(older), "here was written by another version of groupcoord: run again"),
        ("{", "here is not the report of a run"),
        ("[]", "here is not the report of a run"),
        ('{"version": 4}', "here is not the report of a run"),
    ]:
        with pytest.raises(PipelineError, match=f"^{problem}$"):
            report_from_json(text, "here")


def test_every_field_of_the_document_is_in_the_docs() -> None:
    tables = history()
    what_if(tables)
    document = json.loads(report_to_json(build(tables)))
    docs = (Path(__file__).parents[2] / "docs" / "pipeline.md").read_text(encoding="utf-8")
    section = docs[docs.index("### For machines") : docs.index("## What the log cannot tell")]
    inner = [*document["run"], *document["overview"], *document["quality"], *document["details"][0]]
    named = {name for name in [*document, *inner] if not name.endswith("_left_out")}
    assert {name for name in named if f"`{name}`" not in section} == set()
