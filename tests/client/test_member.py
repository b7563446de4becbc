from groupcoord.client.actions import News
from groupcoord.client.member import NO_GENERATION, Generation, callback_failed, in_order, shortened


def test_no_generation_is_what_kafka_says_for_it() -> None:
    assert Generation(-1, "", None) == NO_GENERATION


def test_callbacks_get_partitions_by_topic_and_number() -> None:
    assert in_order({("b", 0), ("a", 10), ("a", 9)}) == (("a", 9), ("a", 10), ("b", 0))


def test_a_reason_is_cut_where_kafka_cuts_it() -> None:
    assert [len(shortened("x" * length)) for length in (3, 255, 256)] == [3, 255, 255]


def test_what_a_callback_raised_stays_known() -> None:
    problem = ValueError("no")
    failure = callback_failed(News.LOST, problem)
    assert failure.__cause__ is problem
    assert str(failure) == "the callback for lost partitions raised ValueError: no"
