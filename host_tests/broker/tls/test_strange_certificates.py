"""Certificates that a CA has signed and nobody expects: names that are no text, and any bytes.
Their clients are served or refused, and everybody else is served."""

import random
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ...support.program import CONNACK, CONNECT
from .client import Served, context, received

Serve = Callable[..., Served]
NAME = b"\x0c\x08nobodyXY"  # of the certificates before they are changed
HOST = b"hostXYZW"
REFUSED = bytes.fromhex("2002 0005")
# What becomes of its common name: the tag and eight bytes; whose it is. b"": nobody's
NAMES = {
    "text": (b"\x0c\x08wilhelm\x31", b"wilhelm1"),
    "text of IA5": (b"\x16\x08wilhelm\x32", b"wilhelm2"),
    "Latin-1": (b"\x14\x08J\xfcrgen\x31\x32", "Jürgen12".encode()),
    "two bytes each": (b"\x1e\x08\0J\0\xfc\0r\x20\xac", "Jür€".encode()),
    "four bytes each": (b"\x1c\x08\0\0\0J\0\1\xf6\x00", "J😀".encode()),
    "no UTF-8": (b"\x13\x08\xff\xfe\xc0\x80abcd", b""),
    "a zero": (b"\x0c\x08alice\0ab", b""),
    "bits": (b"\x03\x08\0alicexy", b""),
    "a sequence": (b"\x30\x08\x0c\x06alicex", b""),
}


class Authority:
    """Signs whatever it is given; the clients have alice's key."""

    def __init__(self, certs: Path, to: Path) -> None:
        self.certs, self.to, self.made = certs, to, 0
        key = serialization.load_pem_private_key((certs / "ca.key").read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        self.key = key
        was = x509.load_pem_x509_certificate((certs / "alice.crt").read_bytes())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "nobodyXY")])
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(was.issuer, name, was.public_key(), 1)
        builder = builder.not_valid_before(now - timedelta(1)).not_valid_after(now + timedelta(1))
        names: Any = [x509.DNSName(HOST.decode())]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        self.one = builder.sign(key, hashes.SHA256())

    def client(self, change: Callable[[bytes], bytes]) -> ssl.SSLContext | None:
        """A client with this certificate, its signed part changed; None: OpenSSL does not load
        it."""
        der = self.one.public_bytes(serialization.Encoding.DER)
        signed = self.one.tbs_certificate_bytes
        new = change(signed)
        signature = b"\0" + self.key.sign(new, ec.ECDSA(hashes.SHA256()))
        begin = der.index(signed) + len(signed)
        algorithm = der[begin : begin + 2 + der[begin + 1]]
        inner = new + algorithm + bytes((3, len(signature))) + signature
        self.made += 1
        path = self.to / f"{self.made}.pem"
        data = b"\x30\x82" + len(inner).to_bytes(2, "big") + inner
        path.write_text(ssl.DER_cert_to_PEM_cert(data))
        found = context(self.certs)
        try:
            found.load_cert_chain(path, self.certs / "alice.key")
        except ssl.SSLError:
            return None
        return found


@pytest.fixture
def authority(certs: Path, tmp_path: Path) -> Authority:
    return Authority(certs, tmp_path)


def comes(served: Served, with_: ssl.SSLContext) -> bytes:
    """What its CONNECT is answered; b"": the connection ends."""
    try:
        with with_.wrap_socket(served.connect(), server_hostname="localhost") as sock:
            sock.sendall(CONNECT)
            return received(sock, 4)
    except (ConnectionError, ssl.SSLError):
        return b""


def begun(serve: Serve, certs: Path, key: str, *more: str) -> Served:
    return serve(f"cafile {certs}/ca.crt", "require_certificate true", f"{key} true", *more)


def replaced(name: bytes, data: bytes) -> bytes:
    return data.replace(NAME, name)


def everybody_else_is_served(served: Served, certs: Path) -> None:
    with served.client(context(certs, "alice")):
        pass
    assert "a defect" not in served.run.everything()


def test_names_that_are_no_text_are_refused(
    serve: Serve, certs: Path, authority: Authority
) -> None:
    served = begun(serve, certs, "use_identity_as_username")
    for what, (name, user) in NAMES.items():
        client = authority.client(partial(replaced, name))
        assert client, what
        answer = comes(served, client)
        if user:
            assert answer == CONNACK, what
            served.log(f"u{user.decode()!r}", f"u{user.decode()!a}")
        else:
            assert answer in (REFUSED, b""), what
        everybody_else_is_served(served, certs)


def test_of_a_whole_subject(serve_on_cpython: Serve, certs: Path, authority: Authority) -> None:
    served = begun(serve_on_cpython, certs, "use_subject_as_username")
    for what, (name, user) in NAMES.items():
        client = authority.client(partial(replaced, name))
        assert client, what
        answer = comes(served, client)
        assert answer == CONNACK if user else answer in (CONNACK, REFUSED, b""), what
    client = authority.client(lambda data: data.replace(HOST, b"\xff\xfe\xc0\x80abcd"))
    assert client
    assert comes(served, client) == REFUSED
    everybody_else_is_served(served, certs)


@pytest.mark.parametrize("seed", range(2))
def test_any_bytes(seed: int, serve_on_cpython: Serve, certs: Path, authority: Authority) -> None:
    """Of a whole subject, which ssl decodes; most are refused by the library. (Of a common name:
    unit/platform/test_client_names.py.)"""
    served = begun(serve_on_cpython, certs, "use_subject_as_username")
    numbers = random.Random(seed)
    count = 0
    for _ in range(60):

        def change(data: bytes) -> bytes:
            made = bytearray(data)
            begin = data.index(NAME) - 2
            for _ in range(numbers.randint(1, 3)):
                at = begin + numbers.randrange(12)
                if not numbers.randrange(6):
                    at = numbers.randrange(len(data))
                made[at] = numbers.choice((0, 1, 0x1E, 0x30, 0x7F, 0x80, 0xFF, made[at] ^ 1))
            return bytes(made)

        client = authority.client(change)
        if client:
            count += 1
            assert comes(served, client) in (CONNACK, REFUSED, b"")
    assert count > 10
    everybody_else_is_served(served, certs)
