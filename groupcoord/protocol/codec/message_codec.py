"""Codec, the encoder and decoder of one message in one version; created when it is first needed.

kio has every version of every message: ``schema`` takes the fields from it, and ``compiler`` generates the functions.
"""

import sys
from importlib import import_module
from typing import Any, Generic, TypeVar

from groupcoord.protocol.codec.compiler import READ_ERRORS, compile_reader, compile_writer
from groupcoord.protocol.codec.field_by_field_decoder import explain_decode_error
from groupcoord.protocol.codec.flexible_versions import ReadFunction, Sink, WriteFunction
from groupcoord.protocol.codec.schema import MessageSchema, schema_of

M = TypeVar("M")


class Codec(Generic[M]):
    """Encodes and decodes one message in one version."""

    __slots__ = ("_reader", "_writer", "flexible", "schema")

    def __init__(self, schema: MessageSchema) -> None:
        self.schema = schema
        self.flexible = schema.flexible
        # A server only reads requests and only writes responses, so each half waits for its first use.
        self._reader: ReadFunction | None = None
        self._writer: WriteFunction | None = None

    def decode(self, data: bytes, offset: int = 0) -> M:
        """The message that starts at ``offset``; what follows it is ignored, as Kafka does.

        Raises WireError, with field and offset, when the bytes are not such a message.
        """
        return self.decode_from(data, offset)[0]

    def decode_from(self, data: bytes, offset: int) -> tuple[M, int]:
        """(the message at ``offset``, the offset after it). Raises WireError as ``decode`` does."""
        read = self._reader
        if read is None:
            read = self._reader = compile_reader(self.schema)
        try:
            return read(data, offset, len(data))
        except READ_ERRORS:
            raise explain_decode_error(self.schema, data, offset) from None

    def encode(self, message: M) -> bytes:
        """The bytes of ``message``, without any header. Raises struct.error when a value does not fit its field."""
        pieces: list[bytes] = []
        self.write(message, pieces.append)
        return b"".join(pieces)

    def write(self, message: M, out: Sink) -> None:
        """Write the bytes of ``message`` to ``out``, piece by piece. Raises struct.error as ``encode`` does."""
        write = self._writer
        if write is None:
            write = self._writer = compile_writer(self.schema)
        write(message, out)


_CODECS: dict[tuple[type[Any], int], Codec[Any]] = {}


def codec_for(ours: type[M], package: str, version: int, kind: str) -> Codec[M]:
    """The codec of message class ``ours`` at ``version``.

    ``package`` is kio's name for the message, ``kind`` one of ``request``, ``response`` and ``data``.
    """
    found = _CODECS.get((ours, version))
    if found is None:
        module = import_module(f"kio.schema.{package}.v{version}.{kind}")
        class_name = package.replace("_", " ").title().replace(" ", "") + ("" if kind == "data" else kind.title())
        found = _CODECS[ours, version] = Codec(schema_of(ours, getattr(module, class_name)))
    return found


def _import_kio() -> None:
    """Import the part of kio that registers its types with hypothesis, if that is installed.

    This takes half a second and is not needed here, so the import of hypothesis is made to fail. It is done when this module is
    imported, and not with the first message: that may be in a thread of the server, while another thread searches for
    hypothesis, as pytest does before each test.
    """
    if "kio.static.primitive" not in sys.modules and "hypothesis" not in sys.modules:
        sys.modules["hypothesis"] = None  # type: ignore[assignment] # makes the import fail
        try:
            import_module("kio.static.primitive")
        finally:
            del sys.modules["hypothesis"]


_import_kio()
