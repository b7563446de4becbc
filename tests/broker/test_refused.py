"""A refusal says why."""

from groupcoord.broker.refused import Refused
from groupcoord.protocol.errors import ErrorCode


def test_a_refusal_without_a_text_has_the_standard_one_for_people() -> None:
    bare, worded = Refused(ErrorCode.REQUEST_TIMED_OUT), Refused(ErrorCode.INVALID_CONFIG, "no")
    assert (bare.error, bare.text, str(bare)) == (ErrorCode.REQUEST_TIMED_OUT, None, "The request timed out.")
    assert (worded.error, worded.text, str(worded)) == (ErrorCode.INVALID_CONFIG, "no", "no")
