import pytest

from groupcoord.coordinator.classic.classic_group import ClassicGroup
from groupcoord.coordinator.classic.classic_group_state import current_generation, known_member
from groupcoord.core.api_error import ApiError
from groupcoord.protocol.errors import ErrorCode
from tests.coordinator.bare_group import bare_group


def group() -> ClassicGroup:
    """A group that knows of instance ``i`` and of a handed-out id, and has no member."""
    found = bare_group("app")
    found.static_members["i"] = "i-1"
    found.pending_join_members.add("b-2")
    found.generation_id = 3
    return found


@pytest.mark.parametrize(
    ("member_id", "instance_id", "code", "why"),
    [
        ("a-1", None, ErrorCode.UNKNOWN_MEMBER_ID, "member_id 'a-1' is not in the group"),
        ("b-2", None, ErrorCode.UNKNOWN_MEMBER_ID, "it was handed out and has not joined"),
        ("i-1", "j", ErrorCode.UNKNOWN_MEMBER_ID, "group_instance_id 'j' is of no member"),
        ("a-1", "i", ErrorCode.FENCED_INSTANCE_ID, "now belongs to member_id 'i-1', not 'a-1'"),
        ("", "i", ErrorCode.FENCED_INSTANCE_ID, "now belongs to member_id 'i-1', not ''"),
    ],
)
def test_a_refusal_says_which_field_is_wrong(
    member_id: str, instance_id: str | None, code: ErrorCode, why: str
) -> None:
    with pytest.raises(ApiError, match=why) as refusal:
        known_member(group(), member_id, instance_id)
    assert refusal.value.code is code


def test_only_the_current_generation_counts() -> None:
    current_generation(group(), 3)
    for other in (2, 4, -1):
        with pytest.raises(ApiError, match=f"generation_id is {other}, the group is at 3") as refusal:
            current_generation(group(), other)
        assert refusal.value.code is ErrorCode.ILLEGAL_GENERATION
