"""Random stories told to groupcoord alone: the laws hold in each, what is printed is what was told, and a fault is found."""

import itertools
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from groupcoord.core.events import Event
from tests.conformance import laws
from tests.conformance import moves as m
from tests.conformance.chance import RandomStory, RandomStoryInTime, tell_random_stories
from tests.conformance.compare import explain
from tests.conformance.judging import Differs, Judge
from tests.conformance.keeping import kept
from tests.conformance.moves import MEMBERS, Move, watched
from tests.conformance.pasting import pasted
from tests.conformance.random_stories import PROMPT_MS, PROPERTIES, tell_to_groupcoord
from tests.conformance.settings import FAST
from tests.conformance.story import TALES, Tale
from tests.conformance.telling import tell
from tests.conformance.transcript import Step
from tests.conformance.virtual import VirtualTarget, VirtualWire
from tests.conformance.wire import Wire
from tests.coordinator.invariants import Watch

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from tests.coordinator.world import World

GENERATION = [m.joins("e"), m.joins("f"), m.joins("e"), m.syncs("f"), m.syncs("e", MEMBERS)]
"""Two static members come together; what follows is short."""
LIFE = [*GENERATION, m.commits("e", 0, "5"), m.leaves("f"), m.joins("e"), m.syncs("e", "e"), m.leaves("e")]


def inspected(moves: Sequence[Move]) -> list[Step]:
    """The transcript of ``moves``; after each, the invariants of the coordinator hold."""
    watch = Watch()
    events: list[Event] = []

    def seen(kind: type[Event]) -> list[Event]:
        return [event for event in events if isinstance(event, kind)]

    def look_into(target: VirtualTarget) -> None:
        world = SimpleNamespace(coordinator=target.node.coordinator, held=(), asked=(), seen=seen)
        watch.look(cast("World", world))

    return tell_to_groupcoord("chance", watched(moves), after=look_into, listener=events.append).steps


def made_up(machine: type[RandomStory], stories: int, chance: int) -> list[Sequence[Move]]:
    """So many stories that are only made up."""
    found: list[Sequence[Move]] = []
    tell_random_stories(machine, found.append, stories=stories, chance=chance)
    return found


def test_a_few_random_stories_keep_the_laws() -> None:
    tell_random_stories(RandomStory, lambda moves: laws.check(inspected(moves)), stories=2)


def test_random_stories_keep_the_laws() -> None:
    tell_random_stories(RandomStory, lambda moves: laws.check(inspected(moves)), stories=25, chance=1)


def test_random_stories_keep_the_laws_while_time_passes() -> None:
    tell_random_stories(
        RandomStoryInTime, lambda moves: laws.check(inspected(moves), timers=True), stories=20, chance=2
    )


def test_equal_chance_makes_equal_stories() -> None:
    first, again, other = (made_up(RandomStory, 5, chance) for chance in (1, 1, 2))
    assert first == again
    assert first != other
    assert sum(map(len, first)) > 100


@pytest.mark.parametrize("chance", range(3))
def test_what_is_pasted_is_what_was_told(chance: int) -> None:
    moves = watched(made_up(RandomStoryInTime, 2, chance)[-1])
    told = tell_to_groupcoord("found_by_chance", moves)
    source = pasted(told.course)
    compile(source, "stories", "exec")
    assert retold(source) == told.steps


def test_what_is_pasted_reads_like_a_story() -> None:
    moves = [m.joins("a"), m.joins("a"), m.joins("e"), m.joins("e"), m.joins("a"), m.commits("a", 0, '(5, "x")')]
    moves += [m.syncs("e"), m.syncs("e", version=3), m.syncs("a", "ae")]
    told = tell_to_groupcoord("told", moves)
    assert pasted(told.course, "told", "Who waits for whom.") == (
        """\
from tests.conformance.actors import Stagehand
from tests.conformance.embedded import subscription
from tests.conformance.members import Member
from tests.conformance.story import Story, story


@story()
def told(s: Story) -> None:
    \"""Who waits for whom.\"""
    topic = Stagehand(s).topic("orders", 2)
    terms = {"offers": {"range": subscription(topic)}, "session_ms": 600_000, "rebalance_ms": 600_000}
    group = s.group()
    a = Member(s, "a", group_id=group, **terms)
    e = Member(s, "e", group_id=group, instance="i", **terms)
    a.joins()
    a.joins()
    request_1 = e.joins_parked()
    e.joins_parked()
    e.is_answered(request_1)
    a.joins()
    e.is_answered()
    a.commits({(topic, 0): (5, "x")})
    request_2 = e.syncs_parked()
    e.syncs_parked(version=3)
    a.syncs({a: b"for a", e: b"for e"})
    e.is_answered()
    e.stays_unanswered(2, request_2)
"""
    )


