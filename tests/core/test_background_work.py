from groupcoord.core.background_work import BackgroundWork, run_to_end


def counting(seen: list[int]) -> BackgroundWork[str]:
    for number in range(3):
        seen.append(number)
        yield
    return "done"


def test_work_is_finished_piece_by_piece() -> None:
    seen: list[int] = []
    assert run_to_end(counting(seen)) == "done"
    assert seen == [0, 1, 2]
