"""What has passed on a real Kafka alone is left out by KAFKA_ALONE=changed, until something of it changes or it fails."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real_kafka import alone

pytest_plugins = ["pytester"]

HOOKS = "from tests.conftest import pytest_collection_modifyitems, pytest_terminal_summary"
TEST = """
import os
import pytest
from tests.real_kafka import alone

@pytest.mark.real_kafka
def test_of_both():
    pass

@pytest.fixture(params=[pytest.param("kafka", marks=alone.MARKS)])
def server(request):
    return request.param

def test_of_kafka_alone(server):
    assert "BROKEN" not in os.environ
"""
Run = Callable[..., dict[str, int]]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs both tests, and returns how many passed, failed, or were left out."""
    notes = Path(str(pytester.path), "notes.json")
    notes.write_text("{}")
    monkeypatch.setattr(alone, "NOTES", notes)
    monkeypatch.delenv("KAFKA_ALONE", raising=False)
    pytester.makeconftest(HOOKS)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\nmarkers =\n real_kafka\n kafka_alone\n")
    pytester.makepyfile(test_it=TEST)

    def outcomes(**environment: str) -> dict[str, int]:
        with monkeypatch.context() as patched:
            for name, value in environment.items():
                patched.setenv(name, value)
            return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-m", "real_kafka").parseoutcomes()

    return outcomes


@pytest.mark.slow
def test_what_has_passed_is_left_out(run: Run) -> None:
    assert run() == {"passed": 2}
    assert list(alone.notes()) == ["test_it.py::test_of_kafka_alone[kafka]"]
    assert run(KAFKA_ALONE="changed") == {"passed": 1, "deselected": 1}
    assert run() == {"passed": 2}


@pytest.mark.slow
def test_what_has_changed_runs_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run()
    monkeypatch.setattr(alone, "digest", lambda: "another one")
    assert run(KAFKA_ALONE="changed") == {"passed": 2}
    assert run(KAFKA_ALONE="changed") == {"passed": 1, "deselected": 1}


@pytest.mark.slow
def test_what_fails_is_forgotten(run: Run) -> None:
    run()
    assert run(BROKEN="1") == {"passed": 1, "failed": 1}
    assert alone.notes() == {}


def test_the_digest_depends_on_each_file_and_on_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "clients").mkdir()
    file = tmp_path / "clients" / "a.json"
    monkeypatch.setattr(alone, "TESTS", tmp_path)
    monkeypatch.setattr(alone, "kafka_version", lambda: "4.3.1")
    digest = alone.digest.__wrapped__
    found = [digest()]
    file.write_text("{}")
    found.append(digest())
    file.rename(file.with_name("b.json"))
    found.append(digest())
    monkeypatch.setattr(alone, "kafka_version", lambda: "4.4.0")
    found.append(digest())
    assert len(set(found)) == len(found)
    (tmp_path / "clients" / "__pycache__").mkdir()
    (tmp_path / "clients" / "__pycache__" / "a.pyc").write_bytes(b"compiled")
    assert digest() == found[-1]