def retold(source: str) -> list[Step]:
    """The transcript of a pasted story, told as any other."""
    before = set(TALES)
    exec(source, {"__name__": "tests.conformance.stories.pasted"})
    (name,) = set(TALES) - before
    tale: Tale = TALES.pop(name)
    assert tale.settings is FAST
    return tell(tale, VirtualTarget(PROPERTIES, name))


class SpoiledWire:
    """A broker that takes a rebalance for nothing special when a heartbeat comes, as often as the items of ``faults``."""

    def __init__(self, wire: Wire, faults: Iterator[object]) -> None:
        self._wire = wire
        self._faults = faults
        self._heartbeats: set[int] = set()

    def send(self, data: bytes) -> None:
        api, version, number = struct.unpack_from(">hhi", data, 4)
        if (api, version) == (12, 4):
            self._heartbeats.add(number)
        self._wire.send(data)

    def receive(self, within_ms: int) -> bytes | None:
        frame = self._wire.receive(within_ms)
        if frame is None or struct.unpack_from(">i", frame)[0] not in self._heartbeats or frame[9:11] != b"\x00\x1b":
            return frame
        return frame if next(self._faults, None) is None else frame[:9] + b"\x00\x00" + frame[11:]

    def close(self) -> None:
        self._wire.close()


class SpoiledTarget(VirtualTarget):
    """groupcoord, but for its heartbeats."""

    def __init__(self, faults: Iterable[object]) -> None:
        super().__init__(PROPERTIES)
        self._faults = iter(faults)

    def connect(self) -> Wire:
        return SpoiledWire(VirtualWire(self, next(self._numbers)), self._faults)


def test_two_that_are_alike_are_found_to_be(tmp_path: Path) -> None:
    judge = Judge(VirtualTarget(PROPERTIES), "judged", tmp_path)
    tell_random_stories(RandomStory, judge.tell, stories=3, chance=3)
    assert judge.stories == 3
    assert judge.steps > 60
    assert judge.differing is None
    assert list(tmp_path.iterdir()) == []


class DullWire:
    """Whoever does not look for longer than ``blind_ms`` finds no answer."""

    def __init__(self, wire: Wire, blind_ms: int) -> None:
        self._wire = wire
        self._blind_ms = blind_ms

    def send(self, data: bytes) -> None:
        self._wire.send(data)

    def receive(self, within_ms: int) -> bytes | None:
        return self._wire.receive(within_ms) if within_ms > self._blind_ms else None

    def close(self) -> None:
        self._wire.close()


class DullTarget(VirtualTarget):
    """groupcoord behind a slow line, or for all who do not wait for an answer anyway behind none."""

    def __init__(self, blind_ms: int) -> None:
        super().__init__(PROPERTIES)
        self._blind_ms = blind_ms

    def connect(self) -> Wire:
        return DullWire(super().connect(), self._blind_ms)


def test_nobody_differs_for_being_slow(tmp_path: Path) -> None:
    judge = Judge(DullTarget(PROMPT_MS - 1), "slow", tmp_path)
    tell_random_stories(RandomStory, judge.tell, stories=3, chance=3)
    assert judge.outcomes["JoinGroup v9: no answer yet"]
    assert judge.steps > 60


def test_an_answer_that_never_comes_is_a_difference(tmp_path: Path) -> None:
    judge = Judge(DullTarget(PROMPT_MS), "never", tmp_path)
    with pytest.raises(Differs, match='expected "joins and waits", got "joins"'):
        judge.tell(GENERATION)


REBALANCE = [*GENERATION, m.joins("a"), m.joins("a"), m.heartbeats("e")]
"""A heartbeat that is told of a newcomer."""


def test_a_difference_that_does_not_come_again_can_still_be_explained(tmp_path: Path) -> None:
    judge = Judge(SpoiledTarget(["once"]), "judged", tmp_path)
    judge.tell(GENERATION)
    with pytest.raises(Differs):
        judge.tell(REBALANCE)
    report = judge.report()
    assert report.startswith("the broker and groupcoord differed, and not when told again:\nstep ")
    assert "gets.error_code: expected 0, got 27" in report
    (folder,) = tmp_path.iterdir()
    assert f"what both did: {folder}\n" in report
    theirs, ours = kept(folder)
    difference = explain(theirs, ours)
    assert (folder / "difference.txt").read_text().splitlines() == difference
    assert "\n".join(difference) in report
    source = (folder / "story.py").read_text()
    assert report.endswith(source)
    assert retold(source) == ours


def test_the_first_difference_is_left_and_no_other(tmp_path: Path) -> None:
    judge = Judge(SpoiledTarget(itertools.repeat("always")), "judged", tmp_path)
    for _ in range(2):
        with pytest.raises(Differs):
            judge.tell(REBALANCE)
    assert [folder.name for folder in tmp_path.iterdir()] == ["judgedx1"]


