"""`slotmq certs`, and the commands that connect over TLS."""

import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from slotmq import Broker
from slotmq_tools import passwd
from slotmq_tools.cli import main
from slotmq_tools.deploy import mqtt_client

from ...support.program import CONNACK, CONNECT, TIMEOUT_S, conf
from ..wire import codec
from .client import Served, context, lines_of, received
from .conftest import made, of_rsa

Serve = Callable[..., Served]


def slotmq(*arguments: object, piped: str | None = None) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments], input=piped)


class TestCerts:
    def test_a_second_run_keeps_the_ca_and_the_names(self, tmp_path: Path) -> None:
        folder = made(tmp_path / "c", "--name", "broker.local", "--name", "192.168.4.2")
        before = {file.name: file.read_bytes() for file in folder.iterdir()}
        assert set(before) == {"ca.crt", "ca.key", "server.crt", "server.key"}
        made(folder, "--client", "alice")
        for name, data in before.items():
            assert (folder / name).read_bytes() == data
        made(folder, "--name", "::2")
        assert (folder / "ca.crt").read_bytes() == before["ca.crt"]
        command = ["openssl", "x509", "-in", str(folder / "server.crt"), "-noout", "-text"]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for name in ("DNS:broker.local", "Address:192.168.4.2", "Address:0:0:0:0:0:0:0:2"):
            assert name in text
        command = ["openssl", "verify", "-x509_strict", "-CAfile", str(folder / "ca.crt")]
        command += [str(folder / f"{name}.crt") for name in ("server", "alice")]
        assert subprocess.run(command, capture_output=True, check=True).stdout.count(b"OK") == 2

    def test_only_the_owner_reads_keys(self, certs: Path) -> None:
        assert {file.stat().st_mode & 0o777 for file in certs.glob("*.key")} == {0o600}

    def test_it_says_what_comes_next(self, tmp_path: Path) -> None:
        folder = tmp_path / "c"
        assert f"certfile {folder}/server.crt" in slotmq("certs", folder).output
        assert "certfile" not in slotmq("certs", folder).output

    @pytest.mark.parametrize(
        ("options", "text"),
        [
            (["--client", "../x"], "'../x': expected letters"),
            (["--client", "server"], "'server': expected letters"),
            (["--name", "a b."], "'a b.': expected a host name or an address"),
            (["--client", "x" * 65], "expected a name of 1 to 64 characters"),
        ],
    )
    def test_what_it_refuses(self, options: list[str], text: str, tmp_path: Path) -> None:
        result = slotmq("certs", tmp_path, *options)
        assert (result.exit_code, text in result.output) == (1, True), result.output

    def test_half_a_ca_is_not_replaced(self, certs: Path, foreign: Path, tmp_path: Path) -> None:
        (tmp_path / "ca.crt").write_bytes((certs / "ca.crt").read_bytes())
        assert "its ca.key is not" in slotmq("certs", tmp_path).output
        (tmp_path / "ca.key").write_bytes((foreign / "ca.key").read_bytes())
        assert "ca.key is not the key of ca.crt" in slotmq("certs", tmp_path).output
        (tmp_path / "ca.key").write_text("no key")
        assert "its CA cannot be read" in slotmq("certs", tmp_path).output


