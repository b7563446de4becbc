"""What the mechanisms of SASL send, and what they do not accept."""

from pathlib import Path

import pytest

from groupcoord.client.sasl import SaslError, SaslLogin, scram

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = f"r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
# The example of RFC 7677.


def test_scram_is_that_of_the_rfc() -> None:
    messages = scram("sha256", "user", "pencil", NONCE)
    assert next(messages) == f"n,,n=user,r={NONCE}".encode()
    final = f"c=biws,r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert messages.send(SERVER_FIRST.encode()) == final.encode()
    with pytest.raises(StopIteration):
        messages.send(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def test_a_broker_that_does_not_know_the_password_is_not_believed() -> None:
    messages = scram("sha256", "user", "pencil", NONCE)
    next(messages)
    messages.send(SERVER_FIRST.encode())
    with pytest.raises(SaslError, match="the broker does not know the password itself"):
        messages.send(b"v=AAAA")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"what?", "'what\\?' is not a message of SCRAM"),
        (SERVER_FIRST.replace("W22", "?").encode(), "is not a message of SCRAM"),
        (SERVER_FIRST.replace("4096", "many").encode(), "is not a message of SCRAM"),
        (SERVER_FIRST.replace("4096", "1000001").encode(), "or not 1 to 1,000,000 iterations"),
        (SERVER_FIRST.replace(NONCE, "other").encode(), "has another nonce"),
    ],
)
def test_what_is_no_answer_of_scram_is_told(answer: bytes, problem: str) -> None:
    messages = scram("sha256", "user", "pencil", NONCE)
    next(messages)
    with pytest.raises(SaslError, match=problem):
        messages.send(answer)


def test_a_name_may_have_the_signs_of_scram_in_it() -> None:
    login = SaslLogin(mechanism="SCRAM-SHA-512", username="al=ice,", password="p")
    assert next(login.messages()).startswith(b"n,,n=al=3Dice=2C,r=")
    assert next(login.messages()) != next(login.messages())  # a nonce is used once


def test_plain_is_one_message_and_the_password_is_not_shown() -> None:
    login = SaslLogin(mechanism="PLAIN", username="alice", password="secret")
    messages = login.messages()
    assert next(messages) == b"\0alice\0secret"
    assert next(messages, None) is None
    assert repr(login) == "<SaslLogin user alice by PLAIN>"


def test_a_token_is_read_from_its_file_at_each_login(tmp_path: Path) -> None:
    token = tmp_path / "token"
    login = SaslLogin(mechanism="OAUTHBEARER", token_file=token)
    with pytest.raises(SaslError, match="it cannot be read: No such file or directory"):
        login.messages()
    token.write_text("one\n")
    assert next(login.messages()) == b"n,,\x01auth=Bearer one\x01\x01"
    token.write_text("two")
    messages = login.messages()
    assert next(messages) == b"n,,\x01auth=Bearer two\x01\x01"
    with pytest.raises(StopIteration):
        messages.send(b"")


def test_a_refused_token_is_answered_before_it_is_told(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one")
    messages = SaslLogin(mechanism="OAUTHBEARER", token_file=token).messages()
    next(messages)
    assert messages.send(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(SaslError, match="invalid_token"):
        messages.send(b"")
