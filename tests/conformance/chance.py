"""A Hypothesis state machine that generates random stories: its rules collect moves, and the end plays the story.

Hypothesis leaves out some kinds of moves in each story, so that others come more often.
"""

import sys
from collections.abc import Callable, Sequence
from typing import cast

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from tests.conformance import moves as m
from tests.conformance.moves import INSTANCES, MEMBERS, ODD_OFFERS, OFFERS, Move

RULES_PER_STORY = 40
"""How many rules a story is made of; some of them are several moves."""

who = st.sampled_from(MEMBERS)
some = st.lists(who, min_size=2, max_size=len(MEMBERS), unique=True)
offers = st.sampled_from(OFFERS)
any_offers = st.one_of(offers, offers, st.sampled_from(ODD_OFFERS))
versions = st.sampled_from((9, 9, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0))
ids = st.one_of(st.just('""'), st.just('"nobody"'), who.map(lambda name: f"{name}.member_id"))
own_or_other_ids = st.one_of(st.none(), ids)
instances = st.one_of(st.none(), st.sampled_from(("None", '"i"', '"j"', '"k"')))
generations = st.sampled_from((0, 1, -1))
partitions = st.integers(0, 2)
committed = st.sampled_from(("5", "6", '(7, "note")', '(8, "", 3)', "(9, None)", "-1"))
gone = st.one_of(
    who,
    who.map(lambda name: f"({name}.member_id, {_instance(name)})"),
    st.sampled_from(('"i"', '"j"', '"k"', '("nobody", None)', '("nobody", "i")')),
)


def _instance(name: str) -> str:
    return f'"{INSTANCES[name]}"' if name in INSTANCES else "None"


