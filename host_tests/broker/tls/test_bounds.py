"""What a turn takes of records without plaintext, and what they count for."""

import contextlib
import socket
import ssl
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from slotmq.platform.tls_cpython import Pipe

from ...support.program import CONNECT, TIMEOUT_S
from ..wire import codec
from .client import Served
from .records import DATA, HANDSHAKE, Forger
from .test_turns import World, world  # noqa: F401 - a fixture

Serve = Callable[..., Served]
READ_MOST = 16384
RESTS_MOST = 1 << 18


def renegotiation(one: Forger) -> bytes:
    return one.record(HANDSHAKE, one.hello)


def test_it_is_no_activity(serve: Serve, certs: Path, tmp_path: Path) -> None:
    served = serve()
    one = Forger(served, certs, tmp_path, is_13=False)
    one.sock.sendall(one.record(DATA, codec.connect("idle", keep_alive=1)))
    one.sock.settimeout(0.1)
    deadline = time.monotonic() + TIMEOUT_S
    came = b"something"
    while came:
        assert time.monotonic() < deadline, "it stays connected"
        try:
            one.sock.sendall(renegotiation(one))
            came = one.sock.recv(1000)
        except TimeoutError:
            pass
        except ConnectionError:
            break
    served.log("timed out")
    one.close()


class Counted:
    """A socket, and how many bytes were read from it."""

    def __init__(self, sock: Any) -> None:
        self._sock = sock
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)

    def recv(self, n: int) -> bytes:
        data: bytes = self._sock.recv(n)
        self.count += len(data)
        return data


@pytest.mark.parametrize(("is_13", "each"), [(False, 0), (True, 0), (True, 100)])
def test_a_turn_reads_so_much_and_answers_do_not_pile_up(
    world: World,  # noqa: F811
    certs: Path,
    tmp_path: Path,
    is_13: bool,
    each: int,
) -> None:
    """each: before so many of them is a message that fills a read of the broker."""
    with world.turning() as served:
        one = Forger(served, certs, tmp_path, is_13=is_13)
        one.sock.sendall(one.record(DATA, CONNECT))
        one.sock.recv(1000)
    conns = world.broker.conns
    conn = next(conn for conn in range(conns.top) if conns.stream[conn])
    stream = conns.stream[conn]
    stream._sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    stream._sock = counted = Counted(stream._sock)
    made = Forger.key_update if is_13 else renegotiation
    full = codec.publish("t", bytes(world.broker.limits.rx_bytes - 6))
    assert len(full) == world.broker.limits.rx_bytes
    flood = b"".join(
        (one.record(DATA, full) if each and n % each == 0 else b"") + made(one)
        for n in range(20_000)
    )
    one.sock.settimeout(0)
    at = 0
    for _ in range(2000):
        with contextlib.suppress(OSError):
            at += one.sock.send(flood[at:])
        counted.count = 0
        world.turns(1)
        assert counted.count <= READ_MOST
        assert len(stream.waits) + stream._outgoing.pending < RESTS_MOST
        if not conns.stream[conn]:
            break
    assert not conns.stream[conn], "nobody reads the answers"
    one.close()


def test_a_bridge_reads_so_much() -> None:
    """The other broker sends without end, and nothing of it is plaintext."""
    pipe: Any = Pipe.__new__(Pipe)
    count = []

    def recv(n: int) -> bytes:
        count.append(n)
        return bytes(n)

    def read(*_: object) -> int:
        raise ssl.SSLWantReadError

    pipe._sock = type("Socket", (), {"recv": staticmethod(recv)})
    pipe._ssl = type("Ssl", (), {"read": staticmethod(read)})
    pipe._incoming, pipe._outgoing, pipe.waits = ssl.MemoryBIO(), ssl.MemoryBIO(), b""
    pipe.shaking = pipe.is_mute = False
    assert pipe.readinto(bytearray(100), 100) is None
    assert sum(count) <= READ_MOST
    pipe._sock = type("Socket", (), {"recv": staticmethod(recv), "send": lambda _: 0})
    pipe.waits = bytes(1 << 17)
    pipe._outgoing.write(bytes(100))
    with pytest.raises(OSError):
        pipe.readinto(bytearray(100), 100)
    assert "does not read" in pipe.error


def test_a_client_that_begins_again_is_served(served: Served, certs: Path, tmp_path: Path) -> None:
    """A refused renegotiation does not end its connection."""
    one = Forger(served, certs, tmp_path, is_13=False)
    one.sock.sendall(one.record(DATA, CONNECT) + renegotiation(one) + one.record(DATA, b"\xc0\0"))
    came = b""
    while came.count(b"\x17\3\3") < 2:  # CONNACK and PINGRESP
        came += one.sock.recv(1000) or b"the end"
        assert b"the end" not in came
    assert came.count(b"\x15\3\3") == 1, "an alert refuses"
    one.close()


def test_many_floods_take_turns(world: World, certs: Path, tmp_path: Path) -> None:  # noqa: F811
    """Of those whose input has no plaintext one is read in a turn, each as often as the others."""
    with world.turning() as served:
        many = [Forger(served, certs, tmp_path, is_13=True) for _ in range(6)]
    conns = world.broker.conns
    streams = [each for each in conns.stream if each]
    for stream in streams:
        stream._sock = Counted(stream._sock)
    for one in many:
        one.sock.sendall(b"".join(one.key_update() for _ in range(12_000)))
    world.turns(6 * len(many))
    times = []
    for _ in range(4 * len(many)):
        before = [stream._sock.count for stream in streams]
        world.turns(1)
        read = [stream._sock.count - old for stream, old in zip(streams, before, strict=True)]
        times.append([n for n, count in enumerate(read) if count])
        assert len(times[-1]) <= 1 and max(read) <= 4096
    counts = [sum(n in each for each in times) for n in range(len(streams))]
    assert max(counts) - min(counts) <= 1 and max(counts), counts
    for one in many:
        one.close()


def test_floods_with_a_byte_of_plaintext_take_turns_too(
    world: World,  # noqa: F811
    certs: Path,
    tmp_path: Path,
) -> None:
    """Eight strangers with a byte of CONNECT in 3 KB: a turn reads 64 KB of that, and one more."""
    with world.turning() as served:
        many = [Forger(served, certs, tmp_path, is_13=False) for _ in range(8)]
    streams = [each for each in world.broker.conns.stream if each]
    for one in many:
        hello = codec.connect("x" * 90)
        for k in range(60):
            first = one.record(DATA, hello[k : k + 1])
            rest = [renegotiation(one) for _ in range(3000 // len(one.hello))]
            one.sock.sendall(first + b"".join(rest))
    for stream in streams:
        stream._sock = Counted(stream._sock)
        stream.is_mute = False
    times = []
    for _ in range(6):
        before = [stream._sock.count for stream in streams]
        world.turns(1)
        read = [stream._sock.count - old for stream, old in zip(streams, before, strict=True)]
        assert sum(read) <= (1 << 16) + READ_MOST
        times.append({n for n, count in enumerate(read) if count})
    for now, then in pairwise(times):
        assert len(now) < len(streams) == len(now | then), "one waits longer than a turn"
    for one in many:
        one.close()
