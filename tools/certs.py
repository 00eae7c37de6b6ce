"""`slotmq certs`: a CA of one's own, and the certificates for TLS in a local network.

ca.crt and ca.key are made once and stay; everything else is made from them. Keys are ECDSA P-256,
which costs a board a tenth of what RSA does, in PEM, without a password, readable by their owner
only.
"""

import ipaddress
import os
import re
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from .errors import ToolError

_CA_DAYS = 3650
_DAYS = 820  # phones accept no more than 825 from a server
_ALWAYS = ("localhost", "127.0.0.1", "::1")
_BEFORE = timedelta(days=1)  # clocks of others may be slow
_FILE_NAME = re.compile(r"[\w.@-]+")
_HOST_NAME = re.compile(r"(\*\.)?[A-Za-z0-9_.-]+")
_OWN = ("ca", "server")  # names of files that no client may have
_NEXT = """\
The server needs, in slotmq.conf:

    listener 8883
    certfile {folder}/server.crt
    keyfile {folder}/server.key

Clients need ca.crt: `mosquitto_pub -p 8883 --cafile {folder}/ca.crt`, `slotmq status --cafile`.
On an iPhone, send it there, install the profile, then trust it: Settings, General, About,
Certificate Trust Settings. On Android: Settings, Security, Encryption & credentials, Install a
certificate, CA certificate. ca.key must stay here: whoever has it can be every server and client.
"""


class Authority:
    """The CA of a folder. ToolError: its files cannot be used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.is_new = not (folder / "ca.key").exists()
        if self.is_new:
            if (folder / "ca.crt").exists():
                raise ToolError(f"{folder}: ca.crt is there, and its ca.key is not")
            self._make()
        try:
            key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
            self.certificate = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
        except (OSError, TypeError, ValueError) as error:
            raise ToolError(f"{folder}: its CA cannot be read: {error}") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ToolError(f"{folder / 'ca.key'}: expected an ECDSA key")
        if key.public_key() != self.certificate.public_key():
            raise ToolError(f"{folder}: ca.key is not the key of ca.crt")
        self._key = key

    def _make(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name(f"slotmq CA of {socket.gethostname()}"[:64])
        usage = _usage(sign_certificates=True)
        builder = _begun(name, key.public_key(), _CA_DAYS).issuer_name(name)
        builder = builder.add_extension(x509.BasicConstraints(True, 0), critical=True)
        builder = builder.add_extension(usage, critical=True)
        made = builder.sign(key, hashes.SHA256())
        _put(self.folder / "ca.key", _key_text(key), 0o600)
        _put(self.folder / "ca.crt", made.public_bytes(serialization.Encoding.PEM), 0o644)

    def issue(self, file: str, name: str, names: tuple[str, ...], days: int) -> None:
        """Write FILE.crt and FILE.key: of a server with these names and addresses, or, without
        names, of the client NAME."""
        key = ec.generate_private_key(ec.SECP256R1())
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if names else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = _begun(_name(name), key.public_key(), days)
        builder = builder.issuer_name(self.certificate.subject)
        builder = builder.add_extension(x509.BasicConstraints(False, None), critical=True)
        builder = builder.add_extension(_usage(sign_certificates=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(issuer, critical=False)
        if names:
            alternatives = x509.SubjectAlternativeName([_alternative(each) for each in names])
            builder = builder.add_extension(alternatives, critical=False)
        made = builder.sign(self._key, hashes.SHA256())
        _put(self.folder / f"{file}.key", _key_text(key), 0o600)
        _put(self.folder / f"{file}.crt", made.public_bytes(serialization.Encoding.PEM), 0o644)

    def names_of(self, file: str) -> tuple[str, ...]:
        """The names and addresses in a server's certificate of this folder; (): there is none."""
        path = self.folder / f"{file}.crt"
        if not path.exists():
            return ()
        try:
            made = x509.load_pem_x509_certificate(path.read_bytes())
            found = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except (OSError, ValueError, x509.ExtensionNotFound) as error:
            raise ToolError(f"{path}: it cannot be read: {error}") from None
        return tuple(str(each.value) for each in found)


def _begun(name: x509.Name, key: ec.EllipticCurvePublicKey, days: int) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - _BEFORE).not_valid_after(now + timedelta(days=days))
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)


def _usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not sign_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    try:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
    except ValueError:
        raise ToolError(f"{text!r}: expected a name of 1 to 64 characters") from None


def _alternative(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        pass
    try:
        name = text.encode("idna").decode()
    except ValueError:
        name = ""
    if _HOST_NAME.fullmatch(name):
        return x509.DNSName(name)
    raise ToolError(f"{text!r}: expected a host name or an address")


def _key_text(key: ec.EllipticCurvePrivateKey) -> bytes:
    # The format that OpenSSL and every mbedTLS read
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def _put(file: Path, data: bytes, mode: int) -> None:
    file.unlink(missing_ok=True)
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "wb") as out:
        out.write(data)


@click.command()
@click.option("--name", "names", multiple=True, help="A host name or address of the server.")
@click.option("--client", "clients", multiple=True, help="Make a certificate for this user.")
@click.option(
    "--days",
    type=click.IntRange(1, 36500),
    default=_DAYS,
    show_default=True,
    help="How long the server's and the clients' certificates are valid.",
)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def certs(folder: Path, names: tuple[str, ...], clients: tuple[str, ...], days: int) -> None:
    """Make a CA, and certificates of a server and of clients, in FOLDER.

    A folder that has a CA keeps it. The server's certificate is made anew with the names that it
    had and those that are given, unless only clients are asked for."""
    for client in clients:
        if not _FILE_NAME.fullmatch(client) or client in _OWN:
            raise ToolError(f"{client!r}: expected letters, digits, . @ - _, and not ca or server")
    folder.mkdir(parents=True, exist_ok=True)
    authority = Authority(folder)
    before = authority.names_of("server")
    if names or not before or not clients:
        asked = (*names, *before, *_ALWAYS, socket.gethostname())
        own = tuple(dict.fromkeys(asked))
        authority.issue("server", own[0][:64], own, days)
        click.echo(f"{folder}/server.crt: {', '.join(own)}; {days} days")
    for client in clients:
        authority.issue(client, client, (), days)
        click.echo(f"{folder}/{client}.crt: the user {client}; {days} days")
    if authority.is_new:
        click.echo(_NEXT.format(folder=folder), nl=False)
