import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import EmitEvent
from groupcoord.core.events import Event, TimerFired
from groupcoord.core.timers import TimerKey, Timers

KEY = TimerKey("session", "g", "a")
OTHER = TimerKey("session", "g", "b")


def nothing(ctx: HandlerContext) -> None:
    """What most timers of these tests do."""


def test_nothing_is_due_where_nothing_is_set() -> None:
    timers = Timers()
    assert timers.next_deadline() is None
    assert timers.pop_due(1_000_000) is None
    assert timers.fire_due(1_000_000) == []


def test_a_timer_is_due_at_its_moment_and_not_before() -> None:
    timers = Timers()
    timers.schedule(KEY, 100, nothing)
    assert timers.pop_due(99) is None
    due = timers.pop_due(100)
    assert due is not None
    assert (due.key, due.at_ms) == (KEY, 100)
    assert KEY not in timers


def test_an_equal_key_replaces_the_timer() -> None:
    timers = Timers()
    timers.schedule(KEY, 100, nothing)
    timers.schedule(KEY, 50, nothing)
    assert (len(timers), timers.next_deadline()) == (1, 50)
    timers.schedule(KEY, 200, nothing)
    assert (len(timers), timers.next_deadline()) == (1, 200)


def test_a_timer_can_be_put_off_but_not_brought_forward() -> None:
    timers = Timers()
    assert not timers.postpone(KEY, 100)
    timers.schedule(KEY, 100, nothing)
    timers.schedule(OTHER, 100, nothing)
    assert not timers.postpone(KEY, 99)
    assert timers.postpone(KEY, 100)  # as if it was set anew, so it is now behind the other
    first, second = timers.pop_due(100), timers.pop_due(100)
    assert first is not None
    assert second is not None
    assert [first.key, second.key] == [OTHER, KEY]


def test_it_is_quiet_at_least_until_a_moment_that_may_be_early() -> None:
    timers = Timers()
    assert timers.deadline_lower_bound() is None
    timers.schedule(KEY, 100, nothing)
    timers.postpone(KEY, 300)
    assert timers.deadline_lower_bound() == 100
    assert timers.next_deadline() == 300
    assert timers.deadline_lower_bound() == 300


def test_a_cancelled_timer_never_fires() -> None:
    timers = Timers()
    timers.schedule(KEY, 100, nothing)
    assert timers.cancel(KEY)
    assert not timers.cancel(KEY)
    assert timers.fire_due(1_000) == []
    assert timers.next_deadline() is None


def test_timers_of_one_moment_fire_in_the_order_they_were_set() -> None:
    timers = Timers()
    timers.schedule(KEY, 100, nothing)
    timers.schedule(OTHER, 100, nothing)
    timers.schedule(KEY, 100, nothing)  # set anew, so it is now behind the other
    first, second = timers.pop_due(100), timers.pop_due(100)
    assert first is not None
    assert second is not None
    assert [first.key, second.key] == [OTHER, KEY]


def test_what_falls_due_while_firing_fires_too() -> None:
    fired = []
    timers = Timers()

    def again(ctx: HandlerContext) -> None:
        fired.append(ctx.now_ms)
        if len(fired) < 3:
            timers.schedule(KEY, ctx.now_ms, again)

    timers.schedule(KEY, 5, again)
    timers.fire_due(7)
    assert fired == [7, 7, 7]


def test_what_a_timer_does_has_the_timer_as_its_cause() -> None:
    timers = Timers()
    timers.schedule(KEY, 5, lambda ctx: ctx.emit(Event))
    (effect,) = timers.fire_due(7)
    assert effect == EmitEvent.of(Event(at_ms=7, cause=TimerFired("session", "g", "a", 5)))


def test_pending_timers_are_listed_earliest_first() -> None:
    timers = Timers()
    timers.schedule(KEY, 9, nothing)
    timers.schedule(OTHER, 3, nothing)
    assert [deadline.key for deadline in timers.pending()] == [OTHER, KEY]


def test_a_timer_that_is_set_and_cancelled_without_end_takes_no_memory() -> None:
    timers = Timers()
    for now in range(10_000):
        timers.schedule(KEY, now + 1_000, nothing)
        timers.cancel(KEY)
        timers.schedule(OTHER, now + 1_000, nothing)
        timers.fire_due(now)
    assert len(timers._heap) <= 4


def test_cancelled_timers_that_were_due_in_weeks_take_no_memory() -> None:
    timers = Timers()
    timers.schedule(KEY, 1 << 31, nothing)
    for number in range(10_000):
        key = TimerKey("fetch", f"connection {number}")
        timers.schedule(key, 1 << 31, nothing)
        timers.schedule(key, (1 << 31) - 1, nothing)
        timers.cancel(key)
    assert len(timers._heap) <= 1_005
    assert len(timers._places) <= 1_005
    assert [deadline.key for deadline in timers.pending()] == [KEY]
    assert timers.pop_due(1 << 31) is not None
    assert timers.next_deadline() is None


@pytest.mark.slow
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("schedule"), st.integers(0, 4), st.integers(0, 12)),
            st.tuples(st.just("postpone"), st.integers(0, 4), st.integers(0, 12)),
            st.tuples(st.just("cancel"), st.integers(0, 4), st.just(0)),
            st.tuples(st.just("pass"), st.just(0), st.integers(0, 6)),
        ),
        max_size=60,
    )
)
def test_timers_do_what_a_plain_list_would_do(script: list[tuple[str, int, int]]) -> None:
    timers = Timers()
    model: dict[TimerKey, tuple[int, int]] = {}
    now = 0
    for sequence, (verb, who, ms) in enumerate(script):
        key = TimerKey("session", "g", str(who))
        if verb == "schedule":
            timers.schedule(key, now + ms, nothing)
            model[key] = (now + ms, sequence)
        elif verb == "postpone":
            possible = key in model and model[key][0] <= now + ms
            assert timers.postpone(key, now + ms) == possible
            if possible:
                model[key] = (now + ms, sequence)
        elif verb == "cancel":
            assert timers.cancel(key) == (model.pop(key, None) is not None)
        else:
            now += ms
            fired = []
            while (due := timers.pop_due(now)) is not None:
                fired.append(due.key)
            expected = sorted((key for key, (at, _) in model.items() if at <= now), key=model.__getitem__)
            assert fired == expected
            for key in expected:
                del model[key]
        earliest = min((at for at, _ in model.values()), default=None)
        quiet = timers.deadline_lower_bound()
        assert earliest is None or (quiet is not None and quiet <= earliest)
        assert timers.next_deadline() == earliest
        assert len(timers) == len(model)


def test_a_timer_can_be_fired_before_its_time() -> None:
    timers = Timers()
    fired: list[tuple[int, str]] = []
    key = TimerKey("fetch", "c", "1")
    timers.schedule(key, 500, lambda ctx: fired.append((ctx.now_ms, str(ctx.origin))))
    timers.fire_early(key, 100)
    assert fired == [(100, "fetch timer of 1")]
    assert timers.fire_early(key, 200) == []
    assert timers.next_deadline() is None
    assert len(fired) == 1
