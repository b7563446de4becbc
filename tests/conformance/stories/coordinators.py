"""FindCoordinator: in every version, for every key type."""

from tests.conformance.actors import Stagehand
from tests.conformance.admin import Admin
from tests.conformance.story import Story, story


@story(gotchas=[46], sections=["10.1"])
def every_version_of_find_coordinator(s: Story) -> None:
    """One key up to version 3, any number from 4 on; the error message of responses without an error."""
    admin = Admin(s, "admin")
    for version in range(7):
        admin.finds("some-group", version=version)
        admin.finds("", version=version)
    for version in (4, 5, 6):
        admin.finds("b", "a", "b", "", version=version)
        admin.finds(version=version)


@story(sections=["10.1"])
def other_kinds_of_keys(s: Story) -> None:
    """Unknown key types, and that of share groups, with well-formed and malformed keys."""
    admin = Admin(s, "admin")
    for version in range(1, 7):
        admin.finds("some-group", version=version, key_type=3)
        admin.finds("some-group", version=version, key_type=-1)
    for version in range(1, 6):
        admin.finds("some-group", version=version, key_type=2)
    admin.finds("one", "two", version=6, key_type=99)


@story(gotchas=[47], sections=["10.1", "4.9"])
def where_a_group_lives(s: Story) -> None:
    """Groups whose names hash to the smallest int32 or to negative numbers, or are not Latin: the partition of their
    records."""
    topic = Stagehand(s).topic("orders")
    admin = Admin(s, "admin")
    # "polygenelubricants" hashes to -2147483648, whose absolute value is none.
    for name in ("polygenelubricants", "my-group", "test", "ünïcode-🙂", "g"):
        s.groups.add(name)
        admin.commits(name, {(topic, 0): 1})
        admin.finds(name)
        admin.describes(name)
