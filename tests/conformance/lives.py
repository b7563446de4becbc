"""Random histories of consumer groups: consumers and classic members join, leave and resubscribe, and topics change.

What happens next is drawn while the story is told, with the same chance each time: a server that answers otherwise goes
otherwise from there on. All members have made-up ids wherever a coordinator takes them, because assignments follow the order
of ids. Where it does not, ids begin with the client's id, and assignors that order by ids are used.
"""

import random
from collections.abc import Callable
from typing import Any

from groupcoord.protocol.messages import DescribeGroupsRequest, HeartbeatRequest, JoinGroupRequest
from tests.conformance.actors import Stagehand
from tests.conformance.consumers import Consumer, Watcher, owned_partitions, topics_with_ids
from tests.conformance.embedded import assignment, subscription
from tests.conformance.members import Member
from tests.conformance.stories.consumer_topics import create, delete, grow
from tests.conformance.story import Story
from tests.conformance.wire import PATIENCE_MS

MOVES = 40
RESOLVING_MS = 100
"""How long topics that match a regular expression are looked up, at most."""

WAITS_IN = {"JoinGroup": "PreparingRebalance", "SyncGroup": "CompletingRebalance"}
"""In which state of a classic group which request may have to wait."""


class Life:
    """One life of one group of ``s``, with ``chance``. Either there are classic members in it, or anything else that is odd."""

    def __init__(self, s: Story, chance: random.Random) -> None:
        self.s, self.chance = s, chance
        self.group, self.stage, self.admin = s.group(), Stagehand(s), Watcher(s, "admin")
        self.mixed = chance.random() < 0.5
        self.by_regex = not self.mixed and chance.random() < 0.4
        self.sizes = {"orders": chance.randint(1, 7), "payments": chance.randint(1, 3), "returns": 1}
        self.names, self.ids = topics_with_ids(s, self.stage, **self.sizes)
        self.admin.ids = self.ids
        self.made = 0
        self.consumers = [self._consumer(name) for name in "abcd"]
        self.consumers += [self._consumer("e", "i"), self._consumer("f", "i"), self._consumer("g", "j")]
        self.classic: list[Member] = []
        if self.mixed:
            self.classic = [self._classic(name) for name in ("a", "k", "l", "m")]
            self.classic += [self._classic("n", "i"), self._classic("o", "k")]

    def goes_on(self, moves: int = MOVES) -> None:
        """So many moves, and a last look."""
        early = self.chance.choice((0, 8, 12)) if self.mixed else 0
        for number in range(moves):
            kinds = [self._of_a_consumer, self._of_a_classic_member, self._from_outside, self._of_topics]
            (move,) = self.chance.choices(kinds, (0 if number < early else 70, 45 if self.mixed else 0, 22, 3))
            move()
            if self.by_regex and move == self._of_a_consumer:
                # Topics that match are looked up beside the requests, and not only for who has just said what should match.
                self.s.target.wait(RESOLVING_MS)
            for member in self.classic:
                self._listens(member)
        self.admin.looks_at(self.group)
        self.admin.describes(self.group)
        self.admin.fetches(self.group, None)

    def _consumer(self, name: str, instance: str | None = None) -> Consumer:
        consumer = Consumer(self.s, name, group_id=self.group, instance=instance, ids=self.ids)
        consumer.topics, consumer.regex = self._wanted(), self._expression() if self._now(0.3) else None
        consumer.assignor = "range" if self.mixed else self.chance.choice((None, None, "range", "uniform"))
        return consumer

    def _classic(self, name: str, instance: str | None = None) -> Member:
        member = Member(self.s, name.upper(), group_id=self.group, instance=instance, offers=self._offers())
        member.member_id = "" if instance else name
        return member

    def _offers(self, generation: int = -1) -> dict[str, bytes]:
        topics = self._wanted() or self.names[:1]
        owned = {topics[0]: self.chance.sample(range(4), self.chance.randint(0, 3))} if self._now(0.3) else {}
        version = self.chance.choice((3, 3, 1, 0))
        data = subscription(*topics, version=version, owned=owned, generation=generation)
        return dict.fromkeys(self.chance.choice((("range",), ("range", "roundrobin"), ("sticky", "range"))), data)

    def _wanted(self) -> list[str]:
        wanted = self.chance.choice(
            (
                ["orders"],
                ["orders"],
                ["orders", "payments"],
                ["payments", "returns"],
                ["nowhere"],
                ["orders", "nowhere"],
            )
        )
        return [self.s.topic_name(suffix) for suffix in wanted]

    def _expression(self) -> str | None:
        if not self.by_regex:
            return None
        return self.chance.choice((f"{self.s.name}-o.*", f"{self.s.name}-(orders|pay.*)", f"{self.s.name}-x", "", "("))

    def _now(self, likely: float) -> bool:
        return self.chance.random() < likely

    # What consumers do

    def _of_a_consumer(self) -> None:
        if self.mixed and self._now(0.04):
            self._all_leave()
            return
        who = self.chance.choice(self.consumers)
        if who.epoch <= 0 and self._now(0.93):
            self._joins(who)
            return
        moves: dict[Callable[[Consumer], None], int] = {
            self._owns: 40,
            self._says_nothing_new: 12,
            self._owns_something: 8,
            self._says_everything: 4,
            self._leaves: 6,
            self._wants_something_else: 9,
            self._loses_an_answer: 5,
            self._joins: 4,
            self._is_odd: 8,
            self._commits: 8,
            self._fetches: 4,
        }
        (move,) = self.chance.choices(list(moves), list(moves.values()))
        move(who)

    def _joins(self, who: Consumer) -> None:
        changes: dict[str, Any] = {}
        if self._now(0.05):
            changes["topic_partitions"] = owned_partitions({self.ids[self.names[0]]: [0, 1]})
        if self._now(0.1):
            changes["rack_id"] = "r"
        who.joins(**changes)

    def _owns(self, who: Consumer) -> None:
        who.owns()

    def _says_nothing_new(self, who: Consumer) -> None:
        who.heartbeats(version=self.chance.choice((1, 1, 0)))

    def _owns_something(self, who: Consumer) -> None:
        name = self.chance.choice(self.names)
        held = list(dict(who.assigned).get(self.ids[name], ())) or [0, 1]
        who.owns({self.ids[name]: self.chance.sample(held, self.chance.randint(0, len(held)))})

    def _says_everything(self, who: Consumer) -> None:
        request = who.join_request(member_epoch=who.epoch)
        who.asks(request, does="says everything")

    def _leaves(self, who: Consumer) -> None:
        who.leaves(self.chance.choice((-1, -2)) if who.instance else -1)

    def _all_leave(self) -> None:
        for who in self.consumers:
            if who.epoch > 0:
                who.leaves()

    def _wants_something_else(self, who: Consumer) -> None:
        what = self.chance.choice(("topics", "topics", "expression", "assignor", "timeout"))
        changes: dict[str, Any] = {}
        if what == "topics":
            who.topics = self._wanted()
            changes["subscribed_topic_names"] = tuple(who.topics)
        elif what == "expression" and self.by_regex:
            who.regex = self._expression()
            changes["subscribed_topic_regex"] = who.regex
        elif what == "assignor" and not self.mixed:
            changes["server_assignor"] = self.chance.choice(("range", "uniform", "range", "", "bogus"))
        else:
            changes["rebalance_timeout_ms"] = self.chance.choice((50_000, 60_000))
        who.heartbeats(does=f"heartbeats with another {what}", **changes)

    def _loses_an_answer(self, who: Consumer) -> None:
        before = who.epoch, who.assigned
        if self._now(0.3):
            self._joins(who)
        else:
            who.owns()
        who.epoch, who.assigned = before
        if self._now(0.8):
            who.owns()

    def _is_odd(self, who: Consumer) -> None:
        odd: list[dict[str, Any]] = [
            {"member_epoch": who.epoch + 1},
            {"member_epoch": who.epoch - 1},
            {"member_epoch": who.epoch - 1, "topic_partitions": ()},
            {"member_epoch": -2},
            {"member_epoch": -3},
            {"instance_id": "i"},
            {"instance_id": None},
            {"instance_id": "unknown"},
            {"rack_id": ""},
            {"rebalance_timeout_ms": 0},
            {"subscribed_topic_names": ()},
            {"member_id": "nobody"},
            {"member_id": self.chance.choice(self.consumers).member_id},
            {"member_id": self.chance.choice(self.consumers).member_id, "member_epoch": 0},
        ]
        before = who.member_id, who.epoch, who.assigned
        changes = self.chance.choice(odd)
        who.heartbeats(does="heartbeats oddly", **changes)
        if changes.get("rebalance_timeout_ms") == 0:  # nothing is to come before what is due at once
            self.s.target.wait(self.s.target.settle_ms)
        if self._now(0.7):
            who.member_id, who.epoch, who.assigned = before
        else:
            who.member_id = before[0]

    def _commits(self, who: Consumer) -> None:
        changes: dict[str, Any] = {}
        if self._now(0.5):
            changes["generation_id_or_member_epoch"] = who.epoch + self.chance.choice((1, -1, -1, -2))
        if self._now(0.1):
            changes["group_instance_id"] = "j"
        partitions = self.chance.sample(range(8), self.chance.randint(1, 3))
        name = self.chance.choice(self.names)
        offset = self.chance.randint(0, 99)
        who.commits({(name, partition): offset for partition in partitions}, self.chance.randint(2, 10), **changes)

    def _fetches(self, who: Consumer) -> None:
        changes: dict[str, Any] = {"member_epoch": who.epoch + self.chance.choice((1, -1))} if self._now(0.4) else {}
        version = self.chance.randint(9, 10) if changes else self.chance.randint(1, 10)
        who.fetches_offsets({self.names[0]: [0, 1, 2]}, version, **changes)

    # What classic members do

    def _of_a_classic_member(self) -> None:
        who = self.chance.choice([member for member in self.classic if not member.parked] or self.classic)
        if who.parked:
            who.heartbeats()
            return
        if who.generation < 0 and self._now(0.9):
            self._enters(who)
            return
        moves: dict[Callable[[Member], None], int] = {
            self._syncs: 30,
            self._beats: 25,
            self._rejoins: 30,
            self._goes: 8,
            self._is_odd_classically: 8,
            self._commits_classically: 8,
        }
        (move,) = self.chance.choices(list(moves), list(moves.values()))
        move(who)

    def _enters(self, who: Member) -> None:
        """A join under a made-up id; where only ids of the coordinator count, with one of these."""
        self._joins_classically(who, who.join_request(), does="joins")
        if who.parked or who.generation >= 0 or who.instance:
            return
        self._joins_classically(who, who.join_request(member_id=""), does="asks for an id")
        if not who.parked and who.generation < 0:
            self._joins_classically(who, who.join_request(), does="joins with an id")

    def _joins_classically(self, who: Member, request: JoinGroupRequest, *, does: str) -> None:
        who.parks(request, 9, does=does, patience=lambda: self._patience("JoinGroup"))

    def _patience(self, api: str) -> int:
        """How long an answer may take: a slow server is not to look as if it let somebody wait."""
        group = self.stage.ask(DescribeGroupsRequest(groups=(self.group,))).groups[0]
        return self.s.target.settle_ms if group.group_state == WAITS_IN[api] else PATIENCE_MS

    def _rejoins(self, who: Member) -> None:
        if self._now(0.5):
            who.offers = self._offers(who.generation)
        self._enters(who)
        if not who.parked and self._now(0.7):
            self._syncs(who)

    def _syncs(self, who: Member) -> None:
        others = [member for member in self.classic if member.member_id]
        size = self.sizes["orders"]
        shares = {
            member: assignment({self.names[0]: list(range(size))[number :: len(others)]})
            for number, member in enumerate(others)
        }
        leads = who.leader == who.member_id
        who.parks(
            who.sync_request(shares if leads else {}), 5, does="syncs", patience=lambda: self._patience("SyncGroup")
        )

    def _beats(self, who: Member) -> None:
        if who.heartbeats() in {22, 25}:
            self._forgets(who)

    def _goes(self, who: Member) -> None:
        who.leaves()
        self._forgets(who)

    def _forgets(self, who: Member) -> None:
        who.generation = -1
        who.member_id = "" if who.instance else who.name.lower()

    def _is_odd_classically(self, who: Member) -> None:
        odd: list[Callable[[], Any]] = [
            lambda: who.heartbeats(generation_id=who.generation + 1),
            lambda: who.heartbeats(member_id="nobody"),
            lambda: who.heartbeats(group_instance_id="i"),
            lambda: who.asks(who.sync_request(generation_id=who.generation - 1), 5, does="syncs late"),
            lambda: who.asks(who.sync_request(protocol_name="sticky"), 5, does="syncs with another protocol"),
            lambda: who.asks(who.join_request(protocol_type="connect"), 9, does="joins as another type"),
        ]
        before = who.member_id, who.generation
        self.chance.choice(odd)()
        who.member_id, who.generation = before

    def _commits_classically(self, who: Member) -> None:
        late = self.chance.choice((0, 0, 1, -1))
        who.commits(
            {(self.names[0], 0): self.chance.randint(0, 99)},
            self.chance.randint(2, 9),
            generation_id_or_member_epoch=who.generation + late,
        )

    def _listens(self, who: Member) -> None:
        """Was a request of a classic group answered that had to wait?"""
        for pending in list(who.parked):
            question = HeartbeatRequest(group_id=self.group, generation_id=0, member_id="stagehand")
            self.stage.ask(question)
            step = self.s.begin(who.name, f"looks for an answer: {pending.api.name} of step {pending.step}")
            answer = self.s.receive(step, pending, self._patience(pending.api.name))
            self.s.end()
            if pending.line.waiting is None:
                who.parked.remove(pending)
            if answer is not None:
                who.learns(answer)

    # What others do

    def _from_outside(self) -> None:
        topic = self.names[0]
        removed = self.chance.choice(
            [*(who.member_id or "" for who in self.consumers), *(who.member_id for who in self.classic)]
        )
        moves: list[tuple[int, Callable[[], Any]]] = [
            (10, lambda: self.admin.looks_at(self.group, version=self.chance.choice((1, 1, 0)))),
            (4, lambda: self.admin.describes(self.group)),
            (3, lambda: self.admin.lists(types=self.chance.choice(((), ("consumer",), ("classic",))))),
            (2, lambda: self.admin.deletes(self.group)),
            (3, lambda: self.admin.fetches(self.group, None, self.chance.randint(2, 9))),
            (2, lambda: self.admin.commits(self.group, {(topic, 0): 1}, self.chance.randint(2, 10))),
            (1, lambda: self.admin.deletes_offsets(self.group, {topic: [0, 1]})),
            (2, lambda: self.admin.removes(self.group, (removed, None))),
            (1, lambda: self.admin.removes(self.group, self.chance.choice("ijk"))),
        ]
        (move,) = self.chance.choices([move for _, move in moves], [weight for weight, _ in moves])
        move()

    def _of_topics(self) -> None:
        if self._now(0.6):
            self.sizes["orders"] += 1
            grow(self.s, self.stage, self.names[0], self.sizes["orders"])
        elif "later" not in self.sizes:
            self.sizes["later"] = 1
            create(self.s, self.stage, "nowhere", 2)
        elif len(self.names) > 2:
            delete(self.s, self.stage, self.names.pop())
