"""``spark-submit`` takes the package's program, and a cluster of several processes makes the tables that one process makes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

import groupcoord
from groupcoord.page import embedding
from tests.pipeline.test_killed_executor import SOURCE, rows
from tests.pipeline.test_other_file_systems import run

SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
MAIN = Path(groupcoord.__file__).parent / "__main__.py"


@pytest.mark.skipif(shutil.which("java") is None, reason="spark-submit needs a Java of the system")
@pytest.mark.skipif(
    not (embedding.STATIC / "report.html").exists(), reason="a run needs the report that `make page` builds"
)
def test_a_run_that_is_submitted_makes_the_tables_of_any_run(spark: SparkSession, tmp_path: Path) -> None:
    run(spark, SOURCE, str(tmp_path / "here"))
    unset = {"JAVA_HOME", "PYTHONPATH", "SPARK_HOME"}
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in unset and not name.startswith(("PYSPARK_", "_PYSPARK"))
    }
    environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [str(SUBMIT), "--master", "local-cluster[2,1,1024]"]
    command += ["--conf", "spark.sql.shuffle.partitions=2", str(MAIN), "pipeline", "run", "--source", SOURCE]
    ended = subprocess.run(
        [*command, "--out", str(tmp_path / "submitted")], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert rows(tmp_path / "submitted") == rows(tmp_path / "here")
