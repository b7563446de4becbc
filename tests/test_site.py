"""The pages of docs/: each is in the navigation, and what they link to is there. `make site` checks the site that is built."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import markdown
from tools.site import api, navigation, pages
from tools.site.html_check import problems_of
from tools.site.navigation import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def _links() -> Iterator[tuple[Path, str]]:
    for path in PAGES:
        for target in markdown.links(path.read_text(encoding="utf-8")):
            yield path, target


def test_every_page_is_in_the_navigation() -> None:
    assert navigation.problems() == []


@pytest.mark.slow
def test_every_link_leads_to_a_file_and_a_heading_that_are_there() -> None:
    missing = []
    for path, target in _links():
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        found = (path.parent / file).resolve() if file else path
        if not found.exists() or (anchor and anchor not in markdown.headings(found.read_text(encoding="utf-8"))):
            missing.append(f"{path.relative_to(ROOT)}: {target}")
    assert missing == []


def test_links_to_other_hosts_are_https() -> None:
    others = [target for _, target in _links() if "://" in target]
    assert [url for url in others if not re.match(r"https://[a-z0-9-]+(\.[a-z0-9-]+)+(/|$)", url)] == []


def test_every_block_of_code_says_its_language() -> None:
    unsaid = []
    for path in PAGES:
        fences = re.findall(r"^ *```(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        unsaid += [path.name for language in fences[::2] if not language]
    assert unsaid == []


def test_a_page_outside_of_the_navigation_is_told_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("docs/new.md", "docs/README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        (tmp_path / name).write_text("# A page\n")
    section = '[[section]]\nfile = "s.md"\ntitle = "S"\nabout = "A."\n[section.pages]\n"{}" = "It."\n'
    listed = ("../CONTRIBUTING.md", "gone.md", "../CHANGELOG.md", "../docs/../CHANGELOG.md")
    (docs / "navigation.toml").write_text("".join(map(section.format, listed)))
    monkeypatch.setattr(navigation, "ROOT", tmp_path)
    monkeypatch.setattr(navigation, "PATH", docs / "navigation.toml")
    assert navigation.problems() == [
        "docs/README.md is not in docs/navigation.toml: add a line for it",
        "docs/new.md is not in docs/navigation.toml: add a line for it",
        "docs/navigation.toml names gone.md, which is not there",
        "docs/navigation.toml names CHANGELOG.md twice",
    ]


@pytest.mark.slow
def test_pages_of_the_site_link_to_each_other_by_title_and_to_sources_as_pages(tmp_path: Path) -> None:
    pages.Pages(tmp_path).write()
    front = (tmp_path / "index.md").read_text(encoding="utf-8")
    assert "[Consumer groups](consumer-groups.md)" in (tmp_path / "learn.md").read_text(encoding="utf-8")
    assert "[APIs](apis.md)" in front
    assert "](images/pipeline-report.png)" in front
    assert (tmp_path / "images/pipeline-report.png").is_file()
    stories = re.findall(r"\]\((sources/[^)]*)\)", (tmp_path / "scenarios.md").read_text(encoding="utf-8"))
    source = (tmp_path / stories[0]).read_text(encoding="utf-8")
    assert "\n````python\n" in source
    assert "exclude: true" in source


@pytest.mark.slow
def test_a_playground_that_was_built_is_in_the_site_and_linked_from_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs, built = tmp_path / "docs", tmp_path / "build"
    for folder in (docs, built):
        folder.mkdir()
    (built / "index.html").write_text("<h1>It plays")
    (docs / "playground.md").write_text("# Playground\n\nIt is in the browser.\n")
    (tmp_path / "README.md").write_text("# R\n")
    section = '[[section]]\nfile = "s.md"\ntitle = "S"\nabout = "A."\n[section.pages]\n"playground.md" = "It."\n'
    (docs / "navigation.toml").write_text(section)
    monkeypatch.setattr(navigation, "PATH", docs / "navigation.toml")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(pages, "PLAYGROUND", built)
    pages.Pages(tmp_path / "site").write()
    page = (tmp_path / "site" / "playground.md").read_text(encoding="utf-8")
    assert page == "# Playground\n\n**[Open the playground](playground/index.html)**\n\nIt is in the browser.\n"
    assert (tmp_path / "site" / "playground" / "index.html").read_text() == "<h1>It plays"


@pytest.mark.parametrize("target", ["gone.md", "../../outside.md"])
def test_a_link_to_nothing_stops_the_build_and_names_the_page(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text(f"# R\n\n[x](docs/{target})\n")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    with pytest.raises(pages.BrokenLinkError, match=rf"README.md: links to docs/{target}, which is not there"):
        pages.Pages(tmp_path / "site").write()


def test_every_name_of_the_package_has_a_page_with_its_first_sentence() -> None:
    written = api.pages()
    assert set(written) == {api.INDEX, *(next(iter(each.values())) for each in api.nav()[1:] if isinstance(each, dict))}
    assert "| [`gc.Topic`](topic.md) | " in written[api.INDEX]
    assert written["api/events.md"].startswith("::: groupcoord.events\n")
    assert "- ClusterGroup\n" in written["api/testing.md"]
    assert "- Cluster\n" not in written["api/testing.md"]


def test_code_is_neither_heading_nor_link() -> None:
    text = (
        "# A `b` c\n\n```text\n# no\n[n](n.md)\n```\n\n## A b c\n\n`[n](n.md)` [a `code`\nlink](x.md#y) ![i](i.png)\n"
    )
    assert markdown.headings(text) == {"a-b-c": "A `b` c", "a-b-c-1": "A b c"}
    assert [*markdown.links(text)] == ["x.md#y", "i.png"]
    changed = markdown.with_links(text, lambda shown, target: (shown.upper(), f"z/{target}"))
    assert changed.endswith("`[n](n.md)` [A `CODE`\nLINK](z/x.md#y) ![I](z/i.png)\n")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<a href="b.html#there">', ""),
        ('<a href="folder/">', ""),
        ('<a href="https://example.org/x">', ""),
        ('<img src="data:image/png;base64,AA">', ""),
        ('<a href="c.html">', "a.html: links to c.html, which is not there"),
        ('<a href="b.html#gone">', "a.html: links to b.html#gone, and b.html has no such anchor"),
        ('<a href="#gone">', "a.html: links to #gone, and a.html has no such anchor"),
        ('<a href="/b.html">', "a.html: links to /b.html, which is not there if the site is in a folder of its host"),
        ('<a href="../outside.html">', "a.html: links to ../outside.html, which is not there"),
        (
            '<a href="http://example.org">',
            "a.html: links to http://example.org, which is not an https:// address of a host",
        ),
        ('<script src="https://cdn.example/x.js">', "a.html: takes https://cdn.example/x.js from another host"),
        ("<style>@import '//fonts.example/f.css'</style>", "a.html: takes //fonts.example/f.css from another host"),
    ],
)
def test_a_built_page_has_all_it_links_to_and_takes_nothing_from_elsewhere(
    body: str, problem: str, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "index.html").write_text("")
    (tmp_path / "a.html").write_text(body)
    (tmp_path / "b.html").write_text('<h1 id="there">')
    assert problems_of(tmp_path) == ([problem] if problem else [])


def test_a_style_sheet_takes_nothing_from_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "s.css").write_text("a { background: url(https://cdn.example/i.png) }")
    assert problems_of(tmp_path) == ["s.css: takes https://cdn.example/i.png from another host"]
