"""What passes over TLS, how much of it may wait, and what attackers send."""

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from ...support.program import CONNACK, CONNECT, TIMEOUT_S
from ..wire import codec
from .client import Peer, Served, context, ends, lines_of, received

Serve = Callable[..., Served]
PING, PONG = b"\xc0\0", b"\xd0\0"
HALF_OPEN = 200
ROUNDS = 300
TRIES = 5  # of which one must be quick: the machine may be busy


def percentile(seconds: list[float], part: float) -> float:
    return sorted(seconds)[int(len(seconds) * part)]


def finished(sock: socket.socket) -> bool:
    """Nothing more is sent: does the peer close the connection?"""
    with contextlib.suppress(OSError):  # it has been closed already
        sock.shutdown(socket.SHUT_WR)
    return ends(sock)


def rounds(sock: socket.socket, count: int) -> list[float]:
    """How long each PINGREQ waits for its PINGRESP."""
    found = []
    for _ in range(count):
        began = time.monotonic()
        sock.sendall(PING)
        assert received(sock, 2) == PONG
        found.append(time.monotonic() - began)
    return found


class TestInput:
    def test_what_openssl_has_is_handled_at_once(self, served: Served, certs: Path) -> None:
        """One record with more than a read takes, then many records in one segment."""
        acks = b"".join(b"\x40\2" + n.to_bytes(2) for n in range(1, 101))
        packets = [codec.publish("a", bytes(100), qos=1, packet_id=n) for n in range(1, 101)]
        with Peer(served, context(certs)) as peer:
            peer.shake_hands()
            peer.sock.sendall(peer.records(CONNECT))
            assert peer.received(4) == CONNACK
            for pieces in ([b"".join(packets)], packets):
                took = []
                for _ in range(TRIES):
                    began = time.monotonic()
                    peer.sock.sendall(peer.records(*pieces))
                    assert peer.received(len(acks)) == acks
                    took.append(time.monotonic() - began)
                assert min(took) < 0.24, "the loop has waited for an event"

    def test_connect_with_the_end_of_the_handshake(self, served: Served, certs: Path) -> None:
        took = []
        for _ in range(TRIES):
            with Peer(served, context(certs)) as peer:
                peer.sock.sendall(peer.flight())
                last = peer.flight()
                began = time.monotonic()
                peer.sock.sendall(last + peer.records(CONNECT, PING))
                assert peer.received(6) == CONNACK + PONG
                took.append(time.monotonic() - began)
        assert min(took) < 0.24

    def test_byte_by_byte(self, served: Served, certs: Path) -> None:
        with Peer(served, context(certs)) as peer:
            peer.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for part in (peer.flight, peer.flight, lambda: peer.records(CONNECT, PING)):
                for byte in part():
                    peer.sock.sendall(bytes([byte]))
            assert peer.received(6) == CONNACK + PONG


