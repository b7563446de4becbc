"""What can be done in a playground, what is refused, and what is told of it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from groupcoord.playground.actions import MOST_MEMBERS
from groupcoord.playground.playground import ACTIONS, START_MS, Playground, named_action

Act = Callable[..., dict[str, Any]]


@pytest.fixture
def playground() -> Iterator[Playground]:
    one = Playground()
    yield one
    one.close()


@pytest.fixture
def act(playground: Playground) -> Act:
    return lambda action, **arguments: playground.act(action, arguments)


def member(act: Act, name: str, **arguments: Any) -> dict[str, Any]:
    return act("add_member", group="app", topics=["orders"], name=name, **arguments)


@pytest.mark.slow
def test_the_same_actions_have_the_same_outcome() -> None:
    def play() -> list[dict[str, Any]]:
        one = Playground()
        told = [
            one.act("add_member", {"group": "app", "topics": ["orders"]}),
            one.act("add_member", {"group": "app", "topics": ["orders"], "protocol": "consumer"}),
            one.act("advance", {"seconds": 10}),
            one.act("kill", {"member": "app-1"}),
            one.act("advance_to_next_deadline", {}),
        ]
        one.close()
        return told

    assert play() == play()


def test_a_member_that_is_killed_is_out_when_its_session_ends(act: Act, playground: Playground) -> None:
    member(act, "a")
    member(act, "b")
    act("advance_until_stable", group="app")
    act("kill", member="b")
    found = act("advance", seconds=49)
    assert found["snapshot"]["members"]["b"]["status"] == "killed"
    assert found["snapshot"]["members"]["a"]["owns"] == [f"orders-{number}" for number in range(6)]
    assert found["snapshot"]["groups"]["app"]["owners"]["orders-3"] == "a"
    assert "session of 45,000 ms ran out" in playground.why({"group": "app", "member": "b", "lost": "orders-3"})
    assert [line for line in playground.lines() if "b is out: nothing was heard of it" in line]


def test_a_member_whose_heartbeats_are_dropped_is_out_until_the_rule_is_removed(act: Act) -> None:
    member(act, "a")
    found = act("add_rule", rule={"when": "Heartbeat", "client_id": "a", "do": "drop", "times": "always"})
    assert found["snapshot"]["rules"] == {
        "rule 1": {"text": "when(Heartbeat, client_id='a').drop().always()", "uses": 0}
    }
    found = act("advance", seconds=46)
    assert any("nothing was heard of it in its session" in each["text"] for each in found["entries"])
    assert act("remove_rule", name="rule 1")["snapshot"]["rules"] == {}
    assert act("advance_until_stable", group="app")["snapshot"]["groups"]["app"]["state"] == "Stable"


def test_a_member_that_polls_no_more_leaves_the_group_and_comes_back_when_it_polls(act: Act) -> None:
    member(act, "a", max_poll_interval_ms=50_000)
    assert act("stop_polling", member="a")["snapshot"]["members"]["a"]["status"] == "not polling"
    assert act("advance", seconds=51)["snapshot"]["groups"]["app"]["members"] == {}
    act("poll", member="a")
    assert len(act("advance", seconds=1)["snapshot"]["groups"]["app"]["members"]) == 1


def test_a_member_that_was_paused_goes_on(act: Act) -> None:
    member(act, "a")
    assert act("pause", member="a")["snapshot"]["members"]["a"]["status"] == "paused"
    assert act("resume", member="a")["snapshot"]["members"]["a"]["status"] == "running"
    with pytest.raises(ValueError, match="it is running, and only one that is paused goes on"):
        act("resume", member="a")


def test_a_member_commits_what_there_is_in_its_partitions(act: Act) -> None:
    member(act, "a")
    act("produce", topic="orders", partition=2, count=3)
    found = act("commit", member="a")
    assert found["answer"] == {f"orders-{number}": "NONE" for number in range(6)}
    assert found["snapshot"]["groups"]["app"]["offsets"]["orders-2"] == 3
    assert [each["value"] for each in found["snapshot"]["topics"]["orders"]["partitions"][2]["records"]] == [
        "record 0",
        "record 1",
        "record 2",
    ]


def test_a_commit_that_is_not_answered_has_no_answer(act: Act) -> None:
    member(act, "a")
    act("add_rule", rule={"when": "OffsetCommit", "do": "drop", "times": 1}, name="lost")
    assert act("commit", member="a", offsets={"orders-0": 1})["answer"] is None


def test_topics_come_grow_and_go(act: Act) -> None:
    act("create_topic", topic="invoices", partitions=1)
    act("add_partitions", topic="invoices", more=2)
    member(act, "a")
    found = act("subscribe", member="a", topics=["invoices"])
    assert len(found["snapshot"]["topics"]["invoices"]["partitions"]) == 3
    act("delete_topic", topic="orders")
    found = act("advance_until_stable", group="app")
    assert list(found["snapshot"]["topics"]) == ["invoices"]
    assert found["snapshot"]["members"]["a"]["owns"] == ["invoices-0", "invoices-1", "invoices-2"]
    act("subscribe", member="a", topics=["orders"])
    act("delete_topic", topic="invoices")
    assert act("commit", member="a")["answer"] in (None, {})


def test_a_leader_of_a_partition_moves(act: Act) -> None:
    before = act("advance", seconds=0)["snapshot"]["topics"]["orders"]["partitions"][0]["leader"]
    found = act("move_leader", topic="orders", partition=0, to=before % 3 + 1)
    assert found["snapshot"]["topics"]["orders"]["partitions"][0]["leader"] == before % 3 + 1


def test_brokers_end_and_come_back(act: Act) -> None:
    assert act("kill_broker", broker=1)["snapshot"]["brokers"] == {"1": "stopped", "2": "running", "3": "running"}
    assert act("stop_broker", broker=2)["snapshot"]["brokers"]["2"] == "stopped"
    act("advance", seconds=10)
    act("start_broker", broker=1)
    assert act("start_broker", broker=2)["snapshot"]["brokers"] == {"1": "running", "2": "running", "3": "running"}
    with pytest.raises(ValueError, match="there is no broker 9: the ids are 1, 2, 3"):
        act("kill_broker", broker=9)


def test_members_of_a_group_without_a_coordinator_are_told_of_it(act: Act) -> None:
    member(act, "a")
    found = act("unload_coordinator", group="app")
    assert found["snapshot"]["groups"]["app"]["state"] == "NOT_COORDINATOR"
    assert act("load_coordinator", group="app")["snapshot"]["groups"]["app"]["state"] == "Stable"


def test_a_transaction_that_its_producer_aborts_leaves_nothing_that_counts(act: Act) -> None:
    assert act("add_producer", transactional_id="billing", name="w")["answer"] == "NONE"
    assert act("produce_in_transaction", producer="w", topic="orders")["answer"] == "NONE"
    member(act, "a")
    done = act("commit_in_transaction", producer="w", group="app", offsets={"orders-0": 1}, member="a")
    assert done["answer"] == {"orders-0": "NONE"}
    found = act("end_transaction", producer="w", commit=False)
    assert found["snapshot"]["topics"]["orders"]["partitions"][0]["records"][0]["state"] == "aborted"
    assert found["snapshot"]["groups"]["app"]["offsets"] == {}
    assert found["snapshot"]["transactions"]["billing"]["state"] == "CompleteAbort"


def test_a_transaction_of_a_producer_that_is_killed_is_aborted_after_its_timeout(act: Act) -> None:
    act("add_producer", transactional_id="billing", name="w", timeout_ms=5_000)
    act("produce_in_transaction", producer="w", topic="orders")
    act("kill_producer", producer="w")
    with pytest.raises(ValueError, match="producer='w': it was killed"):
        act("end_transaction", producer="w")
    assert act("advance", seconds=20)["snapshot"]["transactions"]["billing"]["state"] == "CompleteAbort"


def test_a_producer_that_is_told_to_come_again_each_time_gives_up(act: Act) -> None:
    act(
        "add_rule",
        rule={"when": "InitProducerId", "do": "refuse", "code": "CONCURRENT_TRANSACTIONS", "times": "always"},
    )
    assert act("add_producer", transactional_id="billing")["answer"] == "CONCURRENT_TRANSACTIONS"


def test_a_request_of_a_producer_that_is_lost_has_no_answer(act: Act) -> None:
    act("add_rule", rule={"when": "InitProducerId", "do": "drop"})
    assert act("add_producer", transactional_id="billing")["answer"] is None


def test_compaction_leaves_the_last_record_of_each_key(act: Act) -> None:
    member(act, "a")
    act("commit", member="a", offsets={"orders-0": 1})
    found = act("commit", member="a", offsets={"orders-0": 2})
    commits = [each["kept"] for each in found["snapshot"]["offsets_log"] if each["kind"] == "OffsetCommit"]
    assert commits == [False, True]
    found = act("compact_offsets")
    assert [each["kind"] for each in found["snapshot"]["offsets_log"]] == ["GroupMetadata", "OffsetCommit"]
    act("leave", member="a")
    act("compact_offsets")
    assert all(each["kept"] for each in act("compact_offsets")["snapshot"]["offsets_log"])


def test_a_log_that_was_deleted_cannot_be_compacted(act: Act) -> None:
    act("delete_topic", topic="__consumer_offsets")
    with pytest.raises(ValueError, match="there is no __consumer_offsets: it was deleted"):
        act("compact_offsets")


def test_a_request_has_its_bytes_field_by_field(act: Act, playground: Playground) -> None:
    entries = member(act, "a")["entries"]
    events = {each["event"]: each["seq"] for each in entries}
    dissection = playground.dissection(events["trace.RequestReceived"])
    assert dissection is not None
    assert any(field["path"] == "group_id" for field in dissection["fields"])
    assert playground.dissection(events["coordinator.GenerationStarted"]) is None


@pytest.mark.parametrize(
    ("action", "arguments", "problem"),
    [
        ("dance", {}, "action='dance': there is no such action; there is create_topic, "),
        ("kill", {}, 'member is missing: a text, such as "orders"'),
        ("kill", {"member": "z"}, "member='z': no member is called so; there is a"),
        ("kill", {"member": "a", "how": 9}, "how=9: there is no such argument; there is member"),
        ("compact_offsets", {"how": 9}, "how=9: there is no such argument; there is none"),
        ("end_transaction", {"producer": "w"}, "producer='w': no producer is called so; there is none yet"),
        ("add_member", {"group": "app", "topics": "orders"}, "topics='orders': a list of texts, such as [\"orders\"]"),
        ("add_member", {"group": "app", "topics": [1]}, "topics=[1]: a list of texts"),
        ("add_member", {"group": "app", "topics": [], "protocol": "raft"}, "protocol='raft': one of classic, consumer"),
        (
            "add_member",
            {"group": "app", "topics": [], "assignors": ["x"]},
            "assignors=['x']: a list of range, roundrobin, sticky, cooperative-sticky, or null",
        ),
        ("add_member", {"group": "app", "topics": ["orders"], "name": "a"}, "name='a': a client id that no other has"),
        ("add_producer", {"transactional_id": "t", "name": "a"}, "name='a': a client id that no other has"),
        (
            "add_member",
            {"group": "app", "topics": ["orders"], "remote_assignor": "range"},
            "regex and remote_assignor are of consumer groups",
        ),
        ("advance", {"seconds": True}, "seconds=True: a number, such as 46 or 0.5"),
        ("advance", {"seconds": -1}, "seconds=-1: 0 to 2,592,000 seconds"),
        ("produce", {"topic": "orders", "count": 0}, "count=0: 1 to 1,000 records"),
        ("produce", {"topic": "nowhere"}, "nowhere"),
        ("commit", {"member": "a", "offsets": {"orders": 1}}, 'offsets by partition, such as {"orders-0": 5}'),
        ("commit", {"member": "a", "offsets": {"orders-0": -1}}, "an offset is 0 or more"),
        ("add_rule", {"rule": {"when": "Heartbeat", "do": "hold"}}, "do='hold': needs a program that releases"),
        ("add_rule", {"rule": {"when": "Heartbeat"}}, "do"),
        ("remove_rule", {"name": "none"}, "name='none': no rule is called so; there is none yet"),
        ("move_leader", {"topic": "orders", "partition": 0, "to": 9}, "there is no broker 9: the ids are 1, 2, 3"),
    ],
)
def test_what_cannot_be_is_refused_with_what_would_be_right(
    act: Act, playground: Playground, action: str, arguments: dict[str, Any], problem: str
) -> None:
    member(act, "a")
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the text is compared
        playground.act(action, arguments)
    assert problem in str(refused.value)


def test_a_group_that_does_not_become_stable_is_described(act: Act) -> None:
    found = act("advance_until_stable", group="elsewhere")
    assert found["answer"] == "not stable within ten minutes: elsewhere Dead gen=0, 0 members"
    assert found["snapshot"]["now_ms"] == START_MS + 600_000


def test_what_the_trace_has_of_a_refusal_comes_with_the_next_action(act: Act) -> None:
    with pytest.raises(ValueError, match="orders: INVALID_PARTITIONS"):
        act("add_partitions", topic="orders", more=-1)
    assert any("CreatePartitions" in each["text"] for each in act("advance", seconds=0)["entries"])


def test_two_rules_have_two_names(act: Act) -> None:
    rule = {"when": "Heartbeat", "do": "drop"}
    act("add_rule", rule=rule, name="mine")
    with pytest.raises(ValueError, match="name='mine': there is a rule of that name already"):
        act("add_rule", rule=rule, name="mine")


def test_nothing_is_due_where_nobody_is(act: Act) -> None:
    with pytest.raises(ValueError, match="nothing will ever happen in any group by itself"):
        act("advance_to_next_deadline")


def test_who_is_gone_does_nothing_any_more(act: Act) -> None:
    member(act, "a")
    act("leave", member="a")
    with pytest.raises(ValueError, match="member='a': it was closed, and does nothing any more"):
        act("commit", member="a")


@pytest.mark.slow
def test_a_playground_has_so_many_members_at_most(act: Act) -> None:
    for number in range(MOST_MEMBERS):
        act("add_member", group=f"g{number}", topics=["orders"])
    with pytest.raises(ValueError, match=f"there are {MOST_MEMBERS} members already"):
        member(act, "one more")


@pytest.mark.parametrize(
    ("question", "problem"),
    [
        ({"group": "app"}, "app"),
        ({"what": 1}, "unexpected keyword argument 'what'"),
        ({"group": "app", "lost": "orders"}, 'lost=("orders", 3) is a topic and the number of a partition'),
        ({}, "explains a group"),
    ],
)
def test_what_the_trace_cannot_say_is_refused(playground: Playground, question: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the text is compared
        playground.why(question)
    assert problem in str(refused.value)


def test_an_action_as_data_has_its_name_as_do() -> None:
    assert named_action({"do": "advance", "seconds": 3}) == ("advance", {"seconds": 3})
    assert {"add_member", "advance"} <= ACTIONS.keys()
    with pytest.raises(ValueError, match="is not an action: do says which"):
        named_action({"seconds": 3})


def test_a_setup_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="brokers=0"):
        Playground(brokers=0)
