"""A client that makes its records itself: of any kind, and as many as it likes.

OpenSSL shakes hands; its key log has the secrets, from which the keys of the client's records are
derived here (RFC 5246, 6.3; RFC 8446, 7). Ciphers are AES with GCM.
"""

import hashlib
import hmac
import socket
import ssl
import struct
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from .client import context

ALERT, HANDSHAKE, DATA = 21, 22, 23
_RANDOM = slice(11, 43)  # of a Hello, in the record that begins with it
_PIECE = 65536
_LEGACY = b"\3\3"


class Forger:
    """A connection after its handshake. `hello`: the handshake message that began it."""

    def __init__(self, served: Any, certs: Path, folder: Path, *, is_13: bool) -> None:
        self._is_13 = is_13
        log = folder / "keys"
        with_ = context(certs)
        with_.keylog_filename = str(log)
        version = ssl.TLSVersion.TLSv1_3 if is_13 else ssl.TLSVersion.TLSv1_2
        with_.minimum_version = with_.maximum_version = version
        with_.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
        self.sock = served.connect()
        sent, came, name = self._shake_hands(with_)
        self.hello = sent[5 : 5 + int.from_bytes(sent[3:5])]
        secrets = dict(
            line.split()[::2] for line in log.read_text().splitlines() if line[0] != "#"
        )
        if is_13:
            self._hash = "sha384" if "SHA384" in name else "sha256"
            self._secret = bytes.fromhex(secrets["CLIENT_TRAFFIC_SECRET_0"])
            self._take_keys_13()
        else:
            master = bytes.fromhex(secrets["CLIENT_RANDOM"])
            seed = b"key expansion" + came[_RANDOM] + sent[_RANDOM]
            block = _expanded_12(master, seed, 40)
            self._key, self._iv = AESGCM(block[:16]), block[32:36]
            self._number = 1  # OpenSSL's Finished was the first one

    def _shake_hands(self, with_: ssl.SSLContext) -> tuple[bytes, bytes, str]:
        ins, outs = ssl.MemoryBIO(), ssl.MemoryBIO()
        inner = with_.wrap_bio(ins, outs, server_hostname="localhost")
        sent = came = b""
        while True:
            try:
                inner.do_handshake()
                is_done = True
            except ssl.SSLWantReadError:
                is_done = False
            data = outs.read()
            sent += data
            self.sock.sendall(data)
            if is_done:
                cipher = inner.cipher()
                assert cipher
                return sent, came, cipher[0]
            data = self.sock.recv(_PIECE)
            assert data, "the handshake has failed"
            came += data
            ins.write(data)

    def record(self, kind: int, data: bytes) -> bytes:
        """The next record."""
        if self._is_13:
            data += bytes([kind])
            head = bytes([DATA]) + _LEGACY + struct.pack(">H", len(data) + 16)
            number = self._number.to_bytes(12)
            nonce = bytes(a ^ b for a, b in zip(self._iv, number, strict=True))
            self._number += 1
            return head + self._key.encrypt(nonce, data, head)
        number = self._number.to_bytes(8)
        self._number += 1
        covered = number + bytes([kind]) + _LEGACY + struct.pack(">H", len(data))
        sealed = number + self._key.encrypt(self._iv + number, data, covered)
        return bytes([kind]) + _LEGACY + struct.pack(">H", len(sealed)) + sealed

    def key_update(self) -> bytes:
        """A record that asks for new keys of the server; the client's are new after it."""
        found = self.record(HANDSHAKE, b"\x18\0\0\1\1")
        self._secret = self._expanded_13("traffic upd", len(self._secret))
        self._take_keys_13()
        return found

    def _take_keys_13(self) -> None:
        size = 32 if self._hash == "sha384" else 16
        self._key, self._iv = AESGCM(self._expanded_13("key", size)), self._expanded_13("iv", 12)
        self._number = 0

    def _expanded_13(self, label: str, size: int) -> bytes:
        name = b"tls13 " + label.encode()
        info = struct.pack(">HB", size, len(name)) + name + b"\0"
        return hmac.digest(self._secret, info + b"\1", self._hash)[:size]

    def close(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


def _expanded_12(secret: bytes, seed: bytes, size: int) -> bytes:
    found, each = b"", seed
    while len(found) < size:
        each = hmac.digest(secret, each, hashlib.sha256)
        found += hmac.digest(secret, each + seed, hashlib.sha256)
    return found[:size]
