"""Who may connect to a listener with a certificate, and as which user; files that are wrong."""

import signal
import ssl
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from slotmq_dev.peers import mosquitto
from slotmq_tools import passwd
from slotmq_tools.config.check import check

from ...support.program import CONNECT, TIMEOUT_S, conf
from ..wire import codec
from .client import Served, context, ends, lines_of, received
from .conftest import made, of_rsa

Serve = Callable[..., Served]
OPENSSL = ["openssl", "s_client", "-brief", "-connect"]
REFUSED = bytes.fromhex("2002 0005")
WEAK = {
    "ECDSA": "ECDHE-ECDSA-AES128-CCM8 ECDHE-ECDSA-CAMELLIA128-SHA256 ECDHE-ECDSA-AES128-SHA "
    "ECDHE-ECDSA-ARIA128-GCM-SHA256",
    "RSA": "DHE-RSA-AES256-CCM8 ECDHE-RSA-CAMELLIA256-SHA384 ECDHE-RSA-AES256-SHA "
    "DHE-RSA-AES128-SHA DHE-RSA-CAMELLIA128-SHA ECDHE-ARIA256-GCM-SHA384 AES128-GCM-SHA256 "
    "AES256-CCM AES256-CCM8 AES128-SHA256 AES256-SHA CAMELLIA256-SHA ARIA128-GCM-SHA256",
}


def handshake(served: Served, *options: str) -> tuple[int, str]:
    """Status and output of openssl s_client."""
    command = [*OPENSSL, f"127.0.0.1:{served.port}", *options]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


