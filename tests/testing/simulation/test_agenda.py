from groupcoord.testing.simulation.agenda import Agenda


def test_time_then_rank_then_who_was_there_first() -> None:
    agenda, done = Agenda(), ""

    def enter(at_ms: int, rank: int, name: str, *, routine: bool = False) -> None:
        def do() -> None:
            nonlocal done
            done += name

        agenda.at(at_ms, rank, do, routine=routine)

    enter(20, 1, "d")
    enter(10, 2, "b")
    enter(10, 2, "c", routine=True)
    enter(10, 1, "a", routine=True)
    enter(30, 1, "e", routine=True)
    while agenda.next_ms() is not None:
        agenda.do_next()
    assert done == "abcde"
    assert (agenda.now_ms, agenda.steps) == (30, 5)


def test_routine_is_no_event() -> None:
    agenda = Agenda()
    assert agenda.next_event() is None
    assert agenda.next_ms() is None
    agenda.at(5, 0, lambda: None, routine=True)
    assert agenda.next_event() is None
    assert agenda.next_ms() == 5
    agenda.at(9, 0, lambda: None)
    assert agenda.next_event() == 9
    assert agenda.next_ms() == 5


def test_what_is_cancelled_is_not_done() -> None:
    agenda, done = Agenda(), []
    first = agenda.at(5, 0, lambda: done.append(1))
    agenda.at(6, 0, lambda: done.append(2))
    routine = agenda.at(4, 0, lambda: done.append(3), routine=True)
    agenda.cancel(first)
    assert agenda.next_event() == 6
    agenda.cancel(routine)
    assert agenda.next_ms() == 6
    agenda.do_next()
    assert done == [2]
    assert agenda.next_ms() is None
