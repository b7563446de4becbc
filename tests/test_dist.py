"""What is said of a release that cannot be made."""

from groupcoord.version import VERSION
from tools.dist import problems_of_files, problems_of_tag


def test_a_tag_is_that_of_the_version_and_its_day_is_known() -> None:
    dated = f"# Changes\n\n## {VERSION} (2026-12-01)\n"
    assert problems_of_tag(f"v{VERSION}", dated) == []
    (other,) = problems_of_tag("v99.0.0", dated)
    assert other == f"the tag is v99.0.0, and groupcoord/version.py says {VERSION}: it would be v{VERSION}"
    (undated,) = problems_of_tag(f"v{VERSION}", dated.replace("2026-12-01", "unreleased"))
    assert undated == f"CHANGELOG.md has no line '## {VERSION} (YYYY-MM-DD)' with the day of the release"


def test_an_archive_has_the_files_that_it_must_have_and_no_others() -> None:
    assert problems_of_files("a wheel", ["a", "b"], ["b", "a"]) == []
    assert problems_of_files("a wheel", ["a", "c"], ["a", "b"]) == ["a wheel has no b", "a wheel has c besides"]
