"""One Spark session for all tests of this folder; where PySpark is missing they are skipped, and say so."""

import gc
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from groupcoord.page import html_embedding
from tests.page.conftest import unpack

__all__ = ["unpack"]  # what is in a page

MISSING = [name for name in ("pyspark", "pyarrow", "pandas") if find_spec(name) is None]
HERE = Path(__file__).parent
CONNECTOR = sorted((HERE.parents[1] / "docker" / "kafka" / "libs-spark-connector").glob("*.jar"))
"""The jars of Spark's Kafka connector: `make kafka-libs`."""
JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"  # hundreds of tests compile more than the usual 48 MB hold
    " -XX:+UseSerialGC -Xms1g -Xmn600m -XX:MetaspaceSize=256m"  # what grows bit by bit is collected as a whole each time
)
# Modules that cannot even be imported without the extra.
PLAIN = {"test_schemas.py", "test_missing.py", "test_parallel_steps.py", "test_report_demo.py"}
PLAIN |= {"test_what_if_choice.py", "test_what_if_replay.py", "test_terminal_summary.py"}
collect_ignore_glob = ["tables/*", "sources/*", "watch/*"] if MISSING else []
if MISSING:
    collect_ignore_glob += [path.name for path in HERE.glob("test_*.py") if path.name not in PLAIN]


@pytest.fixture(autouse=True, scope="module")
def built_report(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A built page that is none: what is put into it can be looked at, without Node."""
    with _built_report(tmp_path_factory.mktemp("static")):
        yield


@contextmanager
def _built_report(folder: Path) -> Iterator[None]:
    (folder / "report.html").write_text("<head><!-- data --></head><body></body>", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(html_embedding, "STATIC", folder)
        yield


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session that starts fast and compiles nothing."""
    from groupcoord.pipeline.spark_session import FOR_SMALL, session  # noqa: PLC0415

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    folder = tmp_path_factory.mktemp("spark")
    conf = {
        **FOR_SMALL,
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        **dict.fromkeys(("spark.ui.retainedJobs", "spark.ui.retainedStages", "spark.sql.ui.retainedExecutions"), "10"),
        "spark.ui.retainedTasks": "100",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
        "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
        "spark.hadoop.fs.s3a.secret.key": "kept",
    }
    if CONNECTOR:
        conf["spark.jars"] = ",".join(map(str, CONNECTOR))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with session("local[2]", conf) as found:
            yield found
        gc.collect()  # what PySpark leaves unclosed is closed here, and fails no test


@pytest.fixture(scope="session")
def recorded_out(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a run has made of RECORDED. Many tests look at it, and none changes it."""
    from tests.pipeline.whole_run import RECORDED, run  # noqa: PLC0415

    out = tmp_path_factory.mktemp("recorded") / "out"
    with _built_report(tmp_path_factory.mktemp("static")):  # a session begins before any module
        run(spark, f"segments:{RECORDED}", out)
    return out


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Who asks for the session needs Spark. What PySpark itself is warned of is not a fault here."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) or item.get_closest_marker("spark"):
            item.add_marker("spark")
            item.add_marker(pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"))
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))
