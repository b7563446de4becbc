"""A run over Spark Connect: a server in another process has Spark, and this process has neither Java nor a SparkContext."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from groupcoord import Cluster
from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.local_files import LocalFiles
from groupcoord.pipeline.run_output import RunOutput
from groupcoord.pipeline.spark_session import session
from tests.clients.support import eventually
from tests.pipeline.conftest import JAVA_OPTIONS
from tests.pipeline.whole_run import RECORDED, in_any_order, tables_in
from tests.real_kafka.lone_node import free_port

pytestmark = [pytest.mark.slow, pytest.mark.spark]
HOME = Path(pyspark.__file__).parent
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
START_S = 60


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server."""
    if find_spec("grpc") is None:
        pytest.skip("gRPC is not installed: pip install 'groupcoord[connect]'")
    port, folder = free_port(), tmp_path_factory.mktemp("server")
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.ui.enabled": "false",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    conf = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = [str(HOME / "bin" / "spark-submit"), "--class", SERVER, "--master", "local[1]", *conf, "spark-internal"]
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": str(HOME),
    }
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)

    def listens() -> bool:
        assert server.poll() is None, (folder / "log").read_text()
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    try:
        eventually(listens, START_S, saying="the server of Spark Connect listens")
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def run(remote: str, source: str, out: str | Path) -> "subprocess.CompletedProcess[str]":
    """In a process of its own: PySpark decides once for a process what its functions speak to."""
    words = ("pipeline", "run", "--source", source, "--out", str(out), "--master", remote)
    return subprocess.run([sys.executable, "-m", "groupcoord", *words], capture_output=True, text=True, check=False)


def test_the_tables_are_those_of_a_run_without_it(remote: str, tmp_path: Path, recorded_out: Path) -> None:
    done = run(remote, f"segments:{RECORDED}", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert in_any_order(tmp_path / "out") == in_any_order(recorded_out)
    assert sorted(path.name for path in (tmp_path / "out").iterdir() if path.suffix) == [
        "report.html",
        "report.json",
        "run.json",
    ]
    config = {"offsets.topic.num.partitions": 1}
    with Cluster(topics={"orders": 1}, config=config).sync() as kafka:
        kafka.produce("orders", b"1", b"2", b"3")
        kafka.group("late").commit({("orders", 0): 2})
        done = run(remote, f"kafka:{kafka.address}", tmp_path / "out")  # in place of the first
    assert done.returncode == 0, done.stderr
    assert [(row["end_offset"], row["lag"]) for row in tables_in(tmp_path / "out")["lag"]] == [(3, 1)]


def test_the_connector_needs_java_here(remote: str, tmp_path: Path) -> None:
    done = run(remote, "connector:127.0.0.1:1", tmp_path / "out")
    assert done.returncode == 1
    said = "groupcoord pipeline: connector:127.0.0.1:1 needs a Spark without Connect; kafka:127.0.0.1:1 does not"
    assert done.stderr.strip().endswith(said)


def test_an_output_that_the_server_cannot_see_is_refused(remote: str) -> None:
    done = run(remote, f"segments:{RECORDED}", "s3a://bucket/groups")
    assert done.returncode == 1
    assert done.stderr == (
        "groupcoord pipeline: over Spark Connect --out is a directory that this process and the server share, and not "
        "s3a://bucket/groups\n"
    )


def test_an_output_that_only_this_process_sees_is_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("groupcoord.pipeline.run_output.is_connect", lambda _: True)
    with RunOutput(spark, str(tmp_path / "shared")):
        assert list((tmp_path / "shared").iterdir())
    assert [path.name for path in (tmp_path / "shared").iterdir()] == [".lock"]
    monkeypatch.setattr(LocalFiles, "write_text", lambda *_: None)  # as if it was written elsewhere
    with (
        pytest.raises(
            PipelineError, match=f"^the server of Spark Connect does not see {tmp_path}/mine: --out is a dir"
        ),
        RunOutput(spark, str(tmp_path / "mine")),
    ):
        pass
    (tmp_path / "file").touch()
    with (
        pytest.raises(PipelineError, match=f"^cannot write to {tmp_path}/file: Not a directory$"),
        RunOutput(spark, str(tmp_path / "file")),
    ):
        pass


@pytest.mark.parametrize("address", ["sc://127.0.0.1:1", "sc://127.0.0.1:port", "sc://no-such-host.invalid"])
def test_an_address_without_a_server_is_told_at_once(address: str) -> None:
    with (
        pytest.raises(PipelineError, match=f"^no server of Spark Connect answers at {address}: "),
        session(address, {}),
    ):
        pass
