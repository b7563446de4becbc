"""The broker without Docker: what it needs, and that it says what is missing."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.real_kafka import kafka_java, process
from tests.real_kafka.kafka_java import java_version, libs_of, why_not


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_292"', 8),
        ("nothing of the kind", 0),
    ],
)
def test_java_says_its_version(said: str, version: int) -> None:
    assert java_version(said) == version


def test_each_version_has_its_jars() -> None:
    assert (libs_of("4.3.1").name, libs_of("3.9.2").name) == ("libs", "libs-3.9.2")


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    new, old = 'version "17.0.1"', 'version "11.0.1"'
    assert why_not(tmp_path / "libs", "/bin/java", new) == "docker/kafka/libs is not there (`make kafka-libs`)"
    assert why_not(tmp_path, None, "") == "there is no Java"
    assert why_not(tmp_path, "/bin/java", old) == "/bin/java is not Java 17 or newer"
    assert why_not(tmp_path, "/bin/java", new) is None


def test_a_broker_that_is_killed_before_it_archived_its_classes_leaves_the_next_one_without_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"17.0.15\"' >&2\n")
    java.chmod(0o755)
    (tmp_path / "libs").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(kafka_java, "DOCKER_KAFKA", tmp_path)
    monkeypatch.setattr(process, "KafkaProcess", lambda **_: nullcontext())
    assert not process.quick_java("4.3.1").archive.exists()
