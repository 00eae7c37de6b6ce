"""Floods of records that carry nothing: nobody else waits for the client that sends them."""

import contextlib
import time
from collections.abc import Callable, Iterator
from itertools import repeat
from pathlib import Path

import pytest

from slotmq_dev.fuzz.canary import Canary

from ...support.program import CONNECT
from ..wire.codec import publish, subscribe
from .client import Served, context, received
from .records import ALERT, DATA, HANDSHAKE, Forger
from .test_traffic import PING, PONG

Serve = Callable[..., Served]
FLOOD_S = 6.0
MOST_S = 4.0  # that a message of the canary may take on a busy machine
_RECORDS = 64  # in one write
_WARNING = b"\1\x5a"  # user_canceled
_PLAIN_ALERT = b"\x15\3\3\0\2" + _WARNING

# Which version, and what one write has
FLOODS: dict[str, tuple[bool, Callable[[Forger], bytes]]] = {
    "renegotiations": (False, lambda one: one.record(HANDSHAKE, one.hello)),
    "warnings": (False, lambda one: one.record(ALERT, _WARNING)),
    "empty records": (False, lambda one: one.record(DATA, b"")),
    "key updates": (True, lambda one: one.key_update()),
    "warnings of 1.3": (True, lambda one: one.record(ALERT, _WARNING)),
    "empty records of 1.3": (True, lambda one: one.record(DATA, b"")),
    "pings": (False, lambda one: one.record(DATA, PING * 100)),
}


def flood(sock_sends: Callable[[bytes], object], pieces: Iterator[bytes]) -> int:
    """Send them until the peer ends the connection, or does not read, or the time is over.

    -> bytes that were taken"""
    sent = 0
    end = time.monotonic() + FLOOD_S
    with contextlib.suppress(OSError):
        for piece in pieces:
            if time.monotonic() > end:
                break
            sock_sends(piece)
            sent += len(piece)
    return sent


@pytest.fixture
def one(serve: Serve) -> Served:
    return serve()


@pytest.mark.parametrize("name", FLOODS)
def test_nobody_waits_for_a_flood(one: Served, certs: Path, tmp_path: Path, name: str) -> None:
    is_13, made = FLOODS[name]
    forger = Forger(one, certs, tmp_path, is_13=is_13)
    canary = Canary(("127.0.0.1", one.plain_port))
    forger.sock.settimeout(2)
    pieces = iter(lambda: b"".join(made(forger) for _ in range(_RECORDS)), b"")
    sent = flood(forger.sock.sendall, pieces)
    forger.close()
    canary.land(MOST_S)
    assert sent > 0
    with one.client(context(certs)) as after:
        after.sendall(PING)
        assert after.recv(2) == PONG


def test_nobody_waits_for_alerts_before_the_handshake(one: Served, certs: Path) -> None:
    canary = Canary(("127.0.0.1", one.plain_port))
    with one.connect() as sock:
        sock.settimeout(2)
        flood(sock.sendall, repeat(_PLAIN_ALERT * _RECORDS))
    canary.land(MOST_S)
    one.client(context(certs)).close()


def test_forged_records_are_taken(one: Served, certs: Path, tmp_path: Path, runtime: str) -> None:
    """What is flooded with is right: MQTT in such records arrives, also behind new keys."""
    message = publish("x", b"forged")
    with one.plain() as reader:
        reader.sendall(subscribe(1, ("x", 0)))
        assert received(reader, 5) == b"\x90\3\0\1\0"
        for is_13 in (False, True):
            forger = Forger(one, certs, tmp_path, is_13=is_13)
            forger.sock.sendall(forger.record(DATA, CONNECT))
            if is_13 and runtime == "cpython":  # mbedTLS has no KeyUpdate, and ends the connection
                forger.sock.sendall(forger.key_update())
            forger.sock.sendall(forger.record(DATA, message))
            assert received(reader, len(message)) == message
            forger.close()
            (tmp_path / "keys").unlink()
