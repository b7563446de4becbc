from groupcoord.client.actions import Coordinator, News


def test_a_coordinator_in_words() -> None:
    assert str(Coordinator(1, "h", 2)) == "broker 1 at h:2"


def test_the_three_kinds_of_news() -> None:
    assert [news.value for news in News] == ["assigned", "revoked", "lost"]
