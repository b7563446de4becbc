from groupcoord.simulation.event_queue import EventQueue


def test_time_then_rank_then_who_was_there_first() -> None:
    event_queue, done = EventQueue(), ""

    def enter(at_ms: int, rank: int, name: str, *, routine: bool = False) -> None:
        def do() -> None:
            nonlocal done
            done += name

        event_queue.schedule(at_ms, rank, do, routine=routine)

    enter(20, 1, "d")
    enter(10, 2, "b")
    enter(10, 2, "c", routine=True)
    enter(10, 1, "a", routine=True)
    enter(30, 1, "e", routine=True)
    while event_queue.next_ms() is not None:
        event_queue.run_next()
    assert done == "abcde"
    assert (event_queue.now_ms, event_queue.steps) == (30, 5)


def test_routine_is_no_event() -> None:
    event_queue = EventQueue()
    assert event_queue.next_event_ms() is None
    assert event_queue.next_ms() is None
    event_queue.schedule(5, 0, lambda: None, routine=True)
    assert event_queue.next_event_ms() is None
    assert event_queue.next_ms() == 5
    event_queue.schedule(9, 0, lambda: None)
    assert event_queue.next_event_ms() == 9
    assert event_queue.next_ms() == 5


def test_what_is_cancelled_is_not_done() -> None:
    event_queue, done = EventQueue(), []
    first = event_queue.schedule(5, 0, lambda: done.append(1))
    event_queue.schedule(6, 0, lambda: done.append(2))
    routine = event_queue.schedule(4, 0, lambda: done.append(3), routine=True)
    event_queue.cancel(first)
    assert event_queue.next_event_ms() == 6
    event_queue.cancel(routine)
    assert event_queue.next_ms() == 6
    event_queue.run_next()
    assert done == [2]
    assert event_queue.next_ms() is None
