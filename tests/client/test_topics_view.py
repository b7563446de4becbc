from groupcoord.client.topics_view import TopicsView

RACKS = {"a": (frozenset({"r"}),)}
VIEW = TopicsView(partitions={"b": 2, "a": 1}, racks=RACKS)


def test_only_what_exists_of_what_is_asked_for() -> None:
    assert VIEW.of(["a", "c"]) == TopicsView(partitions={"a": 1}, racks=RACKS)
    assert VIEW.of(["b"]) == TopicsView(partitions={"b": 2})


def test_without_racks_views_of_the_same_partitions_are_the_same() -> None:
    assert VIEW.without_racks() == TopicsView(partitions={"a": 1, "b": 2})
