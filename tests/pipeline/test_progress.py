"""Nothing that takes long is silent."""

import threading

from groupcoord.pipeline.progress import RunningTasks, RunProgress


def test_a_step_that_takes_long_says_how_many_tasks_are_done() -> None:
    lines: list[str] = []
    told = threading.Event()

    def say(line: str) -> None:
        lines.append(line)
        told.set()

    progress = RunProgress(say, lambda: 7.0, tasks=lambda: RunningTasks(3, 16), every_s=0.001)
    with progress.step("read and decode") as rows:
        assert told.wait(60)
        rows(1200)
    assert lines[0] == "read and decode … 0 s, 3 of 16 tasks done"
    assert lines[-1].split() == ["read", "and", "decode", "1,200", "rows", "0.0", "s"]


def test_a_short_step_says_only_that_it_is_done() -> None:
    lines: list[str] = []
    with RunProgress(lines.append, lambda: 7.0, tasks=lambda: RunningTasks(0, 0)).step("report"):
        pass
    assert [line.split() for line in lines] == [["report", "0.0", "s"]]
