"""What the pipeline knows of Spark's masters, and how it configures Hadoop."""

from typing import Any

import pytest

from groupcoord.pipeline.spark_session import is_one_machine, is_one_process


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2]", "local[2,3]"])
def test_in_one_process(master: str) -> None:
    assert is_one_process(master)


@pytest.mark.parametrize("master", ["local-cluster[2,1,1024]", "yarn", "spark://here:7077", "k8s://here", None])
def test_on_a_cluster(master: str | None) -> None:
    assert not is_one_process(master)


def test_a_local_cluster_is_on_one_machine() -> None:
    assert is_one_machine("local-cluster[2,1,1024]")
    assert is_one_machine("local[2]")
    assert not any(is_one_machine(master) for master in ("yarn", "spark://here:7077", "k8s://here", None))


def test_hadoop_is_configured_without_defaults_for_clusters(spark: Any) -> None:
    configuration = spark._jsc.hadoopConfiguration()
    assert configuration.get("yarn.resourcemanager.hostname") is None
    assert configuration.get("fs.AbstractFileSystem.file.impl") is not None
    assert configuration.get("mapreduce.fileoutputcommitter.algorithm.version") == "1", (
        "Spark has set it, the default is 2"
    )
    assert configuration.get("fs.s3a.secret.key") == "kept", "as a user has set it"
