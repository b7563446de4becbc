from tests.coordinator.world import World


def test_a_session_lasts_from_when_a_member_was_last_heard_of() -> None:
    world = World()
    (a,) = world.stable("a")
    whole = world.deadline("session", "a-1")
    world.advance(4_000)
    assert world.deadline("session", "a-1") != whole
    a.heartbeat()
    assert world.deadline("session", "a-1") == whole


def test_whoever_was_given_an_id_has_its_session_timeout_to_come_back() -> None:
    world = World()
    world.member("a", session_ms=7_000).join()
    assert world.deadline("session", "a-1") == 7_000
