"""All sections, one under the other."""

import base64
import hashlib

from groupcoord.pipeline.report.page.groups import anchors_of, groups
from groupcoord.pipeline.report.page.markup import join, raw, tag
from groupcoord.pipeline.report.page.overview import overview
from groupcoord.pipeline.report.page.quality import quality
from groupcoord.pipeline.report.page.ranking import lag, ranking, storms
from groupcoord.pipeline.report.page.script import SCRIPT
from groupcoord.pipeline.report.page.style import STYLE
from groupcoord.pipeline.report.page.what_if import together
from groupcoord.pipeline.report.report_model import Report

TITLE = "What the consumer groups did"


def render_page(report: Report) -> str:
    """The page for ``report``. Nothing in it loads anything, and nothing but its own style and script can run: whatever a
    group, member or topic is called."""
    anchors = anchors_of(report)
    sections = [("overview", "Overview"), ("groups", "Groups by trouble")]
    sections += [("details", "Group by group")] if report.details else []
    sections += [("storms", "Storms"), ("lag", "PartitionLag")]
    sections += [("what-if", "What if")] if report.what_if is not None else []
    sections += [("quality", "Data quality")]
    links = tag("ul", *(tag("li", tag("a", title, href=f"#{anchor}")) for anchor, title in sections))
    policy = (
        f"default-src 'none'; style-src {_hash(STYLE)}; script-src {_hash(SCRIPT)}; base-uri 'none'; form-action 'none'"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="generator", content="groupcoord pipeline"),
        tag("title", TITLE),
        tag("style", raw(STYLE)),
    )
    body = tag(
        "body",
        tag(
            "header",
            tag("h1", TITLE),
            tag(
                "p",
                "All times are in UTC. Every number says which table it is from: Parquet files in ",
                tag("code", "tables"),
                " beside this page.",
            ),
            tag("nav", links, aria_label="Sections"),
        ),
        tag(
            "main",
            overview(report),
            ranking(report, anchors),
            groups(report),
            storms(report, anchors),
            lag(report, anchors),
            together(report.what_if),
            quality(report.quality),
        ),
        tag("footer", tag("p", "Made by groupcoord pipeline.", class_="more")),
        tag("script", raw(SCRIPT)),
    )
    return join(raw("<!DOCTYPE html>\n"), tag("html", head, body, lang="en"), raw("\n"))


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
