"""What led to each generation, as far as the trace has it; the words for it are tested in test_why.py."""

from groupcoord.coordinator.events import GenerationStarted, MemberIdAssigned, MemberRemoved, RebalanceStarted
from groupcoord.testing.trace import ResponseSent
from groupcoord.testing.trace.generation_history import GenerationHistory, heard_last_ms
from tests.testing.trace.stage import GROUP, Stage


def history(stage: Stage) -> GenerationHistory:
    return GenerationHistory(list(stage.trace), GROUP)


def test_the_generations_of_a_group() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    b.leave()
    a.join()
    a.leave()
    assert history(stage).generations == (1, 2, 3)
    assert GenerationHistory(list(stage.trace), "other").generations == ()


def test_a_birth() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    b.leave()
    a.join()
    origin = history(stage).generation_start(2)
    assert origin is not None
    assert origin.start is not None
    assert isinstance(origin.start.event, RebalanceStarted)
    assert [type(entry.event) for entry in origin.trigger] == [MemberRemoved]
    assert isinstance(origin.end.event, GenerationStarted)
    assert not origin.at_once
    assert origin.stuck is None
    assert history(stage).generation_start(7) is None


def test_who_was_there_before() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    first, *_, last = stage.trace
    known = history(stage)
    assert set(known.members_before(last)) == {a.member_id, b.member_id}
    assert known.members_before(first) == ()
    assert known.leader_before(last) == a.member_id
    assert known.leader_before(first) == ""


def test_what_was_last_said_of_a_member() -> None:
    stage = Stage()
    (a,) = stage.stable("a")
    *_, last = stage.trace
    known = history(stage)
    given = known.id_assigned_before(a.member_id, last)
    assert given is not None
    assert isinstance(given.event, MemberIdAssigned)
    assert known.id_assigned_before("x", last) is None
    joined = known.joined_before(a.member_id, last)
    assert joined is not None
    assert joined.member == a.member_id
    assert known.joined_before("x", last) is None
    made_by = known.made_by(given)
    assert made_by is not None
    assert made_by.seq == 1
    assert known.made_by(made_by) is None
    answer = known.answer_to(made_by)
    assert isinstance(answer, ResponseSent)
    assert answer.error == "MEMBER_ID_REQUIRED"
    assert known.answer_to(last) is None


def test_when_a_member_was_heard_last() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    b.leave()
    stage.advance(10_000)
    left, silent = stage.trace.of(MemberRemoved).entries
    assert heard_last_ms(left) is None
    assert heard_last_ms(silent) == 6_000
    assert a.member_id == stage.trace.of(MemberRemoved).last.member
