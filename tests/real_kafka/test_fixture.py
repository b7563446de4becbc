"""What happens to a test that needs a real broker where none can be started, in a pytest of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = ("tests/conformance/test_live.py", "-k", "a_lone_member_reaches_stable", "-p", "no:cacheprovider", "-rs")

pytestmark = pytest.mark.slow


def run_pytest(folder: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """With neither a Docker daemon nor a Java."""
    environ = {name: value for name, value in os.environ.items() if name not in {"REQUIRE_REAL_KAFKA", "KAFKA_VERSION"}}
    environ |= {"DOCKER_HOST": f"unix://{folder}/docker.sock", "PATH": str(folder), **variables}
    command = [sys.executable, "-m", "pytest", *TESTS, *options]
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)


def test_it_is_left_out_unless_asked_for(tmp_path: Path) -> None:
    ran = run_pytest(tmp_path)
    assert ran.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, ran.stdout


def test_it_is_skipped_with_the_reason(tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, "-m", "real_kafka")
    assert ran.returncode == 0, ran.stdout
    assert "no real Kafka: no Docker daemon answers" in ran.stdout


def test_it_fails_with_the_reason_if_a_broker_is_required(tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, "-m", "real_kafka", REQUIRE_REAL_KAFKA="1")
    assert ran.returncode == pytest.ExitCode.TESTS_FAILED
    assert "no real Kafka: no Docker daemon answers" in ran.stdout


def test_another_version_is_another_command(tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, "-m", "real_kafka", KAFKA_VERSION="3.9.2")
    assert ran.returncode == pytest.ExitCode.USAGE_ERROR
    assert "KAFKA_VERSION=3.9.2 make kafka-versions" in ran.stdout + ran.stderr
