"""The page: one HTML file that needs nothing else, and the same bytes for the same report.

It is rendered by Jinja2 from ``templates/``. Everything that is not a template is escaped, and characters that cannot be seen
are shown by their numbers, whatever a group, member or topic is called.
"""

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from groupcoord.pipeline.health_symptoms import SYMPTOMS
from groupcoord.pipeline.report import charts, formatting
from groupcoord.pipeline.report.report_model import GroupSummary, Report


def render_page(report: Report) -> str:
    """The page for ``report``. It loads nothing, and its content security policy lets only its own style and script run."""
    style, script = _asset("style.css"), _asset("script.js")
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            report=report,
            anchors={detail.group.group: f"g{index}" for index, detail in enumerate(report.details, 1)},
            style=style,
            script=script,
            style_hash=_hash(style),
            script_hash=_hash(script),
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("groupcoord.pipeline.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    functions = (
        formatting.number,
        formatting.amount,
        formatting.moment,
        formatting.iso_time,
        formatting.duration,
        formatting.shortened,
        formatting.visible,
        charts.cause_line,
    )
    environment.filters.update({function.__name__: function for function in functions}, score_text=_score_text)
    environment.globals.update({"charts": charts, "symptoms": SYMPTOMS})
    return environment


def _visible(value: Any) -> Any:
    """What an expression of a template writes."""
    return formatting.visible(value) if type(value) is str else value


@cache
def _asset(name: str) -> Markup:
    return Markup(files("groupcoord.pipeline.report").joinpath("templates", name).read_text(encoding="utf-8"))  # noqa: S704 - our own file


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _score_text(group: GroupSummary) -> str:
    """How much of the score each symptom contributes."""
    parts = []
    for symptom in SYMPTOMS:
        if points := group.points[symptom.column]:
            count = getattr(group, symptom.column)
            parts.append(f"{symptom.meaning} {points:,.1f} (seen {'once' if count == 1 else f'{count:,} times'})")
    return f"Score {group.score:,.1f}: {', '.join(parts) or 'nothing is wrong with it'}."
