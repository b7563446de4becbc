"""(API, version) ↔ bytes, for version-free messages: one codec per message and version, made when first asked for.

kio knows every version of every message; ``layout`` takes from it what lies where, ``compiler`` makes functions of that.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any, Generic, TypeVar

from groupcoord.protocol.codec.compiler import READ_ERRORS, compile_reader, compile_writer
from groupcoord.protocol.codec.diagnostics import explain_decode_error
from groupcoord.protocol.codec.primitives import ReadFunction, Sink, WriteFunction
from groupcoord.protocol.codec.schema import MessageSchema, schema_of

M = TypeVar("M")


class Codec(Generic[M]):
    """Reads and writes one message at one version."""

    __slots__ = ("_reader", "_writer", "flexible", "layout")

    def __init__(self, layout: MessageSchema) -> None:
        self.layout = layout
        self.flexible = layout.flexible
        # A server only reads requests and only writes responses, so each half waits for its first use.
        self._reader: ReadFunction | None = None
        self._writer: WriteFunction | None = None

    def decode(self, data: bytes, offset: int = 0) -> M:
        """The message that starts at ``offset``; what follows it is ignored, as Kafka does.

        Raises WireError, with field and offset, when the bytes are not such a message.
        """
        return self.decode_from(data, offset)[0]

    def decode_from(self, data: bytes, offset: int) -> tuple[M, int]:
        """The message that starts at ``offset``, and the offset behind it. Raises WireError as ``decode`` does."""
        read = self._reader
        if read is None:
            read = self._reader = compile_reader(self.layout)
        try:
            return read(data, offset, len(data))
        except READ_ERRORS:
            raise explain_decode_error(self.layout, data, offset) from None

    def encode(self, message: M) -> bytes:
        """The bytes of ``message``, without any header. Raises struct.error when a value does not fit its field."""
        pieces: list[bytes] = []
        self.write(message, pieces.append)
        return b"".join(pieces)

    def write(self, message: M, out: Sink) -> None:
        """Give the bytes of ``message`` to ``out``, piece by piece. Raises struct.error as ``encode`` does."""
        write = self._writer
        if write is None:
            write = self._writer = compile_writer(self.layout)
        write(message, out)


_CODECS: dict[tuple[type[Any], int], Codec[Any]] = {}


def codec_for(ours: type[M], package: str, version: int, kind: str) -> Codec[M]:
    """The codec of message class ``ours`` at ``version``.

    ``package`` is kio's name for the message, ``kind`` one of ``request``, ``response`` and ``data``.
    """
    found = _CODECS.get((ours, version))
    if found is None:
        module = import_kio(f"kio.schema.{package}.v{version}.{kind}")
        class_name = package.replace("_", " ").title().replace(" ", "") + ("" if kind == "data" else kind.title())
        found = _CODECS[ours, version] = Codec(schema_of(ours, getattr(module, class_name)))
    return found


def import_kio(name: str) -> ModuleType:
    """One of kio's modules, imported.

    kio tells hypothesis about its types where that is installed, which nobody here needs and which takes half a second; so it
    must not find it.
    """
    if "kio.static.primitive" not in sys.modules and "hypothesis" not in sys.modules:
        sys.modules["hypothesis"] = None  # type: ignore[assignment] # how an import is made to fail
        try:
            import_module("kio.static.primitive")
        finally:
            del sys.modules["hypothesis"]
    return import_module(name)
