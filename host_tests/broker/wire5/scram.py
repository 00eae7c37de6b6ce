"""The client's side of SCRAM-SHA-256, written from RFC 5802 and RFC 7677, and clients with it."""

import base64
import hashlib
import hmac
import itertools
from pathlib import Path
from typing import Any

import pytest

from . import codec
from .client import Client
from .codec import CONTINUE, Connack
from .scene import Scene

METHOD = "SCRAM-SHA-256"
USERS = Path(__file__).with_name("users.txt")
SCRAM = [
    pytest.mark.config(f"password_file {USERS}\nallow_anonymous false\nlogin_delay_max 0"),
    pytest.mark.ours("mosquitto has plugins for that"),
]
_nonces = itertools.count(1)


class Exchange:
    """One login: the first message, the answer to the challenge, the check of the end."""

    def __init__(self, name: str = "user", password: str = "pencil") -> None:
        self._password = password.encode()
        self._nonce = f"rOprNGfwEbeRWgbN{next(_nonces)}".encode()
        self._bare = b"n=" + name.replace("=", "=3D").replace(",", "=2C").encode()
        self._bare += b",r=" + self._nonce
        self._signature = b""

    def first(self) -> bytes:
        return b"n,," + self._bare

    def final(self, challenge: bytes) -> bytes:
        fields = dict(part.split(b"=", 1) for part in challenge.split(b","))
        assert fields[b"r"].startswith(self._nonce), "another's nonce"
        assert len(fields[b"r"]) > len(self._nonce), "no nonce of the server"
        salt, count = base64.b64decode(fields[b"s"]), int(fields[b"i"])
        assert count >= 4096
        salted = hashlib.pbkdf2_hmac("sha256", self._password, salt, count)
        key = hmac.digest(salted, b"Client Key", "sha256")
        without_proof = b"c=biws,r=" + fields[b"r"]
        signed = self._bare + b"," + challenge + b"," + without_proof
        mask = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
        proof = bytes(a ^ b for a, b in zip(key, mask, strict=True))
        self._signature = hmac.digest(
            hmac.digest(salted, b"Server Key", "sha256"), signed, "sha256"
        )
        return without_proof + b",p=" + base64.b64encode(proof)

    def check(self, end: bytes) -> None:
        """The server has proved that it has the password."""
        assert end == b"v=" + base64.b64encode(self._signature), end


def begin(
    mqtt5: Scene, name: str = "", exchange: Exchange | None = None, **options: Any
) -> tuple[Client, Exchange, bytes]:
    """A client that has got its challenge, and its proof for that."""
    exchange = exchange or Exchange()
    client = mqtt5.socket()
    client.terms = options
    client.send(mqtt5.packet(name, auth_method=METHOD, auth_data=exchange.first(), **options))
    challenge = client.expect_auth(CONTINUE)
    assert challenge.properties["auth_method"] == METHOD
    data = challenge.properties["auth_data"]
    assert isinstance(data, bytes)
    return client, exchange, exchange.final(data)


def answer(client: Client, data: bytes, code: int = CONTINUE, **more: Any) -> None:
    client.send(codec.auth(code, auth_method=METHOD, auth_data=data, **more))


def login(mqtt5: Scene, name: str = "", **options: Any) -> Client:
    """A client that has logged in with the password."""
    client, exchange, proof = begin(mqtt5, name, **options)
    answer(client, proof)
    connack = client.next()
    assert connack == Connack(connack.session_present, 0), connack
    assert connack.properties["auth_method"] == METHOD
    data = connack.properties["auth_data"]
    assert isinstance(data, bytes)
    exchange.check(data)
    client.connack = connack
    return client
