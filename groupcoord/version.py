"""The version, in one place: the package's metadata, ``groupcoord --version`` and the client take it from here."""

VERSION = "0.1.0"
