"""What a properties file says of TLS and SASL, and what it cannot say."""

from pathlib import Path

import pytest

from groupcoord.client.connection_security import (
    PLAINTEXT,
    TOKEN_URL,
    parse_properties,
    read_command_config,
    security_of,
)
from groupcoord.client.sasl import SaslLogin
from tests.client.certificates import Authority

SASL = {"security.protocol": "SASL_PLAINTEXT"}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def refused(properties: dict[str, str]) -> str:
    with pytest.raises(ValueError, match=r".") as problem:
        security_of(properties)
    return str(problem.value)


def test_properties_are_read_as_java_reads_them() -> None:
    text = "# one\n! two\n\n a = b \\\n    c\nd:e\\u00e9\\t\\\\\nf g\nh\nwith\\ space=\\q\nlast\\\\\n"
    assert parse_properties(text) == {
        "a": "b c",
        "d": "e\u00e9\t\\",
        "f": "g",
        "h": "",
        "with space": "q",
        "last\\": "",
    }


def test_what_is_not_about_security_does_not_count() -> None:
    assert security_of({"client.id": "x", "group.id": "y"}) == PLAINTEXT
    assert security_of({}).sasl is None


def test_a_user_is_named_in_the_way_of_java_or_of_librdkafka() -> None:
    jaas = r'a.ScramLoginModule required username=alice password="a \"secret\"\\";'
    java = security_of({**SASL, "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": jaas})
    assert java.sasl == SaslLogin(mechanism="SCRAM-SHA-512", username="alice", password='a "secret"\\')
    librdkafka = security_of({**SASL, "sasl.mechanisms": "PLAIN", "sasl.username": "alice", "sasl.password": ""})
    assert librdkafka.sasl == SaslLogin(mechanism="PLAIN", username="alice", password="")
    assert java.tls is None


def test_a_token_is_in_a_file() -> None:
    lines = {**SASL, "sasl.mechanism": "OAUTHBEARER"}
    login = security_of({**lines, TOKEN_URL: "file:///var/a%20token"}).sasl
    assert login == SaslLogin(mechanism="OAUTHBEARER", token_file=Path("/var/a token"))
    assert refused(lines) == f"{TOKEN_URL} is the file:/// URL of a file with the token, not missing"
    assert refused({**lines, TOKEN_URL: "https://issuer/token"}).endswith("not https://issuer/token")


def test_what_cannot_be_is_told() -> None:
    assert refused({"security.protocol": "TLS"}) == (
        "security.protocol is one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL, not TLS"
    )
    mechanisms = "sasl.mechanism is one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, not "
    assert refused(SASL) == f"{mechanisms}missing"
    assert refused({**SASL, "sasl.mechanism": "GSSAPI"}) == f"{mechanisms}GSSAPI"
    assert refused({**SASL, "sasl.mechanism": "PLAIN", "sasl.username": "alice"}) == (
        "PLAIN needs username and password: in sasl.jaas.config, or sasl.username and sasl.password"
    )
    assert refused({"ssl.truststore.password": "x"}) == (
        "ssl.truststore.password is not known here; did you mean ssl.truststore.type?"
    )


@pytest.mark.slow
def test_stores_of_java_and_what_is_no_pem_are_refused(authority: Authority, tmp_path: Path) -> None:
    tls = {"security.protocol": "SSL"}
    assert refused({**tls, "ssl.truststore.location": "a.jks"}) == (
        "ssl.truststore.location is read if ssl.truststore.type is PEM, not JKS"
    )
    nothing = tmp_path / "nothing.pem"
    nothing.write_text("nothing")
    assert refused({**tls, "ssl.ca.location": str(nothing)}).startswith(f"{nothing} has no certificates as PEM: ")
    assert refused({**tls, "ssl.truststore.certificates": "\u00e4"}).startswith("ssl.truststore.certificates has no ")
    told = refused({**tls, "ssl.certificate.location": str(authority.trusted)})
    assert told.startswith(
        f"{authority.trusted} is not a certificate with its key as PEM, or ssl.key.password is wrong: "
    )


@pytest.mark.slow
def test_certificates_are_read_from_pem(authority: Authority) -> None:
    keys = str(authority.signed("client"))
    stores = {"ssl.truststore.type": "PEM", "ssl.keystore.type": "pem", "ssl.keystore.location": keys}
    tls = security_of({"security.protocol": "SSL", **stores, "ssl.truststore.location": str(authority.trusted)}).tls
    assert tls is not None
    assert tls.check_hostname
    assert len(tls.get_ca_certs()) == 1
    inline = {"ssl.truststore.certificates": authority.trusted.read_text()}
    unchecked = {"ssl.endpoint.identification.algorithm": "", "security.protocol": "ssl"}
    tls = security_of({**unchecked, **inline}).tls
    assert tls is not None
    assert not tls.check_hostname
    assert len(tls.get_ca_certs()) == 1
    assert security_of({"security.protocol": "SSL"}).tls is not None  # what the system trusts


def test_a_file_says_it_and_is_named_in_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    with pytest.raises(ValueError, match=f"cannot read {path}: No such file or directory"):
        read_command_config(path)
    path.write_text("security.protocol=SSL\nssl.ca.location=/nowhere/ca.pem\n")
    with pytest.raises(ValueError, match=r"cannot read /nowhere/ca.pem: No such file"):
        read_command_config(path)
    path.write_text("security.protocol=none\n")
    with pytest.raises(ValueError, match=rf"{path}: security.protocol is one of .*, not NONE"):
        read_command_config(path)
    path.write_text("client.id=x\n")
    assert read_command_config(path) == PLAINTEXT
