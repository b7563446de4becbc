"""The action that starts groupcoord in a workflow: its steps, run as a runner runs them."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

FOLDER = Path(__file__).resolve().parent.parent / ".github" / "actions" / "groupcoord"
ACTION = yaml.safe_load((FOLDER / "action.yml").read_text(encoding="utf-8"))

pytestmark = pytest.mark.slow


def start(temporary: Path, inputs: Mapping[str, str]) -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
    """What the step says, and its outputs."""
    installed = temporary / "groupcoord" / "bin"
    installed.mkdir(parents=True)
    (installed / "groupcoord").symlink_to(Path(sys.executable).parent / "groupcoord")
    output = temporary / "output"
    output.touch()
    (_, step) = ACTION["runs"]["steps"]
    given = {name: inputs.get(name, setting["default"]) for name, setting in ACTION["inputs"].items()}
    variables = {
        **{name: given[value.removeprefix("${{ inputs.").removesuffix(" }}")] for name, value in step["env"].items()},
        "GITHUB_ACTION_PATH": str(FOLDER),
        "GITHUB_OUTPUT": str(output),
        "RUNNER_TEMP": str(temporary),
    }
    finished = subprocess.run(
        ["bash", "-e", "-c", step["run"]],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return finished, dict(line.split("=", 1) for line in output.read_text(encoding="utf-8").splitlines())


def test_the_step_ends_when_the_broker_listens_and_says_where(tmp_path: Path) -> None:
    finished, outputs = start(tmp_path, {"port": "0", "topics": "orders:6"})
    assert finished.returncode == 0, finished.stderr
    assert outputs.keys() == ACTION["outputs"].keys()
    host, _, port = outputs["bootstrap-servers"].rpartition(":")
    try:
        socket.create_connection((host, int(port)), 60).close()
    finally:
        os.kill(int(outputs["pid"]), signal.SIGTERM)
    assert finished.stdout.startswith(f"groupcoord: listening on {host}:{port}, ")


def test_a_broker_that_does_not_start_fails_the_step_with_its_reason(tmp_path: Path) -> None:
    finished, outputs = start(tmp_path, {"options": "--topik orders"})
    assert finished.returncode == 1
    assert "there is no option --topik; did you mean --topic?" in finished.stderr
    assert outputs == {}
