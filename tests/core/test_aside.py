from groupcoord.core.aside import Work, finished


def counting(seen: list[int]) -> Work[str]:
    for number in range(3):
        seen.append(number)
        yield
    return "done"


def test_work_is_finished_piece_by_piece() -> None:
    seen: list[int] = []
    assert finished(counting(seen)) == "done"
    assert seen == [0, 1, 2]