class TestOutput:
    def test_large_messages(self, serve: Serve, certs: Path) -> None:
        served = serve("limit max_packet 1048576", "limit message_bytes 8000000")
        payload = os.urandom(1_000_000)
        with served.client(context(certs)) as tls, served.plain() as plain:
            tls.sendall(codec.subscribe(1, ("to/tls", 1)))
            assert received(tls, 5) == b"\x90\3\0\1\1"
            plain.sendall(codec.subscribe(1, ("to/plain", 0)))
            assert received(plain, 5) == b"\x90\3\0\1\0"
            plain.sendall(codec.publish("to/tls", payload, qos=1, packet_id=1))
            wanted = codec.publish("to/tls", payload, qos=1, packet_id=1)
            got = received(tls, len(wanted))
            assert (got[0], got[-len(payload) :] == payload) == (0x32, True)
            tls.sendall(wanted := codec.publish("to/plain", payload))
            assert received(plain, len(wanted) + 4).replace(b"\x40\2\0\1", b"", 1) == wanted

    def test_a_slow_reader_keeps_the_limits(self, serve: Serve, certs: Path) -> None:
        served = serve("limit tx_bytes 65536", "limit connections 50", "limit sessions 100")
        process = psutil.Process(served.run.process.pid)
        payload = bytes(50_000)
        with (
            served.client(context(certs)) as slow,
            served.plain() as fast,
            served.plain() as other,
        ):
            slow.sendall(codec.subscribe(1, ("a", 0)))
            assert received(slow, 5) == b"\x90\3\0\1\0"
            packet = codec.publish("a", payload)
            fast.sendall(packet * 200)
            rounds(fast, 1)
            before = process.memory_info().rss
            for _ in range(10):
                fast.sendall(packet * 200)  # 100 MB
            rounds(fast, 1)
            assert process.memory_info().rss - before < 10 << 20
            assert percentile(rounds(other, 100), 0.5) < 0.5
            # What comes is whole packets, and it is alive afterwards.
            slow.settimeout(1)
            count = 0
            try:
                while received(slow, len(packet)) == packet:
                    count += 1
            except TimeoutError:
                pass
            assert 1 < count < 2000
            slow.settimeout(TIMEOUT_S)
            rounds(slow, 1)

    def test_the_end_is_said(self, serve_on_cpython: Serve, certs: Path) -> None:
        """After the last packet comes close_notify, not only the end of TCP."""
        served = serve_on_cpython()
        with_ = context(certs)
        with with_.wrap_socket(
            served.connect(), server_hostname="localhost", suppress_ragged_eofs=False
        ) as sock:
            sock.sendall(CONNECT.replace(b"MQTT\4", b"MQTT\x09"))
            assert received(sock, 4) == b"\x20\2\0\1"
            assert sock.recv(1) == b""


class TestAttacks:
    def test_handshakes_cut_after_each_byte(self, served: Served, certs: Path) -> None:
        with_ = context(certs)
        with Peer(served, with_) as peer:
            hello = peer.flight()
            peer.sock.sendall(hello)
            second = len(peer.flight())
        for cut in range(len(hello) + 1):
            with served.connect() as sock:
                sock.sendall(hello[:cut])
        for cut in range(second):
            with Peer(served, with_) as peer:
                peer.sock.sendall(peer.flight())
                peer.sock.sendall(peer.flight()[:cut])
        with served.client(with_) as client, served.plain() as plain:
            rounds(client, 1)
            rounds(plain, 1)
        assert "Traceback" not in served.run.everything()

    def test_damaged_handshakes(self, served: Served, certs: Path) -> None:
        with Peer(served, context(certs)) as peer:
            hello = peer.flight()
        for at in range(0, len(hello), 3):
            with served.connect() as sock:
                sock.sendall(hello[:at] + bytes([hello[at] ^ 255]) + hello[at + 1 :])
                assert finished(sock)
        with served.client(context(certs)) as client:
            rounds(client, 1)

    @pytest.mark.parametrize("attack", ["cut", "replayed", "changed", "plain"])
    def test_records_that_are_wrong(self, attack: str, served: Served, certs: Path) -> None:
        will = codec.connect("victim", will=codec.Will("gone", b"now"))
        with Peer(served, context(certs)) as peer, served.plain() as witness:
            witness.sendall(codec.subscribe(1, ("#", 0)))
            assert received(witness, 5) == b"\x90\3\0\1\0"
            peer.shake_hands()
            peer.sock.sendall(peer.records(will))
            assert peer.received(4) == CONNACK
            good = peer.records(codec.publish("a", b"once"))
            sent = {
                "cut": good[:-1],
                "replayed": good + good,
                "changed": good[:-1] + bytes([good[-1] ^ 1]),
                "plain": codec.publish("a", b"once"),
            }[attack]
            peer.sock.sendall(sent)
            assert finished(peer.sock)
            once = codec.publish("a", b"once") if attack == "replayed" else b""
            wanted = once + codec.publish("gone", b"now")
            assert received(witness, len(wanted)) == wanted

    def test_half_open_handshakes_do_not_delay_others(self, serve: Serve, certs: Path) -> None:
        served = serve("connect_timeout 60")
        with_ = context(certs)
        with served.client(with_) as canary, served.plain() as plain, ExitStack() as stack:
            peers = [stack.enter_context(Peer(served, with_)) for _ in range(HALF_OPEN)]
            hellos = [peer.flight() for peer in peers]
            for peer, hello in zip(peers, hellos, strict=True):
                peer.sock.sendall(hello[:-1])
            times = rounds(canary, ROUNDS) + rounds(plain, ROUNDS)
            assert percentile(times, 0.5) < 0.5
            # Now all of them cost the broker its part of a handshake at once.
            for peer, hello in zip(peers, hellos, strict=True):
                peer.sock.sendall(hello[-1:])
            times = rounds(canary, ROUNDS) + rounds(plain, ROUNDS)
            assert percentile(times, 0.5) < 0.5

    def test_handshakes_that_began_together(self, serve: Serve, certs: Path) -> None:
        served = serve()
        with_ = context(certs)
        with ExitStack() as stack:
            peers = [stack.enter_context(Peer(served, with_)) for _ in range(12)]
            for peer in peers:
                peer.shake_hands()
                peer.sock.sendall(peer.records(CONNECT))
                assert peer.received(4) == CONNACK

    def test_half_open_handshakes_end_by_connect_timeout(self, serve: Serve, certs: Path) -> None:
        served = serve("connect_timeout 1", "limit connections 20", "limit sessions 40")
        with_ = context(certs)
        with ExitStack() as stack:
            peers = [stack.enter_context(Peer(served, with_)) for _ in range(40)]
            for peer in peers:
                peer.sock.sendall(peer.flight()[:-1])
            with served.client(with_) as client:  # once the first of them have ended
                rounds(client, 1)


