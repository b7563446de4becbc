"""Generates docs/control-openapi.json, and the tables of operations in docs/control.md."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from groupcoord.control.app import create_app
from tools.markdown import table

DESCRIPTION = Path(__file__).resolve().parent.parent / "docs" / "control-openapi.json"


@cache
def _described() -> dict[str, Any]:
    return create_app(None).openapi()  # type: ignore[arg-type] # a description needs no clusters


def description() -> str:
    """docs/control-openapi.json."""
    return json.dumps(_described(), indent=1, ensure_ascii=False) + "\n"


def operations() -> str:
    """What there is, by what it is about: the path with its parameters, the fields of the body, and what it does."""
    described = _described()
    schemas = described["components"]["schemas"]
    rows: dict[str, list[str]] = {}
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            asked = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
            body = _fields(operation.get("requestBody"), schemas)
            query = f"?{'&'.join(f'{name}=' for name in asked)}" if asked else ""
            what = f"{operation['summary']}{f'. Body: {body}' if body else ''}"
            rows.setdefault(operation["tags"][0], []).append(f"| `{method.upper()} {path}`{_plain(query)} | {what} |")
    head = "| operation | what it does |"
    return "".join(f"\n### {tag.capitalize()}\n\n{table(head, each)}" for tag, each in rows.items()) + "\n"


def _plain(query: str) -> str:
    return f" `{query}`" if query else ""


def _fields(body: dict[str, Any] | None, schemas: dict[str, Any]) -> str:
    if body is None:
        return ""
    (name,) = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(body)))
    required = schemas[name].get("required", ())
    return ", ".join(f"`{field}`{'' if field in required else '?'}" for field in schemas[name]["properties"])
