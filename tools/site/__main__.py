"""``python -m tools.site`` writes build/site, or prints the errors in the docs and exits with code 1.

The generator is Zensical; its input, Markdown and a configuration, is in build/site-source. Its output is then checked as a
browser would see it: every link and anchor exists, and nothing is loaded from another host.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tools.site import navigation
from tools.site.html_check import problems_of
from tools.site.navigation import ROOT
from tools.site.pages import BrokenLinkError, Pages

SOURCE = ROOT / "build" / "site-source"
SITE = ROOT / "build" / "site"
_NPM = ROOT / "build" / "npm" / "node_modules"
_SHIM = "https://unpkg.com/iframe-worker/shim"
"""Where the generator would have a page without a server fetch what its search needs."""
_HERE = Path(__file__).resolve().parent


def main() -> int:
    """Build and check; returns the exit code."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.rmtree(SITE, ignore_errors=True)
    wrong = navigation.problems()
    if not wrong:
        try:
            _build()
        except BrokenLinkError as error:
            wrong = [str(error)]
        except subprocess.CalledProcessError as error:
            wrong = _said(error.stdout)
        else:
            wrong = problems_of(SITE)
    sys.stderr.writelines(f"{line}\n" for line in wrong)
    if not wrong:
        sys.stdout.write(f"{SITE.relative_to(ROOT)}/index.html: {sum(1 for _ in SITE.rglob('*.html'))} pages\n")
    return 1 if wrong else 0


def _build() -> None:
    pages = Pages(SOURCE / "docs")
    pages.write()
    shutil.copytree(_HERE / "assets", SOURCE / "docs" / "assets")
    shutil.copyfile(_NPM / "@mermaid-js/tiny/dist/mermaid.tiny.js", SOURCE / "docs/assets/mermaid.js")
    shutil.copyfile(_NPM / "iframe-worker/shim/index.js", SOURCE / "docs/assets/iframe-worker.js")
    configuration = (_HERE / "zensical.toml").read_text(encoding="utf-8")
    nav = json.dumps(pages.nav(), ensure_ascii=False, separators=(", ", " = "))  # which is a value of TOML
    (SOURCE / "zensical.toml").write_text(configuration.replace("nav = []", f"nav = {nav}"), encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    subprocess.run(command, cwd=SOURCE, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # noqa: S603
    shutil.move(SOURCE / "site", SITE)
    (SITE / "404.html").unlink()  # a host with a folder for the site would look for its links outside of that
    for path in SITE.rglob("*.html"):
        shim = os.path.relpath(SITE / "assets/iframe-worker.js", path.parent)
        path.write_text(path.read_text(encoding="utf-8").replace(_SHIM, shim), encoding="utf-8")


def _said(output: str) -> list[str]:
    """What Zensical has found, without its colours, its own lines of code, and what is too long to be read."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", output).partition("Traceback")[0].splitlines()
    return [line[:160].rstrip() for line in lines]


if __name__ == "__main__":
    sys.exit(main())
