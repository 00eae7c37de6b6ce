# tls_client_micropython.py - the contract of tls_client_cpython.py on MicroPython, for the unix
# port: what mbedTLS asks for is in net/tls_micropython.py. read and write make the handshake; a
# write during it takes nothing until it is over. Allocates.
import tls

from slotmq.platform.runtime import const
from slotmq.platform.tls_wire_micropython import WIRE_MOST, Wire

_CONTENT = const(4096)  # bytes of a record's content on the smallest ports
_READ_AT_ONCE = const(512)  # bytes that recv() allocates
NOT_HERE = (
    "bridge_capath", "bridge_insecure", "bridge_alpn", "bridge_ciphers", "bridge_psk",
    "bridge_tls_use_os_certs",
)  # fmt: skip
WHY_NOT = "with TLS this needs CPython"


def make_context(options):
    """The SSLContext of a bridge. ValueError: `KEY: what was expected`."""
    if options.bridge_tls_version == "tlsv1.3":
        raise ValueError("bridge_tls_version: tlsv1.2; 1.3 needs CPython")
    context = tls.SSLContext(tls.PROTOCOL_TLS_CLIENT)
    key = "bridge_cafile"
    try:
        context.load_verify_locations(_read(options.bridge_cafile))
        key = "bridge_certfile"
        if options.bridge_certfile:
            context.load_cert_chain(_read(options.bridge_certfile), _read(options.bridge_keyfile))
    except (OSError, ValueError) as error:
        raise ValueError("%s: certificates and key in PEM (%s)" % (key, error))
    context.verify_mode = tls.CERT_REQUIRED
    return context


def _read(path):
    with open(path, "rb") as file:
        return file.read()


def reason(error):
    """An error of TLS as text."""
    return str(error.args[-1] if error.args else error).strip().replace("\n", "; ")


class Pipe:
    def __init__(self, sock, context, name):
        self._sock = sock
        self._wire = wire = Wire(sock)
        self._tls = context.wrap_socket(wire, server_hostname=name, do_handshake_on_connect=False)
        self.shaking = True
        self.more = False
        self.waits = 0  # bytes in a record that the socket has not taken

    def readinto(self, buf, _off, n):
        self.more = False
        self._wire.left = WIRE_MOST
        got = 0
        while got < n:
            data = self._tls.recv(min(n - got, _READ_AT_ONCE))
            if not data:
                return got or (None if data is None else 0)
            buf[got : got + len(data)] = data
            got += len(data)
        self.more = True
        return got

    def write(self, buf, off, n):
        if self.waits and not self.flush():
            return None
        done = 0
        self._wire.left = WIRE_MOST  # for the handshake
        while done < n and not self.waits:
            k = min(n - done, _CONTENT)
            if self._tls.write(buf, off + done, k) is None:
                if self.shaking:
                    return None
                self.waits = k  # they are in mbedTLS's record already
            self.shaking = False
            done += k
        return done

    def flush(self, *_):
        """Has the record left? mbedTLS looks at the length only."""
        if self._tls.write(bytearray(self.waits)) is None:
            return False
        self.waits = 0
        return True

    def close(self):
        self._tls.close()
        self._sock.close()
