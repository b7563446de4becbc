"""Progress lines of a run or watch: one for each finished step, and for a long step how many of Spark's tasks are done."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

from pyspark.sql import SparkSession

from groupcoord.pipeline.spark_session import is_connect

SAY_EVERY_S = 10.0


class RunningTasks(NamedTuple):
    """The tasks of Spark's active stages: how many are done, and how many there are."""

    done: int
    total: int


def running_tasks(spark: SparkSession) -> RunningTasks:
    """The tasks of Spark's active stages; may be called from any thread. Spark Connect does not tell them."""
    if is_connect(spark):
        return RunningTasks(0, 0)
    tracker = spark.sparkContext.statusTracker()
    stages = [info for number in tracker.getActiveStageIds() if (info := tracker.getStageInfo(number)) is not None]
    return RunningTasks(sum(one.numCompletedTasks for one in stages), sum(one.numTasks for one in stages))


@contextlib.contextmanager
def report_while_running(
    name: str, say: Callable[[str], None], tasks: Callable[[], RunningTasks] | None, every_s: float = SAY_EVERY_S
) -> Iterator[None]:
    """While the block runs, ``say`` every ``every_s`` seconds how long it has taken, and how many ``tasks`` are done.

    If ``tasks`` is None, nothing is said.
    """
    if tasks is None:
        yield
        return
    over = threading.Event()
    began = time.monotonic()

    def tell() -> None:
        while not over.wait(every_s):
            done, total = tasks()
            where = f", {done:,} of {total:,} tasks done" if total else ""
            if not over.is_set():
                say(f"{name} … {time.monotonic() - began:.0f} s{where}")

    teller = threading.Thread(target=tell, name="progress", daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


@dataclass
class RunProgress:
    """Reports each step when it is done, with its rows and its time; with ``tasks`` a long step also while it runs.

    ``say`` is called with each line; ``clock`` returns seconds.
    """

    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    _: KW_ONLY
    tasks: Callable[[], RunningTasks] | None = None
    every_s: float = SAY_EVERY_S

    def __post_init__(self) -> None:
        self._began = self.clock()
        self.rows: dict[str, int] = {}
        """The rows of each step that reported them."""

    @property
    def seconds(self) -> float:
        """The time since this object was created."""
        return self.clock() - self._began

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[Callable[[int], None]]:
        """A context manager for one step; it yields a function to be called with the number of its rows."""
        began = self.clock()
        counted: list[int] = []
        with report_while_running(name, self.say, self.tasks, self.every_s):
            yield counted.append
        rows = f"{counted[0]:,} rows" if counted else ""
        if counted:
            self.rows[name] = counted[0]
        self.say(f"{name:<24}{rows:>20}  {self.clock() - began:7.1f} s")
