"""Invariants of every random story, checked on its transcript alone, so that they apply to a real broker, too.

The transcript must be that of a story with a look after each move (``moves.watched``). The ids in it stand for the real ones,
one for one.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.conformance.moves import INSTANCES
from tests.conformance.transcript import Step

STATES_AFTER: Mapping[str, Mapping[str, set[str]]] = {
    "JoinGroup": {
        "Dead": {"Empty", "CompletingRebalance", "PreparingRebalance"},
        "Empty": {"CompletingRebalance", "PreparingRebalance"},
        "PreparingRebalance": {"CompletingRebalance"},
        "CompletingRebalance": {"PreparingRebalance"},
        "Stable": {"PreparingRebalance", "CompletingRebalance"},
    },
    "SyncGroup": {"CompletingRebalance": {"Stable"}},
    "LeaveGroup": {
        "PreparingRebalance": {"CompletingRebalance", "Empty"},
        "CompletingRebalance": {"PreparingRebalance", "Empty"},
        "Stable": {"PreparingRebalance", "Empty"},
    },
    "OffsetCommit": {"Dead": {"Empty"}},
    "DeleteGroups": {"Empty": {"Dead"}},
}
"""Which request may lead from which state to which others. Every request may leave a group as it is, and all others must."""

ERRORS: Mapping[str, set[int]] = {
    "JoinGroup": {-1, 0, 23, 25, 79, 82},
    "SyncGroup": {-1, 0, 22, 23, 25, 27, 82},
    "Heartbeat": {0, 22, 25, 27, 82},
    "LeaveGroup": {-1, 0, 25},
}
"""What each of these may be answered at its top."""

LOOKS = {("admin", "describes"), ("admin", "fetches offsets")}
"""Requests that nothing follows from."""

_ANSWERED = re.compile(r"(is answered|still waits): (\w+) of step (\d+)")
_RANDOM = re.compile(r"<uuid \d+>")


class Exchange(NamedTuple):
    """A request, as the story sent it, and its answer, which may have come later."""

    api: str
    sent: Mapping[str, Any]
    got: Any


def check(steps: Sequence[Step], *, timers: bool = False) -> None:
    """Raises AssertionError, with the number of the step. ``timers``: time passed, and more than answers shows happened."""
    laws = Laws(steps, timers)
    for number, step in enumerate(steps, 1):
        try:
            laws.hear(number, step)
        except AssertionError as broken:
            raise AssertionError(f"step {number}, {step['actor']} {step['does']}: {broken}") from None
    laws.end()


@dataclass
class Laws:
    """What is known of the group after each step."""

    steps: Sequence[Step]
    timers: bool
    state: str = "Dead"
    cause: str = "nothing"
    """The last request that was no look: it is responsible for what the next look shows."""
    generation: int = 0
    leaders: dict[int, set[str]] = field(default_factory=dict)
    told_members: set[str] | None = None
    assignments: dict[str, str] = field(default_factory=dict)
    offsets: dict[int, tuple[int, str, int]] = field(default_factory=dict)
    waiting: dict[int, Exchange] = field(default_factory=dict)
    present: set[str] = field(default_factory=set)
    stuck: bool = False
    """Did the coordinator fail somewhere? Then a generation may have been counted that nobody was told of."""

    def hear(self, number: int, step: Step) -> None:
        """The next step."""
        assert step["actor"] != "story", "the story broke off"
        assert "did not ask for" not in step["does"], "an answer too many"
        if answered := _ANSWERED.match(step["does"]):
            request = self.waiting.pop(int(answered[3]))
            if answered[1] == "is answered":
                self._exchange(request._replace(got=step["gets"]))
            else:
                self._is_rightly_silent(int(answered[3]), request)
        elif "sends" in step:
            ((name, sent),) = step["sends"].items()
            exchange = Exchange(name.partition(" ")[0], sent, step["gets"])
            if step["gets"] == "no answer yet":
                assert exchange.api in {"JoinGroup", "SyncGroup"}, "only these may wait"
                self.waiting[number] = exchange
            else:
                self._exchange(exchange)
            if (step["actor"], step["does"]) not in LOOKS:
                self.cause = exchange.api
        elif step["does"] == "vanishes":
            mine = [asked for asked in self.waiting if self.steps[asked - 1]["actor"] == step["actor"]]
            for asked in mine:
                del self.waiting[asked]

    def end(self) -> None:
        """The story is over."""
        assert not self.waiting, "a request of which nobody said whether it was answered"

    def _exchange(self, exchange: Exchange) -> None:
        api, _, got = exchange
        assert isinstance(got, dict), f"{api} is answered by {got}"
        assert "oddities" not in got
        if api in ERRORS:
            assert got["error_code"] in ERRORS[api], f"{api} is never answered by error {got['error_code']}"
            self.stuck = self.stuck or got["error_code"] == -1
        match api:
            case "DescribeGroups":
                self._described(got["groups"][0])
                return
            case "OffsetFetch":
                self._fetched(exchange)
                return
            case "JoinGroup" if got["error_code"] == 0:
                self._joined(got)
            case "SyncGroup" if got["error_code"] == 0:
                self.assignments[exchange.sent["member_id"]] = got["assignment"]
            case "OffsetCommit":
                self._committed(exchange)
            case "OffsetDelete" if got["error_code"] == 0:
                for partition in (partition for topic in got["topics"] for partition in topic["partitions"]):
                    if partition["error_code"] == 0:
                        self.offsets.pop(partition["partition_index"], None)
            case "DeleteGroups" if got["results"][0]["error_code"] == 0:
                self._is_gone()

    def _joined(self, got: Mapping[str, Any]) -> None:
        """One leader per generation, who is a member; generations follow one another."""
        generation, leader, member_id = got["generation_id"], got["leader"], got["member_id"]
        members = [member["member_id"] for member in got["members"] if "member_id" in member]
        assert len(set(members)) == len(members), "a member is listed twice"
        assert (leader == member_id) == bool(members), "who leads is told the members, and nobody else"
        if members:
            assert leader in members, "the leader is no member"
            self.told_members = set(members)
        leaders = self.leaders.setdefault(generation, set())
        leaders.add(leader)
        same = {_RANDOM.sub("", known) for known in leaders}
        # A static member that comes back leads on under its new id.
        is_static = same <= {f"{instance}-" for instance in (*INSTANCES.values(), "k")}
        assert len(leaders) == 1 or (len(same) == 1 and is_static), f"{leaders} lead generation {generation}"
        if generation != self.generation:
            assert generation > self.generation, "a generation came back"
            if not self.timers and not self.stuck:
                assert generation == self.generation + 1, f"{generation} does not follow {self.generation}"
            self.generation = generation
            self.assignments.clear()

    def _described(self, group: Mapping[str, Any]) -> None:
        """The state moved as it may, and what is described is what the members were told."""
        before, self.state = self.state, group["group_state"]
        if before != self.state and not self.timers:
            allowed = STATES_AFTER.get(self.cause, {}).get(before, set())
            assert self.state in allowed, f"{self.cause} led from {before} to {self.state}"
        if self.state == "Dead":
            self._is_gone()
        if self.state == "Empty" and before not in {"Empty", "Dead"}:
            self.generation += 1
        # The last item may be a remark about their order, which is only known of small groups.
        members = {member["member_id"]: member for member in group["members"] if "member_id" in member}
        self.present = set(members)
        assert bool(members) or self.state in {"Empty", "Dead", "PreparingRebalance"}
        assert not members or self.state not in {"Empty", "Dead"}
        if self.state == "CompletingRebalance" and self.told_members is not None:
            assert self.told_members == set(members), "the leader was told of other members"
        self.told_members = None
        if self.state == "Stable":
            for member_id, assignment in self.assignments.items():
                if member_id in members:
                    assert members[member_id]["member_assignment"] == assignment, f"{member_id} was told another share"

    def _is_gone(self) -> None:
        """A group of the same name would begin anew."""
        self.generation = 0
        self.offsets.clear()
        self.leaders.clear()
        self.assignments.clear()

    def _committed(self, exchange: Exchange) -> None:
        wanted = {
            partition["partition_index"]: partition
            for topic in exchange.sent["topics"]
            for partition in topic["partitions"]
        }
        answers = [partition for topic in exchange.got["topics"] for partition in topic["partitions"]]
        assert sorted(wanted) == sorted(answer["partition_index"] for answer in answers)
        for index in (answer["partition_index"] for answer in answers if answer["error_code"] == 0):
            self.offsets[index] = (
                wanted[index]["committed_offset"],
                wanted[index]["committed_metadata"] or "",
                wanted[index].get("committed_leader_epoch", -1),
            )

    def _fetched(self, exchange: Exchange) -> None:
        """What was committed last is there, and nothing else."""
        answer = exchange.got["groups"][0] if "groups" in exchange.got else exchange.got
        asked = exchange.sent["groups"][0] if "groups" in exchange.sent else exchange.sent
        if asked["topics"] is not None or answer.get("error_code"):
            return
        found = {
            partition["partition_index"]: (
                partition["committed_offset"],
                partition["metadata"],
                partition.get("committed_leader_epoch", -1),
            )
            for topic in answer["topics"]
            for partition in topic["partitions"]
        }
        says_epochs = "committed_leader_epoch" in str(answer["topics"])
        known = self.offsets if says_epochs else {at: (*given[:2], -1) for at, given in self.offsets.items()}
        assert found == known, f"committed was {known}, fetched is {found}"

    def _is_rightly_silent(self, number: int, request: Exchange) -> None:
        """Nobody is forgotten: it still waits, or its member asked again, or its member is gone."""
        member_id = request.sent["member_id"]
        if request.api == "SyncGroup" and (self.state == "CompletingRebalance" or member_id not in self.present):
            return
        if request.api == "JoinGroup" and self.state == "PreparingRebalance":
            return
        later = (step["sends"] for step in self.steps[number:] if "sends" in step)
        again = [sent for sends in later for name, sent in sends.items() if name.startswith(request.api)]
        assert any(sent["member_id"] == member_id for sent in again), "a request was forgotten"