def test_a_difference_shrinks_to_a_story_that_can_be_pasted(tmp_path: Path) -> None:
    judge = Judge(SpoiledTarget(itertools.repeat("always")), "judged", tmp_path)
    with pytest.raises(Differs):
        tell_random_stories(RandomStory, judge.tell, stories=200, chance=4)
    assert judge.differing is not None
    report = judge.report()
    assert "gets.error_code: expected 0, got 27" in report
    assert f"what both did: {judge.kept}\n" in report
    source = report[report.index("from tests") :]
    assert source.count("heartbeats()") == 1
    assert "admin" not in source
    assert len(source.partition('chance."""')[2].splitlines()) <= 20
    ours = retold(source)
    assert not explain(ours, retold(source))
    assert [step["gets"]["error_code"] for step in ours if step["does"] == "heartbeats"] == [27]


Spoiler = Callable[[list[Step]], None]


def answers(steps: list[Step], does: str) -> list[Any]:
    """What is answered in the steps that are called so."""
    return [step["gets"] for step in steps if step["does"].startswith(does) and isinstance(step["gets"], dict)]


def joined(steps: list[Step]) -> Any:
    return answers(steps, "is answered: JoinGroup")[0]


def described(steps: list[Step], state: str) -> Any:
    groups = [answer["groups"][0] for answer in answers(steps, "describes")]
    return next(group for group in groups if group["group_state"] == state)


def another_leader(steps: list[Step]) -> None:
    joined(steps)["leader"] = joined(steps)["member_id"]


def a_leader_who_is_no_member(steps: list[Step]) -> None:
    leader = next(answer for answer in answers(steps, "joins") if len(answer["members"]) == 2)
    leader["members"] = [member for member in leader["members"] if member["member_id"] != leader["leader"]]


def a_generation_left_out(steps: list[Step]) -> None:
    for answer in (*answers(steps, "joins"), *answers(steps, "is answered: JoinGroup")):
        answer["generation_id"] *= 2


def another_share(steps: list[Step]) -> None:
    described(steps, "Stable")["members"][0]["member_assignment"] = "nobody's"


def a_state_from_nowhere(steps: list[Step]) -> None:
    described(steps, "CompletingRebalance")["group_state"] = "Stable"


def a_member_nobody_was_told_of(steps: list[Step]) -> None:
    described(steps, "CompletingRebalance")["members"].append({"member_id": "x-<uuid 1>"})


def a_lost_offset(steps: list[Step]) -> None:
    answers(steps, "fetches")[-1]["groups"][0]["topics"] = []


def an_error_of_another_api(steps: list[Step]) -> None:
    answers(steps, "leaves")[0]["error_code"] = 27


def two_answers(steps: list[Step]) -> None:
    steps.insert(-1, {"actor": "e", "does": "gets an answer that it did not ask for"})


def a_forgotten_request(steps: list[Step]) -> None:
    step = next(step for step in steps if step["does"].startswith("is answered: JoinGroup"))
    a_request_nobody_looked_after(steps)
    steps.insert(-1, step | {"does": step["does"].replace("is answered", "still waits"), "gets": "no answer"})


def a_request_nobody_looked_after(steps: list[Step]) -> None:
    number = next(n for n, step in enumerate(steps) if step["does"].startswith("is answered: JoinGroup"))
    steps[number] = {"actor": "time", "does": "passes"}


SPOILERS: Mapping[Spoiler, str] = {
    another_leader: "who leads is told the members, and nobody else",
    a_leader_who_is_no_member: "the leader is no member",
    a_generation_left_out: "2 does not follow 0",
    another_share: "was told another share",
    a_state_from_nowhere: "JoinGroup led from Dead to Stable",
    a_member_nobody_was_told_of: "the leader was told of other members",
    a_lost_offset: "committed was .* fetched is {}",
    an_error_of_another_api: "LeaveGroup is never answered by error 27",
    two_answers: "an answer too many",
    a_forgotten_request: "a request was forgotten",
    a_request_nobody_looked_after: "nobody said whether it was answered",
}


@pytest.fixture(scope="module")
def life() -> list[Step]:
    return inspected(LIFE)


@pytest.mark.parametrize(("spoil", "law"), SPOILERS.items())
def test_each_law_can_be_broken(spoil: Spoiler, law: str, life: list[Step]) -> None:
    laws.check(life)
    spoiled = deepcopy(life)
    spoil(spoiled)
    with pytest.raises(AssertionError, match=law):
        laws.check(spoiled)


def test_nobody_takes_an_answer_from_a_wire_by_looking() -> None:
    """Two heartbeats that find their answers although somebody looked before."""
    steps = inspected([*GENERATION, m.heartbeats("e"), m.heartbeats("f"), m.vanishes("e"), m.heartbeats("e")])
    assert [answer["error_code"] for answer in answers(steps, "heartbeats")] == [0, 0, 0]
