"""A bridge over TLS: certificates on both sides, and what is wrong is refused."""

import contextlib
import getpass
import re
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from slotmq import Broker
from slotmq.bridge import link, probe
from slotmq_tools.ports import free_port

from ..tls.conftest import made, of_rsa
from ..wire.process import PEER, BrokerProcess
from .network import TIMEOUT_S
from .test_two_brokers import AGAIN, ID, Two


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("certs"), "--client", "edge")


class Secure(Two):
    """`there` has a listener with a certificate, which demands one."""

    def __init__(
        self, stack: contextlib.ExitStack, folder: Path, runtime: str, other: str, certs: Path
    ) -> None:
        super().__init__(stack, folder, runtime, "cpython")
        self.certs = certs
        self.port = free_port()
        lines = f"listener {self.port} 127.0.0.1", f"certfile {certs}/server.crt"
        more = f"keyfile {certs}/server.key", f"cafile {certs}/ca.crt", "require_certificate true"
        me = (f"user {getpass.getuser()}",) if other == PEER else ()  # it may read the key
        self.there = self.start(other, "\n".join((*lines, *more, *me, "")))

    def secure(self, *lines: str, ca: str = "ca.crt", certificate: bool = True) -> None:
        own = f"bridge_certfile {self.certs}/edge.crt", f"bridge_keyfile {self.certs}/edge.key"
        keys = (f"bridge_cafile {self.certs}/{ca}", *(own if certificate else ()), *lines)
        text = f"log_type all\nconnection up\naddress 127.0.0.1:{self.port}\n{ID}{AGAIN}"
        self.here = self.start(self._runtime, text + "\n".join((*keys, "")))


@pytest.fixture
def bridged(tmp_path: Path, runtime: str, certs: Path) -> Iterator[Callable[[str], Secure]]:
    with contextlib.ExitStack() as stack:
        yield lambda other: Secure(stack, tmp_path, runtime, other, certs)


@pytest.mark.parametrize("other", [PEER, "cpython"])
@pytest.mark.parametrize("prefix", ["", pytest.param(' "" far/', marks=pytest.mark.nightly)])
def test_messages_pass_both_ways(
    bridged: Callable[[str], Secure], other: str, prefix: str
) -> None:
    two = bridged(other)
    two.secure(f"topic q/# both 2{prefix}", "bridge_tls_version tlsv1.2")
    two.wait_up()
    payloads = [b"%03d" % k + b"x" * (30000 if k % 7 == 0 else 10) for k in range(24)]
    two.pass_both_ways(payloads, "far/" if prefix else "")


def test_a_burst_at_qos_0(bridged: Callable[[str], Secure]) -> None:
    """More than one record holds leaves in one turn, as long as the socket takes it."""
    two = bridged("cpython")
    two.secure("topic # out 0")
    two.wait_up()
    there = two.collector(two.there, "burst")
    wanted = [b"%03d" % k + bytes(3000) for k in range(60)]
    publisher = two.publisher(two.here)
    publisher.send(b"".join(publisher.codec.publish("burst", payload) for payload in wanted))
    publisher.ping()
    there.wait_for(lambda c: len(c.came.get("burst", ())) == len(wanted), "all of them")
    assert there.came["burst"] == wanted


def test_a_certificate_of_another_ca_and_a_missing_one_are_refused(
    bridged: Callable[[str], Secure], certs: Path, tmp_path: Path
) -> None:
    two = bridged("cpython")
    other = made(tmp_path / "other")
    (certs / "other.crt").write_bytes((other / "ca.crt").read_bytes())
    two.secure("topic a", ca="other.crt")
    two.here.wait_for(lambda: "TLS: " in two.here.complaints(), "its refusal")
    client = two.collector(two.there, "#")
    two.here.stop()
    two.secure("topic a", certificate=False)
    two.publisher(two.here).publish("a", b"never", 0)
    two.here.wait_for(lambda: "TLS: " in two.here.complaints(), "the other one's")
    client.collect()
    assert client.came == {}


