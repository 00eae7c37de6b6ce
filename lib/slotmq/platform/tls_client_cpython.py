# tls_client_cpython.py - TLS of a connection outwards, on CPython: the SSLContext of a bridge, and
# a Pipe around its socket. OpenSSL reads from and writes to memory, as in tls_cpython.py. What it
# has encrypted and the socket has not taken is in _rest; then write() takes nothing. Loaded for a
# bridge with TLS. Allocates.
import os
import ssl

_RECV = 16384  # bytes of one recv(), the only one of a turn
_PIECE = 65536  # bytes of plaintext in one write()
_RESTS_MOST = 2 * _PIECE  # bytes that wait for the socket, with TLS's own answers
_VERSIONS = {"tlsv1.2": ssl.TLSVersion.TLSv1_2, "tlsv1.3": ssl.TLSVersion.TLSv1_3}
_EXPECTED = {
    "bridge_cafile": "a file with certificates in PEM",
    "bridge_capath": "a folder that `openssl rehash` has prepared",
    "bridge_certfile": "a certificate and its key in PEM",
    "bridge_ciphers": "names of ciphers, as `openssl ciphers` takes them",
    "bridge_alpn": "1 to 255 bytes",
    "bridge_psk": "hexadecimal digits",
}
NOT_HERE = () if hasattr(ssl.SSLContext, "set_psk_client_callback") else ("bridge_psk",)
WHY_NOT = "shared keys need CPython 3.13"


def make_context(options):
    """The SSLContext of a bridge. ValueError: `KEY: what was expected`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.check_hostname = not (options.bridge_insecure or options.bridge_psk)
    context.minimum_version = _VERSIONS[options.bridge_tls_version or "tlsv1.2"]
    steps = {
        "bridge_cafile": lambda path: context.load_verify_locations(cafile=path),
        "bridge_capath": lambda path: _trust_folder(context, path),
        "bridge_tls_use_os_certs": lambda _: context.load_default_certs(),
        "bridge_certfile": lambda path: context.load_cert_chain(
            path, options.bridge_keyfile, _no_password
        ),
        "bridge_ciphers": context.set_ciphers,
        "bridge_alpn": lambda text: context.set_alpn_protocols([text]),
        "bridge_psk": lambda key: _set_key(context, options.bridge_identity, bytes.fromhex(key)),
    }
    for key in steps:
        value = getattr(options, key)
        if value:
            try:
                steps[key](value)
            except (OSError, ValueError) as error:
                raise ValueError("%s: %s (%s)" % (key, _EXPECTED[key], reason(error)))
    return context


def _trust_folder(context, path):
    # OpenSSL reads the files later, by their names: 8 digits of a hash, a dot, a number.
    if not [name for name in os.listdir(path) if name[8:9] == "." and name[9:].isdigit()]:
        raise ValueError("no certificate has such a name")
    context.load_verify_locations(capath=path)


def _no_password():
    raise ValueError("it has a password, and nobody could enter it")


def _set_key(context, identity, key):
    # Below 1.3, since Python serves these only.
    context.verify_mode = ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("PSK")
    context.set_psk_client_callback(lambda _hint: (identity, key))


def reason(error):
    """An error of TLS as text."""
    texts = [getattr(error, name, None) for name in ("verify_message", "reason", "strerror")]
    return (
        str((*filter(None, texts), *error.args[-1:], error)[0])
        .replace("_", " ")
        .lower()
        .rstrip(".")
    )


class Pipe:
    def __init__(self, stream, context, name):
        self._sock = stream.sock
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._ssl = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)
        self._rest = b""
        self.shaking = True  # is the handshake under way?
        self.more = False  # may there be input that causes no event?

    @property
    def waits(self):
        """Does the socket have to take something before write() can?"""
        return len(self._rest) > 0

    def readinto(self, buf, _off, n):
        self.more = False
        view = memoryview(buf)
        got = 0
        has_received = False
        while got < n:
            try:
                k = self._ssl.read(n - got, view[got:n])
            except ssl.SSLWantReadError:
                if got or has_received or not self._receive():
                    self._answer()
                    return got or None
                has_received = True
                continue
            except OSError:
                if got:
                    break  # the error comes again
                raise
            if not k:
                return got
            got += k
        self._answer()
        self.more = True
        return got

    def _answer(self):
        # As in tls_cpython.py
        if self._outgoing.pending:
            self._rest += self._outgoing.read()
            self.flush()
            if len(self._rest) > _RESTS_MOST:
                raise OSError("it does not read the answers")

    def _receive(self):
        # False: nothing now.
        try:
            data = self._sock.recv(_RECV)
        except BlockingIOError:
            return False
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()
        return True

    def write(self, buf, off, n):
        """Write, first what the handshake needs; -> how many bytes were taken, or None."""
        if self.shaking and not self._shake() or self._rest and not self.flush():
            return None
        n = self._ssl.write(memoryview(buf)[off : off + min(n, _PIECE)])
        self._rest = self._outgoing.read()
        self.flush()
        return n

    def _shake(self):
        self._receive()
        try:
            self._ssl.do_handshake()
            self.shaking = False
        except ssl.SSLWantReadError:
            pass
        finally:
            self._rest += self._outgoing.read()
            self.flush()
        return not self.shaking

    def flush(self, *_):
        """Has everything left that was encrypted?"""
        try:
            self._rest = self._rest[self._sock.send(self._rest) :] if self._rest else b""
        except BlockingIOError:
            pass
        return not self._rest

    def close(self):
        try:
            if not self.shaking:
                self._ssl.unwrap()
        except OSError:
            pass
        try:
            self._sock.send(self._rest + self._outgoing.read())
        except OSError:
            pass
        self._sock.close()