class TestHandshake:
    def test_versions_and_ciphers(self, serve: Serve, certs: Path) -> None:
        served = serve("ciphers ECDHE-ECDSA-AES128-GCM-SHA256")
        trusts = "-CAfile", f"{certs}/ca.crt", "-verify_return_error"
        # With MicroPython `ciphers` names those of TLS 1.3, too.
        newest = ["-tls1_3"] if served.runtime == "cpython" else []
        for version in ("-tls1_2", *newest):
            status, text = handshake(served, version, *trusts)
            assert (status, "Verification: OK" in text) == (0, True), text
        assert "AES128-GCM" in handshake(served, "-tls1_2", *trusts)[1]
        for wrong in (
            ("-tls1_1", "-cipher", "ALL:@SECLEVEL=0"),
            ("-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ):
            assert handshake(served, *wrong)[0] != 0, wrong
        served.log("TLS: unsupported protocol", "Handshake protocol not within min/max boundaries")
        served.log("TLS: no shared cipher", "TLS: SSL - The handshake negotiation failed")

    @pytest.mark.parametrize("key", ["ECDSA", "RSA"])
    def test_weak_ciphers_of_tls_1_2(
        self, runtime: str, key: str, certs: Path, tmp_path: Path
    ) -> None:
        """Short tags, old ciphers, SHA-1, and a key that would open all that was recorded."""
        folder = certs
        if key == "RSA":
            folder = tmp_path / "rsa"
            folder.mkdir()
            of_rsa(folder)
        served = Served(tmp_path / "served", runtime, lines_of(folder), ())
        good = f"ECDHE-{key}-AES128-GCM-SHA256"
        found = [
            name
            for name in (*WEAK[key].split(), good)
            if handshake(served, "-tls1_2", "-cipher", f"{name}:@SECLEVEL=0")[0] == 0
        ]
        served.stop()
        assert found == [good]

    def test_the_lowest_version(self, serve_on_cpython: Serve) -> None:
        served = serve_on_cpython("tls_version tlsv1.3")
        assert handshake(served, "-tls1_2")[0] != 0
        assert handshake(served, "-tls1_3")[0] == 0

    def test_parameters_of_dhe(self, tmp_path: Path) -> None:
        """Only RSA's DHE ciphers have them, and without the file no handshake takes place."""
        of_rsa(tmp_path)
        make = ["openssl", "genpkey", "-genparam", "-algorithm", "DH", "-pkeyopt"]
        subprocess.run([*make, "group:ffdhe2048", "-out", str(tmp_path / "dh")], check=True)
        found = []
        for name, more in (("without", ()), ("with", (f"dhparamfile {tmp_path}/dh",))):
            cipher = "DHE-RSA-AES128-GCM-SHA256"
            lines = [*lines_of(tmp_path), f"ciphers {cipher}"]
            served = Served(tmp_path / name, "cpython", lines, more)
            status, text = handshake(served, "-tls1_2")
            served.stop()
            found.append((status == 0, cipher in text))
        assert found == [(False, False), (True, True)]

    def test_a_client_without_tls_is_told_nothing(self, serve: Serve, certs: Path) -> None:
        served = serve()
        with served.connect() as sock:
            sock.sendall(CONNECT)
            assert ends(sock)
        served.log(
            "closed: lost (TLS: wrong version number)", "An invalid SSL record was received"
        )
        with served.client(context(certs)), served.plain():
            pass

    def test_a_server_that_the_client_does_not_trust(self, serve: Serve, foreign: Path) -> None:
        served = serve()
        with pytest.raises(ssl.SSLCertVerificationError):
            served.client(context(foreign))
        served.log("TLS: tlsv1 alert unknown ca", "closed: lost (TLS: ")

    def test_one_that_never_begins_has_connect_timeout(self, serve: Serve) -> None:
        served = serve("connect_timeout 1")
        with served.connect() as sock:
            assert ends(sock)
        served.log("closed: timed out (connect_timeout) (TLS handshake not complete)")


class TestUsers:
    def test_a_certificate_is_required(self, serve: Serve, certs: Path, foreign: Path) -> None:
        served = serve(f"cafile {certs}/ca.crt", "require_certificate true")
        with served.client(context(certs, "alice")):
            pass
        stranger = context(certs)
        stranger.load_cert_chain(foreign / "alice.crt", foreign / "alice.key")
        for other in (context(certs), stranger):
            assert served.refuses(other)
        served.log("TLS: peer did not return a certificate", "No client certification received")
        served.log("TLS: unable to get local issuer certificate", "TLS: The certificate is not ")

    def test_a_folder_of_cas(
        self, serve_on_cpython: Serve, certs: Path, foreign: Path, tmp_path: Path
    ) -> None:
        folder = tmp_path / "cas"
        folder.mkdir()
        (folder / "ca.crt").write_bytes((certs / "ca.crt").read_bytes())
        subprocess.run(["openssl", "rehash", str(folder)], check=True)
        served = serve_on_cpython(f"capath {folder}", "require_certificate true")
        with served.client(context(certs, "alice")):
            pass
        stranger = context(certs)
        stranger.load_cert_chain(foreign / "alice.crt", foreign / "alice.key")
        assert served.refuses(stranger)

    @pytest.mark.parametrize(
        ("key", "user"),
        [("use_identity_as_username", "alice"), ("use_subject_as_username", "CN=alice")],
    )
    def test_its_name_is_the_user_for_rules(
        self, key: str, user: str, serve: Serve, certs: Path, tmp_path: Path, runtime: str
    ) -> None:
        if runtime == "micropython" and key == "use_subject_as_username":
            return  # refused: test_what_micropython_refuses
        rules = tmp_path / "rules"
        rules.write_text(f"user {user}\ntopic read own\n")
        passwd.put(tmp_path / "users", "bob", "secret")
        lines = f"cafile {certs}/ca.crt", "require_certificate true", f"{key} true"
        more = f"acl_file {rules}", f"password_file {tmp_path / 'users'}"
        served = serve(*lines, *more, "allow_anonymous false")
        for name, code in (("alice", b"\0"), ("bob", b"\x80")):
            # The user name and password of its CONNECT do not count.
            packet = codec.connect(name, username="bob", password=b"wrong")
            with served.client(context(certs, name), packet) as client:
                client.sendall(codec.subscribe(1, ("own", 0)))
                assert received(client, 5) == b"\x90\3\0\1" + code
        served.log(f"u{user!r}")

    def test_one_without_a_name_is_refused(self, serve: Serve, certs: Path) -> None:
        served = serve(
            f"cafile {certs}/ca.crt", "require_certificate true", "use_identity_as_username true"
        )
        nameless = signed(certs, x509.Name([]))
        with nameless.wrap_socket(served.connect(), server_hostname="localhost") as sock:
            sock.sendall(CONNECT)
            assert received(sock, 5) == REFUSED
        served.log("no name in its certificate")

    def test_a_revoked_one_is_refused(
        self, serve_on_cpython: Serve, certs: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "crl.pem").write_bytes(revocations(certs, "bob"))
        lines = f"cafile {certs}/ca.crt", "require_certificate true"
        served = serve_on_cpython(*lines, f"crlfile {tmp_path}/crl.pem")
        with served.client(context(certs, "alice")):
            pass
        assert served.refuses(context(certs, "bob"))
        served.log("TLS: certificate revoked")


class TestFiles:
    def errors(self, folder: Path, *lines: str) -> list[str]:
        file = conf(folder, "listener 8883", *lines)
        return [each.removeprefix(f"{file}:") for each in check(file, "HOST")[0]]

    def test_each_that_is_wrong_has_a_line(
        self, certs: Path, foreign: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "text").write_text("no certificate\n")
        encrypted(certs, tmp_path / "secret.key")
        good = lines_of(certs)
        lists = "ca", "crl", "dhparam"
        for lines, wanted in (
            ((f"certfile {tmp_path}/text", good[1]), ["2: certfile: expected a certificate in"]),
            (
                (good[0], f"keyfile {tmp_path}/text"),
                ["3: keyfile: expected a private key in PEM ([ssl] pem lib)"],
            ),
            ((good[0], f"keyfile {foreign}/server.key"), ["3: keyfile: expected the key of the"]),
            (
                (good[0], f"keyfile {tmp_path}/secret.key"),
                ["3: keyfile: expected a key without a"],
            ),
            (
                (*good, "ciphers NONE-OF-THEM"),
                ["4: ciphers: expected names of ciphers, as `openssl ciphers` takes them (no cip"],
            ),
            (
                (
                    *good,
                    *(f"{name}file {tmp_path}/text" for name in lists),
                    "require_certificate 1",
                ),
                [f"{at}: {name}file: expected a file " for at, name in enumerate(lists, 4)],
            ),
            (good[:1], ["2: certfile: expected keyfile on the same listener"]),
            ((*good, "crlfile x"), ["4: crlfile: expected require_certificate true on the same"]),
            ((*good, "require_certificate 1"), ["4: require_certificate: expected cafile or"]),
            ((*good, "tls_version tlsv1.1"), ["4: tls_version: expected tlsv1.2 or tlsv1.3"]),
        ):
            found = self.errors(tmp_path, *lines)
            assert len(found) == len(wanted), (lines, found)
            for line, text in zip(found, wanted, strict=True):
                assert line.startswith(text), found

    def test_the_ciphers_of_tls_1_3(
        self, certs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """CPython 3.15 has a method for them; an older one says so."""
        lines = *lines_of(certs), "ciphers_tls1.3 NONE-OF-THEM"
        if not hasattr(ssl.SSLContext, "set_ciphersuites"):
            (error,) = self.errors(tmp_path, *lines)
            assert error.startswith("4: ciphers_tls1.3: not served: this needs CPython 3.15; ")
        asked = []

        def choose(_: ssl.SSLContext, names: str) -> None:
            asked.append(names)
            if "NONE" in names:
                raise ssl.SSLError("No cipher suite can be selected.")

        monkeypatch.setattr(ssl.SSLContext, "set_ciphersuites", choose, raising=False)
        (error,) = self.errors(tmp_path, *lines)
        assert error.startswith("4: ciphers_tls1.3: expected names of ciphers of TLS 1.3 ")
        best = "TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256"
        assert self.errors(tmp_path, *lines[:2], f"ciphers_tls1.3 {best}") == []
        assert asked == ["NONE-OF-THEM", best]

    def test_the_start_ends_with_that_line(
        self, foreign: Path, certs: Path, tmp_path: Path
    ) -> None:
        file = conf(tmp_path, "listener 8883", lines_of(certs)[0], f"keyfile {foreign}/server.key")
        command = [sys.executable, "-m", "slotmq_tools.cli", "run", "-c", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        text = "keyfile: expected the key of the certificate in certfile"
        assert (done.returncode, done.stderr) == (3, f"slotmq: {file}:3: {text}\n")

    def test_what_this_computer_does_not_have(self, tmp_path: Path) -> None:
        web = "protocol websockets", "http_dir /no/www"
        file = conf(tmp_path, "listener 8883", *lines_of(Path("/no/folder")), *web)
        errors, found = check(file, "HOST")
        assert errors == []
        assert [line.split(": ")[0] for line in found] == [
            "/no/folder/server.crt",
            "/no/folder/server.key",
            "/no/www",
        ]

    def test_an_expired_certificate_is_a_warning(self, certs: Path, tmp_path: Path) -> None:
        expired(certs, tmp_path)
        file = conf(tmp_path, "listener 8883", *lines_of(tmp_path))
        errors, found = check(file, "HOST")
        assert errors == []
        assert len(found) == 1
        assert found[0].startswith(f"{file}:2: certfile: the certificate is not valid after ")

    def test_the_start_warns(self, serve: Serve, certs: Path, tmp_path: Path) -> None:
        expired(certs, tmp_path)
        served = serve(folder=tmp_path)
        served.log("certfile: the certificate is not valid after ")


class TestReload:
    def test_new_connections_get_the_new_certificate(
        self, serve: Serve, foreign: Path, tmp_path: Path
    ) -> None:
        folder = made(tmp_path / "own")
        served = serve(folder=folder)
        with served.client(context(folder)) as before:
            for name in ("server.crt", "server.key"):
                (folder / name).write_bytes((foreign / name).read_bytes())
            served.run.process.send_signal(signal.SIGHUP)
            served.log("Reloaded")
            with served.client(context(foreign)):
                pass
            with pytest.raises(ssl.SSLCertVerificationError):
                served.client(context(folder))
            before.sendall(b"\xc0\0")
            assert received(before, 2) == b"\xd0\0"

    def test_wrong_files_change_nothing(self, serve: Serve, tmp_path: Path) -> None:
        folder = made(tmp_path / "own")
        served = serve(folder=folder)
        (folder / "server.key").write_text("gone")
        served.run.process.send_signal(signal.SIGHUP)
        served.log("Not reloaded: ")
        served.log("keyfile: expected a private key in PEM")
        with served.client(context(folder)):
            pass

    def test_a_listener_stays_with_or_without_tls(self, serve: Serve, certs: Path) -> None:
        served = serve()
        text = served.file.read_text()
        served.file.write_text("\n".join(text.splitlines()[:-2]) + "\n")
        served.run.process.send_signal(signal.SIGHUP)
        served.log("Only a restart changes: listener.")
        with served.client(context(certs)), served.connect() as sock:
            sock.sendall(CONNECT)
            assert ends(sock)


def test_mosquittos_clients(serve: Serve, certs: Path) -> None:
    served = serve(f"cafile {certs}/ca.crt", "require_certificate true")
    own = "--cert", f"{certs}/alice.crt", "--key", f"{certs}/alice.key"
    where = "-h", "localhost", "-p", str(served.port), "--cafile", f"{certs}/ca.crt", *own
    listen = [*mosquitto.subscribe(), *where, "-t", "a/#", "-C", "2", "-q", "1"]
    with subprocess.Popen(listen, stdout=subprocess.PIPE) as listener:
        served.log("New client connected")
        for text in ("one", "two" * 30_000):
            command = [*mosquitto.publish(), *where, "-t", "a/b", "-m", text, "-q", "1", "-r"]
            subprocess.run(command, check=True, timeout=TIMEOUT_S)
        assert listener.communicate(timeout=TIMEOUT_S)[0].decode().split() == [
            "one",
            "two" * 30_000,
        ]


def _sign(folder: Path, builder: x509.CertificateBuilder) -> x509.Certificate:
    key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
    return builder.sign(key, hashes.SHA256())  # type: ignore[arg-type]


def _copy(folder: Path, name: str) -> x509.CertificateBuilder:
    was = x509.load_pem_x509_certificate((folder / f"{name}.crt").read_bytes())
    builder = x509.CertificateBuilder(was.issuer, was.subject, was.public_key(), 1)
    for extension in was.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    return builder


def signed(folder: Path, name: x509.Name) -> ssl.SSLContext:
    """A client's context with alice's key, and a certificate with this name."""
    now = datetime.now(UTC)
    was = x509.load_pem_x509_certificate((folder / "alice.crt").read_bytes())
    builder = x509.CertificateBuilder(was.issuer, name, was.public_key(), 1)
    builder = builder.not_valid_before(now - timedelta(1)).not_valid_after(now + timedelta(1))
    path = folder / "nameless.crt"
    path.write_bytes(_sign(folder, builder).public_bytes(serialization.Encoding.PEM))
    found = context(folder)
    found.load_cert_chain(path, folder / "alice.key")
    return found


def expired(folder: Path, to: Path) -> None:
    now = datetime.now(UTC)
    builder = _copy(folder, "server").not_valid_before(now - timedelta(9))
    one = _sign(folder, builder.not_valid_after(now - timedelta(1)))
    (to / "server.crt").write_bytes(one.public_bytes(serialization.Encoding.PEM))
    (to / "server.key").write_bytes((folder / "server.key").read_bytes())


def encrypted(folder: Path, to: Path) -> None:
    key = serialization.load_pem_private_key((folder / "server.key").read_bytes(), None)
    how = serialization.BestAvailableEncryption(b"secret")
    form = serialization.PrivateFormat.PKCS8
    to.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, how))


def revocations(folder: Path, name: str) -> bytes:
    """A list of revoked certificates: that of this client."""
    now = datetime.now(UTC)
    key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
    ca = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
    one = x509.load_pem_x509_certificate((folder / f"{name}.crt").read_bytes())
    revoked = x509.RevokedCertificateBuilder(one.serial_number, now).build()
    builder = x509.CertificateRevocationListBuilder(ca.subject, now, now + timedelta(1))
    made_list = builder.add_revoked_certificate(revoked).sign(key, hashes.SHA256())  # type: ignore[arg-type]
    return made_list.public_bytes(serialization.Encoding.PEM)