class Server:
    """A TLS server of Python's ssl, which answers CONNECT and notes what was agreed upon."""

    def __init__(self, folder: Path, *alpn: str, port: int = 0) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(folder / "server.crt", folder / "server.key")
        self.context.set_alpn_protocols(alpn)
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self.came: list[tuple[str | None, str | None, str]] = []  # version, ALPN, cipher
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        open_ones = []
        with contextlib.suppress(OSError):  # it is closed at the end
            while True:
                sock, _ = self._listener.accept()
                with contextlib.suppress(OSError):  # of the handshake
                    pipe = self.context.wrap_socket(sock, server_side=True)
                    open_ones.append(pipe)
                    if pipe.recv(1000)[:1] == b"\x10":
                        cipher = pipe.cipher()
                        agreed = pipe.version(), pipe.selected_alpn_protocol()
                        self.came.append((*agreed, cipher[0] if cipher else ""))
                        pipe.sendall(b"\x20\x02\0\0")

    def close(self) -> None:
        self._listener.close()


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates, with the CA in a folder for capath; `another` has that of another name."""
    folder = made(tmp_path_factory.mktemp("elsewhere"))
    command = ["openssl", "x509", "-hash", "-noout", "-in", str(folder / "ca.crt")]
    number = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    for name in ("rehashed", "another"):
        (folder / name).mkdir()
    of_rsa(folder / "another")  # of localhost, and not of its address
    (folder / "rehashed" / f"{number}.0").write_bytes((folder / "ca.crt").read_bytes())
    return folder


ANY = "bridge_insecure true"
AGREED = {  # lines, and what must be agreed upon
    "cafile": (("bridge_cafile {}/ca.crt", ANY), ("TLSv1.3", None, "")),
    "capath": (("bridge_capath {}/rehashed", ANY), ("TLSv1.3", None, "")),
    "os certs": (("bridge_tls_use_os_certs true", ANY), ("TLSv1.3", None, "")),
    "insecure": (("bridge_cafile {}/another/server.crt", ANY), ("TLSv1.3", None, "")),
    "alpn": (("bridge_cafile {}/ca.crt", ANY, "bridge_alpn mqtt"), ("TLSv1.3", "mqtt", "")),
    "ciphers": (
        ("bridge_cafile {}/ca.crt", ANY, "bridge_ciphers ECDHE+AES256+AESGCM"),
        ("TLSv1.2", None, "AES256-GCM-SHA384"),
    ),
    "1.3": (("bridge_cafile {}/ca.crt", ANY, "bridge_tls_version tlsv1.3"), ("TLSv1.3", None, "")),
}
REFUSED = {  # lines, and what the log says
    "another name": (("bridge_cafile {}/another/server.crt",), "ip address mismatch"),
    "1.2 at most": (("bridge_cafile {}/ca.crt", ANY, "bridge_tls_version tlsv1.3"), "version"),
}


def of_case(case: str) -> str:
    """Where the server's certificate is."""
    return "another" if case in ("another name", "insecure") else ""


def start(
    stack: contextlib.ExitStack, lines: tuple[str, ...], certs: Path, server: Server, folder: Path
) -> BrokerProcess:
    stack.callback(server.close)
    keys = "\n".join(line.format(certs) for line in lines)
    text = f"connection up\naddress 127.0.0.1:{server.port}\ntopic a\n{ID}{AGAIN}{keys}\n"
    broker = BrokerProcess("cpython", f"log_type all\n{text}", folder)
    stack.callback(broker.stop)
    return broker


RENEGOTIATION = 0xFF  # no cipher (RFC 5746)
GOOD = re.compile(r"(TLS_|ECDHE-|DHE-)(?!.*(CCM8|CAMELLIA|ARIA|PSK)).*(?<!-SHA)$")


