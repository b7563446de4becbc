"""A certificate authority for one test, and the certificates that it has signed, as PEM files."""

from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)


class Authority:
    """What ``folder`` has of it: ``ca.pem``, and a file with key and certificate for each of ``signed``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._authority = trustme.CA()
        self.trusted = folder / "ca.pem"
        self._authority.cert_pem.write_to_path(self.trusted)

    def signed(self, *hosts: str) -> Path:
        """A file with the key (PKCS #8, which is all that Kafka reads) and the certificate of ``hosts``."""
        found = self._authority.issue_cert(*hosts)
        key = load_pem_private_key(found.private_key_pem.bytes(), None)
        path = self._folder / f"{hosts[0]}.pem"
        certificates = b"".join(each.bytes() for each in found.cert_chain_pems)
        path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + certificates)
        return path