class TestStatus:
    def test_it_speaks_tls_and_logs_in(self, serve: Serve, certs: Path, tmp_path: Path) -> None:
        passwd.put(tmp_path / "users", "alice", "pencil")
        served = serve(f"password_file {tmp_path / 'users'}", "allow_anonymous false")
        command = "status", f"localhost:{served.port}", "--cafile", certs / "ca.crt"
        login = *command, "--user", "alice", "--password-file"
        (tmp_path / "password").write_text("pencil\n")
        for more, piped in ((tmp_path / "password", None), ("-", "pencil\n")):
            result = slotmq(*login, more, piped=piped)
            assert result.exit_code == 0, result.output
            assert "$SYS/broker/version" in result.output
        assert "Not authorized" in slotmq(*command).output
        assert slotmq(*login, "-", piped="wrong").exit_code == 1
        assert "--password-file needs --user" in slotmq(*login[:4], *login[6:], "-").output

    def test_without_cafile_it_names_it(
        self, served: Served, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(mqtt_client.Client.wait, "__defaults__", (0.5,))
        result = slotmq("status", f"localhost:{served.port}")
        assert result.exit_code == 1
        assert "(it closes each connection, as over TLS without --cafile)" in result.output

    def test_whom_it_does_not_trust(self, served: Served, foreign: Path, tmp_path: Path) -> None:
        (tmp_path / "text").write_text("no certificate")
        for port, cafile, text in (
            (served.port, foreign / "ca.crt", "its certificate is not trusted: "),
            (served.plain_port, foreign / "ca.crt", f"no TLS at localhost:{served.plain_port} ("),
            (
                served.port,
                tmp_path / "text",
                f"{tmp_path}/text: expected certificates of CAs in PEM",
            ),
        ):
            result = slotmq("status", f"localhost:{port}", "--cafile", cafile)
            assert (result.exit_code, text in result.output) == (1, True), result.output


def test_harvest_speaks_tls_and_logs_in(serve: Serve, certs: Path, tmp_path: Path) -> None:
    passwd.put(tmp_path / "users", "alice", "pencil")
    (tmp_path / "ring").mkdir()
    users = f"password_file {tmp_path / 'users'}", "allow_anonymous false"
    ring = "record #", "record_flush_interval 1", f"record_location {tmp_path / 'ring'}"
    served = serve(*users, *ring, "remote_admin true")
    packet = codec.connect("c", username="alice", password=b"pencil")
    with served.client(context(certs), packet) as client:
        client.sendall(codec.publish("a", b"1", qos=1, packet_id=1))
        assert received(client, 4) == b"\x40\2\0\1"
    command = "harvest", tmp_path / "h", "--broker", f"localhost:{served.port}"
    over_tls = *command, "--cafile", certs / "ca.crt"
    result = slotmq(*over_tls, "--user", "alice", "--password-file", "-", piped="pencil")
    assert result.exit_code == 0, result.output
    assert list((tmp_path / "h/bundles").iterdir())


def refused_by_micropython(folder: Path, *lines: str) -> list[str]:
    """What a start with this listener says."""
    file = conf(folder, "listener 8883", *lines)
    command = [sys.executable, "-m", "slotmq_tools.cli", "run", "--runtime", "micropython"]
    done = subprocess.run(
        [*command, "-c", str(file)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 3
    return done.stderr.splitlines()


def test_what_micropython_refuses(certs: Path, foreign: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no certificate")
    of_rsa(tmp_path)
    own = f"certfile {certs}/server.crt"
    rsa = f"certfile {tmp_path}/server.crt"
    for pair in ((own, f"keyfile {foreign}/server.key"), (rsa, f"keyfile {certs}/server.key")):
        (line,) = refused_by_micropython(tmp_path, *pair)
        assert line.endswith(":3: keyfile: expected the key of the certificate in certfile")
    (line,) = refused_by_micropython(tmp_path, *lines_of(tmp_path), "ciphers HIGH")
    assert ":4: ciphers: " in line, "RSA's key is that of its certificate"
    for more, text in (
        ("use_subject_as_username true", "not served: with TLS this needs CPython"),
        ("ciphers HIGH", "expected names with colons between them, of ECDHE-ECDSA-"),
        ("tls_version tlsv1.3", "expected tlsv1.2"),
        (f"cafile {tmp_path}/text", "expected a certificate in PEM or DER (invalid cert)"),
        (f"keyfile {tmp_path}/text", "expected a private key in PEM or DER (invalid key)"),
        (f"certfile {tmp_path}/text", "expected a certificate in PEM or DER (invalid cert)"),
    ):
        key = more.split()[0]
        others = [line for line in lines_of(certs) if line.split()[0] != key]
        found = "\n".join(refused_by_micropython(tmp_path, *others, more))
        assert f":{2 + len(others)}: {key}: {text}" in found


def test_a_program_gives_its_own_context(certs: Path) -> None:
    """Also to a broker that runs already."""
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(certs / "server.crt", certs / "server.key")
    with Broker() as broker:
        thread = threading.Thread(target=broker.run)
        thread.start()
        address = broker.listen("127.0.0.1", 0, options={"tls": own})
        with context(certs).wrap_socket(
            socket.create_connection(address, TIMEOUT_S), server_hostname="localhost"
        ) as sock:
            sock.sendall(CONNECT)
            assert received(sock, 4) == CONNACK
        broker.stop()
        thread.join(TIMEOUT_S)