def test_a_bridge_offers_no_weak_cipher(runtime: str, elsewhere: Path, tmp_path: Path) -> None:
    """As its own listeners: short tags, old ciphers, SHA-1, no forward secrecy."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        listener.settimeout(TIMEOUT_S)
        address = f"address 127.0.0.1:{listener.getsockname()[1]}"
        text = f"connection up\n{address}\ntopic a\n{ID}{AGAIN}"
        here = BrokerProcess(runtime, f"{text}bridge_cafile {elsewhere}/ca.crt\n", tmp_path)
        stack.callback(here.stop)
        hello = stack.enter_context(listener.accept()[0]).recv(16384)
    at = 9 + 2 + 32  # behind the heads of record and message, version and random
    at += 1 + hello[at]
    end = at + 2 + int.from_bytes(hello[at : at + 2])
    offered = {int.from_bytes(hello[k : k + 2]) for k in range(at + 2, end, 2)}
    every = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    every.set_ciphers("ALL:COMPLEMENTOFALL:@SECLEVEL=0")
    names = {int(each["id"]) & 0xFFFF: str(each["name"]) for each in every.get_ciphers()}
    names[0x1304] = "TLS_AES_128_CCM_SHA256"  # which OpenSSL has, but not by default
    found = [names.get(number, hex(number)) for number in offered - {RENEGOTIATION}]
    assert "ECDHE-ECDSA-AES128-GCM-SHA256" in found
    assert [name for name in found if not GOOD.match(name)] == []


@pytest.mark.parametrize("case", AGREED)
def test_each_key_of_tls(
    case: str, elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, wanted = AGREED[case]
    monkeypatch.setenv(
        "SSL_CERT_FILE", str(elsewhere / "ca.crt")
    )  # the certificates of the system
    with contextlib.ExitStack() as stack:
        server = Server(elsewhere / of_case(case), "other", "mqtt")
        if wanted[0] == "TLSv1.2":
            server.context.maximum_version = ssl.TLSVersion.TLSv1_2
        here = start(stack, lines, elsewhere, server, tmp_path)
        here.wait_for(lambda: server.came, "CONNECT")
        version, alpn, cipher = server.came[0]
        assert (version, alpn) == wanted[:2]
        assert cipher.endswith(wanted[2])


@pytest.mark.parametrize("case", REFUSED)
def test_what_tls_does_not_trust_gets_no_connect(
    case: str, elsewhere: Path, tmp_path: Path
) -> None:
    lines, text = REFUSED[case]
    with contextlib.ExitStack() as stack:
        server = Server(elsewhere / of_case(case))
        if case == "1.2 at most":
            server.context.maximum_version = ssl.TLSVersion.TLSv1_2
        here = start(stack, lines, elsewhere, server, tmp_path)
        here.wait_for(lambda: "TLS: " in here.complaints(), "the reason")
        assert text in here.complaints()
        assert server.came == []


def test_the_first_address_is_taken_again_only_when_it_answers_over_tls(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A probe shakes hands as the bridge does, so the password never leaves in plain."""
    monkeypatch.setattr(link, "_PROBED", 3)
    monkeypatch.setattr(probe, "_EVERY", 3)
    broker, port = Broker(), free_port()
    with contextlib.ExitStack() as stack:
        second = Server(elsewhere)
        stack.callback(second.close)
        stack.callback(broker.close)
        addresses = [f"127.0.0.1:{port}", f"127.0.0.1:{second.port}"]
        tls = {"bridge_cafile": str(elsewhere / "ca.crt"), "bridge_insecure": True}
        login = {"remote_username": "u", "remote_password": "secret"}
        one = broker.bridge("up", addresses, [("a",)], restart_timeout=1, **tls, **login)

        def turn_until(condition: Callable[[], object]) -> None:
            deadline = time.monotonic() + TIMEOUT_S
            while not condition():
                assert time.monotonic() < deadline
                broker.loop.turn(10)

        turn_until(lambda: one.text() == "up")
        with socket.create_server(("127.0.0.1", port)) as proxy:  # its broker is away
            proxy.setblocking(False)
            for _ in range(3):
                came: list[socket.socket] = []
                turn_until(partial(accepts, proxy, came))
                turn_until(partial(has_come, came[0], b"\x16\x03"))  # a handshake, no CONNECT
                came[0].close()
            assert (one.losses, len(second.came)) == (0, 1)
        first = Server(elsewhere, port=port)
        stack.callback(first.close)
        turn_until(lambda: len(first.came) == 2 and one.text() == "up")
        assert (len(first.came), len(second.came)) == (2, 1)


def accepts(proxy: socket.socket, came: list[socket.socket]) -> bool:
    with contextlib.suppress(BlockingIOError):
        came.append(proxy.accept()[0])
    return bool(came)


def has_come(sock: socket.socket, begin: bytes) -> bool:
    sock.settimeout(0)
    with contextlib.suppress(BlockingIOError):
        assert sock.recv(1000).startswith(begin)
        return True
    return False
