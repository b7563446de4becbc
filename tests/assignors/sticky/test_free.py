from groupcoord.assignors.sticky.free import still_free

EVERYTHING = [("a", 0), ("a", 1), ("b", 0), ("b", 1)]


def test_what_nobody_has() -> None:
    assert still_free(EVERYTHING, [("b", 0), ("a", 1)]) == [("a", 0), ("b", 1)]
    assert still_free(EVERYTHING, []) == EVERYTHING


def test_a_claim_to_what_does_not_exist_frees_all_that_follows() -> None:
    """Kafka's walk waits for it and never finds it."""
    assert still_free(EVERYTHING, [("a", 0), ("a", 7), ("b", 0)]) == [("a", 1), ("b", 0), ("b", 1)]
    assert still_free(EVERYTHING, [("b", 1), ("b", 9)]) == [("a", 0), ("a", 1), ("b", 0)]
