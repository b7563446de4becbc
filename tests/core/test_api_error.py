"""A refusal says why."""

from groupcoord.core.api_error import ApiError
from groupcoord.protocol.errors import ErrorCode


def test_a_refusal_without_a_text_has_the_standard_one_for_people() -> None:
    bare, worded = ApiError(ErrorCode.REQUEST_TIMED_OUT), ApiError(ErrorCode.INVALID_CONFIG, "no")
    assert (bare.code, bare.message, str(bare)) == (
        ErrorCode.REQUEST_TIMED_OUT,
        None,
        "REQUEST_TIMED_OUT: The request timed out.",
    )
    assert (worded.code, worded.message, str(worded)) == (ErrorCode.INVALID_CONFIG, "no", "INVALID_CONFIG: no")
