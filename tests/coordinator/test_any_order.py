"""Whatever six clients do in whatever order, and whatever the log does: the invariants of invariants.py hold after every step,
and the same script gives the same effects again."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.offset_delete import OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import OffsetDeleteRequest
from tests.coordinator.transactions import end_transaction, fetch_stable, txn_commit, txn_commit_of
from tests.coordinator.world import Member, World, subscription

OFFERS: tuple[list[tuple[str, bytes]], ...] = (
    [("range", subscription("t"))],
    [("range", subscription("t", "u"))],
    [("sticky", subscription("t")), ("range", subscription("t"))],
    [("range", b"\x00"), ("range", b"")],
    [("sticky", b"")],
    [("range", subscription("t")[:8])],
    [("range", subscription("t")), ("range", subscription("t")), ("sticky", subscription("t"))],
    [],
)
who = st.integers(0, 5)


class Stage:
    """A world with six clients in it: four dynamic ones, one of an old version, and two that are static."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.world = World(**config)
        self.clients: list[Member] = [
            self.world.member("a", protocols=OFFERS[0]),
            self.world.member("b", protocols=OFFERS[2], session_ms=30_000),
            self.world.member("c", protocols=OFFERS[0], rebalance_ms=20_000),
            self.world.member("d", protocols=OFFERS[0], version=3),
            self.world.member("e", protocols=OFFERS[0], instance="i", version=8),
            self.world.member("f", protocols=OFFERS[2], instance="j"),
        ]

    def join(self, client: int, forgets: bool, offer: int | None) -> None:
        member = self.clients[client]
        if forgets:
            member.member_id = ""
        if offer is not None:
            member.protocols = OFFERS[offer]
        member.join()

    def sync(self, client: int, late: int) -> None:
        member = self.clients[client]
        member.sync(generation=member.generation - late)

    def heartbeat(self, client: int, late: int) -> None:
        member = self.clients[client]
        member.heartbeat(generation=member.generation - late)

    def leave(self, client: int, by_instance: bool) -> None:
        member = self.clients[client]
        member.leave(**({"member_id": ""} if by_instance else {}))

    def commit(self, client: int, topic: str) -> None:
        self.clients[client].commit({(topic, 0): 1, (topic, 9): 1})

    def commit_from_outside(self, retention_ms: int) -> None:
        self.world.commit(retention_ms=retention_ms, version=4)

    def commit_in_transaction(self, client: int, producer_id: int, topic: str, from_outside: bool) -> None:
        offsets = {(topic, 0): 2, (topic, 9): 2}
        if from_outside:
            txn_commit(self.world, offsets, producer_id=producer_id)
        else:
            txn_commit_of(self.clients[client], offsets, producer_id=producer_id)

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        end_transaction(self.world, producer_id, committed=committed)

    def delete_offsets(self) -> None:
        topics = tuple(
            OffsetDeleteRequestTopic(name=name, partitions=(OffsetDeleteRequestPartition(partition_index=0),))
            for name in ("t", "u")
        )
        self.world.ask(ApiKey.OFFSET_DELETE, OffsetDeleteRequest(group_id="g", topics=topics))

    def delete_group(self) -> None:
        self.world.delete_groups()

    def look(self) -> None:
        self.world.describe()
        self.world.list_groups()
        self.world.ask_offsets()

    def advance(self, ms: int) -> None:
        self.world.advance(ms)

    def hold(self) -> None:
        self.world.hold_appends()

    def confirm(self) -> None:
        self.world.confirm()

    def fail(self, error: ErrorCode) -> None:
        self.world.fail(error)


