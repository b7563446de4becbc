"""Dissects the captured frames of TCP connections in order, matching each response with its request.

A response names neither API nor version: its correlation id is that of a request of the same connection. Metadata responses
tell the names of topic ids; later, records of coordinator topics are recognised by these names.
"""

import uuid
from collections.abc import Iterable

from groupcoord.dissect.dissection import UNREADABLE, DissectedField, Dissection, dissection
from groupcoord.dissect.frames import dissect_request, dissect_response
from groupcoord.dissect.tcp_capture import CapturedFrame
from groupcoord.protocol.api_descriptor import ApiKey


class ConnectionDissector:
    """Dissects frames one after the other, and remembers the requests of each connection."""

    def __init__(self) -> None:
        self._topic_names: dict[uuid.UUID, str] = {}
        self._asked: dict[tuple[int, int], tuple[int, int]] = {}  # (connection, correlation id) → (API key, version)

    def dissect(self, frame: CapturedFrame) -> Dissection:
        """The dissection of the next frame."""
        return self._request(frame) if frame.is_request else self._response(frame)

    def _request(self, frame: CapturedFrame) -> Dissection:
        found = dissect_request(frame.data, sized=True, topic_names=self._topic_names)
        header = {field.path: field.value for field in found.fields[:5]}
        match header:
            case {"request_api_key": int(key), "request_api_version": int(version), "correlation_id": int(number)}:
                self._asked[frame.connection, number] = key, version
        return found

    def _response(self, frame: CapturedFrame) -> Dissection:
        number = int.from_bytes(frame.data[4:8], signed=True)
        asked = self._asked.pop((frame.connection, number), None)
        if asked is None:
            reason = f"no request with correlation id {number} came before it"
            rest = [DissectedField(0, len(frame.data), "rest", UNREADABLE, frame.data, reason)]
            return dissection("response", frame.data, rest)
        found = dissect_response(frame.data, *asked, sized=True, topic_names=self._topic_names)
        if asked[0] == ApiKey.METADATA:
            self._learn(found.fields)
        return found

    def _learn(self, fields: Iterable[DissectedField]) -> None:
        name: object = None
        for field in fields:
            leaf = field.path.rpartition("].")[2]
            if leaf == "name":
                name = field.value
            elif leaf == "topic_id" and isinstance(field.value, uuid.UUID) and isinstance(name, str):
                self._topic_names[field.value] = name
