"""TLS on the emulated RP2040, whose image has mbedTLS: deployed with its certificate, over PPP."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from host_tests.broker.tls.client import context, ends, received
from host_tests.broker.wire import codec
from slotmq_tools.cli import main

from .conftest import ANSWER_S, PORT, Deployed

pytestmark = pytest.mark.timeout(600)
CONF = f"""\
listener {PORT}
certfile certs/server.crt
keyfile certs/server.key
allow_anonymous true
mqtt_versions 3
limit message_bytes 4096
limit tls_connections 1
"""
CONNACK = b"\x20\2\0\0"


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls") / "certs"
    assert CliRunner().invoke(main, ["certs", str(folder)]).exit_code == 0
    return folder


@contextmanager
def client(board: Deployed, with_: ssl.SSLContext, name: str) -> Iterator[ssl.SSLSocket]:
    plain = socket.create_connection(board.address, ANSWER_S)
    with with_.wrap_socket(plain, server_hostname="localhost") as sock:
        sock.sendall(codec.connect(name))
        assert received(sock, 4) == CONNACK
        yield sock


def test_it_serves_one_and_refuses_others(board: Deployed, certs: Path) -> None:
    (board.folder / "certs").symlink_to(certs)
    said = board.deploy(CONF, "--cafile", certs / "ca.crt")
    assert "a message came back in" in said
    with_ = context(certs)
    for n in range(3):
        with client(board, with_, f"c{n}") as sock:
            sock.sendall(codec.subscribe(1, ("a", 1)))
            assert received(sock, 5) == b"\x90\3\0\1\1"
            with socket.create_connection(board.address, ANSWER_S) as other:
                assert ends(other)
            packet = codec.publish("a", bytes(300), qos=1, packet_id=1)
            sock.sendall(packet)
            got = received(sock, len(packet) + 4)
            assert b"\x40\2\0\1" in got and bytes(300) in got
            sock.sendall(b"\xe0\0")
            assert ends(sock)
