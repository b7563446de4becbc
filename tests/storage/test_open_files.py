"""Of many logs only some have their files open."""

import resource

import pytest

from groupcoord.storage.file_io import OpenFiles, most_logs


class Log:
    def __init__(self) -> None:
        self.is_open = True

    def close(self) -> None:
        self.is_open = False


def test_the_one_used_longest_ago_is_closed_for_another() -> None:
    files = OpenFiles(most=2)
    one, two, three = Log(), Log(), Log()
    for log in (one, two, one, three):
        files.used(log)
    assert [log.is_open for log in (one, two, three)] == [True, False, True]
    assert len(files) == 2


def test_it_says_how_many_files_are_to_come() -> None:
    files = OpenFiles(most=3)
    assert files.files_to_spare == 9
    log = Log()
    files.used(log)
    files.used(log)
    assert files.files_to_spare == 6
    files.forget(log)
    files.forget(log)
    assert files.files_to_spare == 9
    assert log.is_open


def test_all_are_closed_at_once() -> None:
    files = OpenFiles(most=3)
    logs = [Log(), Log()]
    for log in logs:
        files.used(log)
    files.close()
    assert [log.is_open for log in logs] == [False, False]
    assert len(files) == 0


@pytest.mark.parametrize(("limit", "most"), [(256, 32), (4, 1), (1 << 20, 1_000), (resource.RLIM_INFINITY, 1_000)])
def test_how_many_goes_by_the_limit_of_the_process(monkeypatch: pytest.MonkeyPatch, limit: int, most: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, resource.RLIM_INFINITY))
    assert most_logs() == most