@pytest.mark.nightly
def test_in_the_heap_of_a_pico_w(certs: Path, tmp_path: Path) -> None:
    """One connection over TLS at a time, again and again, also wrong ones; each further one is
    refused and counted, and plain clients notice nothing. (What mbedTLS allocates is not in that
    heap on a computer; the start has reserved it.)"""
    more = "mqtt_versions 3", "limit message_bytes 4096", "limit tls_connections 1"
    served = Served(tmp_path / "pico", "micropython", lines_of(certs), more, "RPI_PICO_W")
    with_ = context(certs)
    with served.plain(codec.connect("stays")) as stays, served.plain() as plain:
        stays.sendall(codec.subscribe(1, ("a", 1)))
        assert received(stays, 5) == b"\x90\3\0\1\1"
        for n in range(30):
            with served.client(with_, codec.connect("comes")) as client:
                if n % 10 == 0:
                    with served.connect() as sock:
                        assert ends(sock)
                client.sendall(codec.publish("a", b"%03d" % n, qos=1, packet_id=1))
                assert received(client, 4) == b"\x40\2\0\1"
                client.sendall(b"\xe0\0")
                assert ends(client)
            got = received(stays, 10)
            assert got[-3:] == b"%03d" % n
            stays.sendall(b"\x40\2" + got[5:7])
            with served.connect() as sock:
                sock.sendall(CONNECT)  # without TLS
                assert ends(sock)
        rounds(plain, 3)
    served.log("Table connections: 1 refused or dropped (see connections, tls_connections).")
    assert "heap" not in served.run.errors.read_text()
    served.stop()


def test_certificates_changed_under_load(serve: Serve, certs: Path) -> None:
    served = serve()
    with_ = context(certs)
    count = 0
    failures: list[BaseException] = []
    over = threading.Event()

    def connect_again_and_again() -> None:
        nonlocal count
        try:
            while not over.is_set():
                with served.client(with_) as client:
                    rounds(client, 3)
                count += 1
        except (AssertionError, OSError) as error:
            failures.append(error)

    threads = [threading.Thread(target=connect_again_and_again) for _ in range(4)]
    with served.client(with_, codec.connect("stays")) as stays:
        for thread in threads:
            thread.start()
        for at in range(5):
            before = count
            served.run.process.send_signal(signal.SIGHUP)
            served.reloaded(at + 1)
            rounds(stays, 20)
            while count < before + 2 and not failures:
                rounds(stays, 1)
        over.set()
        for thread in threads:
            thread.join(TIMEOUT_S)
    assert failures == []
