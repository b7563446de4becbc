"""Checks the sdist and the wheel that ``make dist`` builds into ``dist``.

``python -m tools.dist`` checks the files in both, installs the wheel into a fresh environment and runs it there;
``--tag v1.2.3`` first checks that this is the tag of the version, and that the version has its date in CHANGELOG.md.
"""

import argparse
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from groupcoord.version import VERSION

ROOT = Path(__file__).resolve().parent.parent
SDIST = ROOT / "dist" / f"groupcoord-{VERSION}.tar.gz"
WHEEL = ROOT / "dist" / f"groupcoord-{VERSION}-py3-none-any.whl"
BESIDE_THE_PACKAGE = {"PKG-INFO", "LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", ".gitignore"}
"""What the sdist has besides the package."""

CLUSTER = """\
import asyncio, groupcoord as gc
async def main():
    async with gc.Cluster(topics={"orders": 6}) as kafka:
        await kafka.consumers(1, group="baristas", topics="orders")
        print((await kafka.group("baristas").wait_stable(members=1)).state)
asyncio.run(main())
"""


def problems_of_tag(tag: str, changes: str) -> list[str]:
    """Why ``tag`` cannot be released with these ``changes``, the text of CHANGELOG.md."""
    problems = []
    if tag != f"v{VERSION}":
        problems.append(f"the tag is {tag}, and groupcoord/version.py says {VERSION}: it would be v{VERSION}")
    if not re.search(rf"^## {re.escape(VERSION)} \(\d{{4}}-\d\d-\d\d\)$", changes, re.MULTILINE):
        problems.append(f"CHANGELOG.md has no line '## {VERSION} (YYYY-MM-DD)' with the day of the release")
    return problems


def problems_of_files(kind: str, found: Iterable[str], wanted: Iterable[str]) -> list[str]:
    """What ``kind`` has that it should not have, and has not that it should."""
    missing, extra = sorted({*wanted} - {*found}), sorted({*found} - {*wanted})
    return [f"{kind} has no {name}" for name in missing] + [f"{kind} has {name} besides" for name in extra]


def package_files() -> set[str]:
    """The files of the package: those that git knows, and those that are built into it."""
    tracked = _output(ROOT, "git", "ls-files", "--cached", "--others", "--exclude-standard", "groupcoord").splitlines()
    pages = (str(path.relative_to(ROOT)) for path in ROOT.glob("groupcoord/page/static/*.html"))
    return {*tracked, *pages}


def _archive_problems() -> list[str]:
    package = package_files()
    with tarfile.open(SDIST) as sdist:
        in_sdist = {member.name.partition("/")[2] for member in sdist.getmembers() if member.isfile()}
    with zipfile.ZipFile(WHEEL) as wheel:
        in_wheel = {name for name in wheel.namelist() if ".dist-info/" not in name}
    return [
        *problems_of_files(SDIST.name, in_sdist, package | BESIDE_THE_PACKAGE),
        *problems_of_files(WHEEL.name, in_wheel, package),
    ]


def _run_problems() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder, "bin", "python")
        _output(folder, sys.executable, "-m", "venv", folder)
        _output(folder, python, "-m", "pip", "install", "--quiet", WHEEL)
        said = [_output(folder, python.with_name("groupcoord"), "--version"), _output(folder, python, "-c", CLUSTER)]
    wanted = [f"groupcoord {VERSION}", "Stable"]
    return [] if said == wanted else [f"the installed wheel says {said}, and not {wanted}"]


def _output(folder: str | Path, *command: str | Path) -> str:
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def main(arguments: list[str]) -> int:
    """Check and say what is wrong; returns the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tag")
    tag = parser.parse_args(arguments).tag
    problems = [] if tag is None else problems_of_tag(tag, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    problems = problems or _archive_problems() or _run_problems()
    for problem in problems:
        sys.stderr.write(f"dist: {problem}\n")
    if not problems:
        sys.stdout.write(f"dist: {SDIST.name} and {WHEEL.name} are complete, and the wheel runs\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
