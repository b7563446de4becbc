"""What led to each generation, as far as the trace has it; the words for it are tested in test_why.py."""

from groupcoord.coordinator.events import GenerationStarted, MemberIdAssigned, MemberRemoved, RebalanceStarted
from groupcoord.testing.trace import ResponseSent
from groupcoord.testing.trace.chronicle import Chronicle, heard_last_ms
from tests.testing.trace.stage import GROUP, Stage


def chronicle(stage: Stage) -> Chronicle:
    return Chronicle(list(stage.trace), GROUP)


def test_the_generations_of_a_group() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    b.leave()
    a.join()
    a.leave()
    assert chronicle(stage).is_known
    assert chronicle(stage).generations == (1, 2, 3)
    assert not Chronicle(list(stage.trace), "other").is_known


def test_a_birth() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    b.leave()
    a.join()
    birth = chronicle(stage).birth(2)
    assert birth is not None
    assert birth.start is not None
    assert isinstance(birth.start.event, RebalanceStarted)
    assert [type(entry.event) for entry in birth.trigger] == [MemberRemoved]
    assert isinstance(birth.end.event, GenerationStarted)
    assert not birth.at_once
    assert birth.stuck is None
    assert chronicle(stage).birth(7) is None


def test_who_was_there_before() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    first, *_, last = stage.trace
    known = chronicle(stage)
    assert set(known.members_before(last)) == {a.member_id, b.member_id}
    assert known.members_before(first) == ()
    assert known.leader_before(last) == a.member_id
    assert known.leader_before(first) == ""


def test_what_was_last_said_of_a_member() -> None:
    stage = Stage()
    (a,) = stage.stable("a")
    *_, last = stage.trace
    known = chronicle(stage)
    given = known.last_of(MemberIdAssigned, a.member_id, last)
    assert given is not None
    assert known.last_of(MemberIdAssigned, "x", last) is None
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
