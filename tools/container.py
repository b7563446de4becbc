"""Generates parts of docs/container.md and docs/listeners.md: the compose file, the image's listeners, and the variables."""

import argparse
from pathlib import Path

from groupcoord.cli import serve
from groupcoord.cli.serve_environment import option_variables
from tools.markdown import table

FOLDER = Path(__file__).resolve().parent.parent / "docker" / "groupcoord"


def compose() -> str:
    """The compose file, as it is."""
    return f"```yaml\n{(FOLDER / 'compose.yaml').read_text(encoding='utf-8')}```\n"


def listeners() -> str:
    """The server.properties of the image, as it is."""
    return f"```properties\n{(FOLDER / 'server.properties').read_text(encoding='utf-8')}```\n"


def variables() -> str:
    """The variables of options."""
    parser = argparse.ArgumentParser()
    serve.configure(parser)
    there_are = option_variables(parser._actions)  # noqa: SLF001 - argparse lists its options nowhere else
    rows = [
        f"| `{variable}` | `{action.option_strings[0]}` | {(action.help or '').removesuffix(', see below')} |"
        for variable, action in sorted(there_are.items())
    ]
    return table("| variable | option | meaning |", rows)
