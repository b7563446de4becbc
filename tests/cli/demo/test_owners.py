from groupcoord.cli.demo.owners import OwnersHistory
from tests.cli.demo.support import shown


def history() -> OwnersHistory:
    made = OwnersHistory("orders", 3)
    made.add(1, "sticky", {0: "kafka-python", 1: "kafka-python", 2: "kafka-python"})
    made.add(2, "range", {0: "confluent", 1: "kafka-python", 2: "kafka-python"})
    return made


def test_what_has_another_owner_than_before_has_moved() -> None:
    first, second = history().generations
    assert (first.moved, second.moved) == (frozenset(), frozenset({0}))


def test_what_had_no_owner_before_has_not_moved() -> None:
    made = OwnersHistory("orders", 2)
    made.add(1, "range", {0: "confluent"})
    assert made.add(2, "range", {0: "confluent", 1: "confluent"}).moved == frozenset()


def test_generations_go_down_and_partitions_across() -> None:
    assert shown(history().table(100)) == [
        "gen   orders-0       orders-1       orders-2",
        "────────────────────────────────────────────────",
        "  1   kafka-python   kafka-python   kafka-python",
        "  2  →confluent      kafka-python   kafka-python",
    ]


def test_a_partition_without_an_owner_is_nobodys() -> None:
    made = OwnersHistory("orders", 2)
    made.add(4, "range", {1: "aiokafka"})
    assert shown(made.table(100))[-1] == "  4   nobody         aiokafka"


def test_a_narrow_screen_gets_a_narrow_table() -> None:
    assert shown(history().table(50)) == [
        "gen   partitions of orders",
        "───────────────────────────────────────",
        "  1   kafka-python: 0 1 2",
        "  2   confluent: →0   kafka-python: 1 2",
    ]