class RandomStory(RuleBasedStateMachine):
    """Six members in one group: four dynamic and two static ones."""

    def __init__(self, tell: Callable[[Sequence[Move]], None]) -> None:
        super().__init__()
        self._tell = tell
        self.moves: list[Move] = []
        self._offers = dict.fromkeys(MEMBERS, OFFERS[0])
        self._left: set[str] = set()

    def teardown(self) -> None:
        if sys.exc_info()[0] is None:  # otherwise Hypothesis gave the story up while it was made up
            self._tell(self.moves)

    def _joins(self, name: str, version: int = 9) -> Move:
        """A proper join: who left has no id any more."""
        me = '""' if name in self._left else None
        self._left.discard(name)
        return m.joins(name, offers=self._offers[name], version=version, me=me)

    @rule(members=some)
    def some_join(self, members: list[str]) -> None:
        self.moves += [self._joins(name) for name in members]

    @rule(members=some)
    def some_sync(self, members: list[str]) -> None:
        self.moves += [m.syncs(name, MEMBERS) for name in members]

    @rule(leads=who)
    def one_joins_and_all_follow(self, leads: str) -> None:
        """What clients do after a rebalance: join until nobody is missing, then sync."""
        everybody = [leads, *(name for name in MEMBERS if name != leads)]
        self.moves += [self._joins(name) for name in everybody + everybody]
        self.moves += [m.syncs(name, MEMBERS) for name in everybody]

    @rule(name=who)
    def joins(self, name: str) -> None:
        self.moves.append(self._joins(name))

    @rule(name=who, offered=offers, version=versions)
    def joins_with_a_new_offer(self, name: str, offered: str, version: int) -> None:
        self._offers[name] = offered
        self.moves.append(self._joins(name, version))

    @rule(name=who, version=versions)
    def starts_again(self, name: str, version: int) -> None:
        self.moves.append(m.joins(name, offers=self._offers[name], version=version, me='""'))

    @rule(
        name=who,
        offered=any_offers,
        version=versions,
        me=own_or_other_ids,
        instance=instances,
        protocol_type=st.sampled_from((None, None, None, '"connect"', '""')),
    )
    def joins_oddly(
        self, name: str, offered: str, version: int, me: str | None, instance: str | None, protocol_type: str | None
    ) -> None:
        self.moves.append(
            m.joins(name, offers=offered, version=version, me=me, instance=instance, protocol_type=protocol_type)
        )

    @rule(name=who, gives=st.lists(who, unique=True), version=st.sampled_from((5, 5, 4, 3, 2, 1, 0)))
    def syncs(self, name: str, gives: list[str], version: int) -> None:
        self.moves.append(m.syncs(name, gives, version=version))

    @rule(
        name=who,
        version=st.sampled_from((5, 5, 4, 3, 0)),
        me=own_or_other_ids,
        instance=instances,
        late=generations,
        protocol_name=st.sampled_from((None, None, '"sticky"', "None")),
        protocol_type=st.sampled_from((None, None, '"connect"', "None")),
    )
    def syncs_oddly(
        self,
        name: str,
        version: int,
        me: str | None,
        instance: str | None,
        late: int,
        protocol_name: str | None,
        protocol_type: str | None,
    ) -> None:
        self.moves.append(
            m.syncs(
                name,
                MEMBERS,
                version=version,
                me=me,
                instance=instance,
                late=late,
                protocol_name=protocol_name,
                protocol_type=protocol_type,
            )
        )

    @rule(name=who)
    def heartbeats(self, name: str) -> None:
        self.moves.append(m.heartbeats(name))

    @rule(name=who, version=st.sampled_from((4, 3, 2, 1, 0)), me=own_or_other_ids, instance=instances, late=generations)
    def heartbeats_oddly(self, name: str, version: int, me: str | None, instance: str | None, late: int) -> None:
        self.moves.append(m.heartbeats(name, version=version, me=me, instance=instance, late=late))

    @rule(name=who, version=st.sampled_from((5, 5, 4, 3, 2, 1, 0)))
    def leaves(self, name: str, version: int) -> None:
        self.moves.append(m.leaves(name, version=version))
        self._left.add(name)

    @rule(whom=st.lists(gone, max_size=3), version=st.sampled_from((5, 5, 4, 3, 1)))
    def are_removed(self, whom: list[str], version: int) -> None:
        self.moves.append(m.removes(whom, version=version))

    @rule(name=who, partition=partitions, what=committed)
    def commits(self, name: str, partition: int, what: str) -> None:
        self.moves.append(m.commits(name, partition, what))

    @rule(
        name=who,
        partition=partitions,
        what=committed,
        version=st.sampled_from((9, 8, 7, 6, 5, 4, 3, 2)),
        me=own_or_other_ids,
        instance=instances,
        late=generations,
    )
    def commits_oddly(
        self, name: str, partition: int, what: str, version: int, me: str | None, instance: str | None, late: int
    ) -> None:
        self.moves.append(m.commits(name, partition, what, version=version, me=me, instance=instance, late=late))

    @rule(
        where=st.lists(partitions, min_size=1, unique=True),
        what=committed,
        version=st.sampled_from((9, 10, 8, 7, 6, 5, 4, 3, 2)),
        keep_ms=st.sampled_from((-1, 86_400_000)),
    )
    def commits_from_outside(self, where: list[int], what: str, version: int, keep_ms: int) -> None:
        self.moves.append(m.commits_from_outside(where, what, version=version, keep_ms=keep_ms))

    @rule(where=st.lists(partitions, unique=True), version=st.integers(1, 10))
    def offsets_are_fetched(self, where: list[int], version: int) -> None:
        self.moves.append(m.fetches(where, version=version))

    @rule(version=st.integers(2, 10))
    def all_offsets_are_fetched(self, version: int) -> None:
        self.moves.append(m.fetches(None, version=version))

    @rule(version=st.integers(0, 6))
    def is_described(self, version: int) -> None:
        self.moves.append(m.describes(version=version))

    @rule(
        states=st.lists(st.sampled_from(("Stable", "Empty", "PreparingRebalance", "Dead")), max_size=2, unique=True),
        types=st.lists(st.sampled_from(("Classic", "Consumer")), max_size=1),
        version=st.sampled_from((5, 5, 5, 4, 3, 0)),
    )
    def is_listed(self, states: list[str], types: list[str], version: int) -> None:
        states, types = states if version >= 4 else [], types if version >= 5 else []
        self.moves.append(m.lists(states=states, types=types, version=version))

    @rule(where=st.lists(partitions, min_size=1, unique=True))
    def offsets_are_deleted(self, where: list[int]) -> None:
        self.moves.append(m.deletes_offsets(where))

    @rule(version=st.integers(0, 2))
    def is_deleted(self, version: int) -> None:
        self.moves.append(m.deletes_the_group(version))

    @rule(name=who, forgets=st.booleans())
    def vanishes(self, name: str, forgets: bool) -> None:
        self.moves.append(m.vanishes(name))
        if forgets:
            self._left.add(name)


class RandomStoryInTime(RandomStory):
    """The same, and time passes: sessions end, rebalances time out."""

    @rule(duration_ms=st.sampled_from((1_000, 299_000, 300_000, 599_000, 600_000)))
    def time_passes(self, duration_ms: int) -> None:
        self.moves.append(m.time_passes(duration_ms))


def tell_random_stories(
    machine: type[RandomStory], tell: Callable[[Sequence[Move]], None], *, stories: int, chance: int = 0
) -> None:
    """Make up so many stories and ``tell`` each; equal ``chance``, equal stories. Ends with what ``tell`` raises."""

    def one() -> RandomStory:
        return machine(tell)

    run_state_machine_as_test(
        cast("type[RandomStory]", seed(chance)(one)),
        settings=settings(
            max_examples=stories,
            stateful_step_count=RULES_PER_STORY,
            phases=[Phase.generate],
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
            print_blob=False,
            report_multiple_bugs=False,
        ),
    )
