"""The version of groupcoord, for the package's metadata, ``groupcoord --version`` and the client."""

VERSION = "0.1.0"