class AnyOrder(RuleBasedStateMachine):
    """Draws a script and performs it step by step."""

    @initialize(
        config=st.fixed_dictionaries(
            {
                "group_initial_rebalance_delay_ms": st.sampled_from([0, 3_000]),
                "group_max_size": st.sampled_from([2, 4, 1_000]),
                "offsets_topic_num_partitions": st.just(1),
            }
        )
    )
    def set_the_stage(self, config: dict[str, Any]) -> None:
        self.config = config
        self.stage = Stage(config)
        self.script: list[tuple[str, tuple[Any, ...]]] = []

    def do(self, verb: str, *words: Any) -> None:
        self.script.append((verb, words))
        getattr(self.stage, verb)(*words)

    @rule(client=who, forgets=st.booleans(), offer=st.one_of(st.none(), st.none(), st.integers(0, len(OFFERS) - 1)))
    def join(self, client: int, forgets: bool, offer: int | None) -> None:
        self.do("join", client, forgets, offer)

    @rule()
    def everybody_joins(self) -> None:
        for client in range(6):
            self.do("join", client, False, None)

    @rule()
    def everybody_syncs(self) -> None:
        for client in range(6):
            self.do("sync", client, 0)

    @rule(client=who, late=st.sampled_from([0, 0, 0, 1]))
    def sync(self, client: int, late: int) -> None:
        self.do("sync", client, late)

    @rule(client=who, late=st.sampled_from([0, 0, 0, 1]))
    def heartbeat(self, client: int, late: int) -> None:
        self.do("heartbeat", client, late)

    @rule(client=who, by_instance=st.booleans())
    def leave(self, client: int, by_instance: bool) -> None:
        self.do("leave", client, by_instance)

    @rule(client=who, topic=st.sampled_from(["t", "u"]))
    def commit(self, client: int, topic: str) -> None:
        self.do("commit", client, topic)

    @rule(retention_ms=st.sampled_from([-1, 0, 2**63 - 1]))
    def commit_from_outside(self, retention_ms: int) -> None:
        self.do("commit_from_outside", retention_ms)

    @rule(client=who, producer_id=st.integers(7, 8), topic=st.sampled_from(["t", "u"]), from_outside=st.booleans())
    def commit_in_transaction(self, client: int, producer_id: int, topic: str, from_outside: bool) -> None:
        self.do("commit_in_transaction", client, producer_id, topic, from_outside)

    @rule(producer_id=st.integers(7, 8), committed=st.booleans())
    def end_transaction(self, producer_id: int, committed: bool) -> None:
        self.do("end_transaction", producer_id, committed)

    @rule(verb=st.sampled_from(["delete_offsets", "delete_group", "look"]))
    def administer(self, verb: str) -> None:
        self.do(verb)

    @rule(ms=st.sampled_from([0, 1, 2_999, 3_000, 10_000, 10_001, 60_000, 300_000, 600_000]))
    def advance(self, ms: int) -> None:
        self.do("advance", ms)

    @rule()
    def hold(self) -> None:
        self.do("hold")

    @precondition(lambda self: self.stage.world.held)
    @rule()
    def confirm(self) -> None:
        self.do("confirm")

    @precondition(lambda self: self.stage.world.held)
    @rule(error=st.sampled_from([ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NETWORK_EXCEPTION]))
    def fail(self, error: ErrorCode) -> None:
        self.do("fail", error)

    def teardown(self) -> None:
        if not hasattr(self, "stage"):
            return
        while self.stage.world.held:
            self.do("confirm")
        again = Stage(self.config)
        for verb, words in self.script:
            getattr(again, verb)(*words)
        assert again.world.effects == self.stage.world.effects
        if not any(verb == "fail" for verb, _ in self.script):
            comes_back_as_it_was(again.world)


def comes_back_as_it_was(world: World) -> None:
    """Read back from its log, compacted or not, a group is what it was, unless it was in the middle of a rebalance."""

    def shown() -> tuple[Any, Any, Any]:
        described = world.describe().answer.groups[0]
        settled = described.group_state in ("Stable", "Empty")
        return (described if settled else None), world.ask_offsets().answer, fetch_stable(world, {"t": [0], "u": [0]})

    before = shown()
    for compacted in (False, True):
        world.reload(compacted=compacted)
        described, *offsets = shown()
        assert offsets == list(before[1:])
        if before[0] is not None:
            assert described == before[0]


@pytest.mark.untraced
@pytest.mark.slow
def test_whatever_happens_in_whatever_order() -> None:
    run_state_machine_as_test(
        AnyOrder,
        settings=settings(
            max_examples=30,
            stateful_step_count=40,
            derandomize=True,
            database=None,
        ),
    )
