from groupcoord.simulation.event_queue import EventQueue
from groupcoord.simulation.prng import Prng, draw


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


def test_what_is_drawn_depends_on_the_key_and_on_what_it_is_for() -> None:
    assert draw(1, 2, 3) == draw(1, 2, 3)
    assert len({draw(1, 2, 3), draw(1, 3, 2), draw(2, 2, 3), draw(1, 2), draw(1, 2, 4)}) == 5
    assert 0 <= draw(7, 1) < 1 << 64


def test_a_stream_is_its_key() -> None:
    assert [Prng(5).next_int(100) for _ in range(2)] == [Prng(5).next_int(100)] * 2
    stream = Prng(5)
    assert len({stream.next_int(1 << 60) for _ in range(50)}) == 50


def test_what_a_node_wants() -> None:
    stream = Prng(9)
    assert all(0 <= stream.fraction() < 1 for _ in range(100))
    assert all(0 < stream.session_id() < 1 << 31 for _ in range(100))
    drawn_ids = [stream.uuid() for _ in range(500)]
    assert len(set(drawn_ids)) == 500
    assert not any(made.bytes[0] >> 2 == 0b111110 for made in drawn_ids)  # Kafka's text of it would start with a dash
