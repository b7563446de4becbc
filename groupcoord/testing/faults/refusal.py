"""The answer that says an error, if the API and version have a place for one."""

import dataclasses
from typing import Any

from groupcoord.core.effects import Call, Reply
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.framing import encode_response, parse_response
from groupcoord.protocol.messages import ApiVersionsResponse


def refusal(call: Call, request: Any, code: ErrorCode) -> Reply | None:
    """What Kafka's own ``getErrorResponse`` makes of ``code``. None if nothing in it says ``code``.

    So it is with a Metadata of an old version that asks for no topic, and with a Produce that wants no answer.
    """
    response: Any
    if request is None and call.api.key == ApiKey.API_VERSIONS:
        # Of a version that is not known here: it is answered in version 0, which every client reads.
        call, response = call._replace(version=0), ApiVersionsResponse(error_code=code)
    else:
        response = call.api.error_response(request, call.version, code)
    if response is None:
        return None
    frame = encode_response(call.api, call.version, call.correlation_id, response)
    _, heard = parse_response(call.api, call.version, frame[4:])
    return Reply(call, response) if _says(heard, code) else None


def _says(message: Any, code: ErrorCode) -> bool:
    """Is there a field ``error_code`` of that value anywhere in ``message``?"""
    if isinstance(message, tuple):
        return any(_says(item, code) for item in message)
    if not dataclasses.is_dataclass(message):
        return False
    return any(
        value == code if field.name == "error_code" else _says(value, code)
        for field in dataclasses.fields(message)
        if (value := getattr(message, field.name)) is not None
    )
