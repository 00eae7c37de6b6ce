# tls_cpython.py - TLS around a socket on CPython, in either direction. Loaded by net/tls.py, and
# for a bridge's probe. Owns what OpenSSL has for each connection. Allocates.
#
# OpenSSL reads from and writes to memory here, never a socket. So one recv() takes in many
# records, and a write never has to be repeated with the same bytes:
#
#   socket ─recv─> _incoming ─> OpenSSL ─> read()   what is left: more
#   socket <─send─ waits <─ _outgoing <─ OpenSSL <─ write()   not sent yet: waits
#
# A connection whose socket takes nothing keeps one write in `waits`, at most _PIECE bytes and the
# records around them; write() accepts nothing until it has left. A read takes what one recv() has
# brought, since OpenSSL goes on as long as there is more without plaintext.
import ssl
from errno import EAGAIN

from slotmq.constants import LOST
from slotmq.platform.tls_context_cpython import reason

_RECV = 16384  # bytes of one recv(), the only one of a stream in a turn
_RECV_MUTE = 4096  # the same, where the last one had no plaintext
_PIECE = 65536  # bytes of plaintext in one write()
_WAITS_MOST = 2 * _PIECE  # bytes that wait for the socket, with TLS's own answers
# Short names of what a subject consists of; others keep their long ones
_SHORT = {
    "commonName": "CN", "organizationalUnitName": "OU", "organizationName": "O",
    "localityName": "L", "stateOrProvinceName": "ST", "countryName": "C", "surname": "SN",
    "givenName": "GN", "domainComponent": "DC", "userId": "UID", "streetAddress": "street",
}  # fmt: skip


class Pipe:
    """TLS around the socket of a stream. name: of the server that a client expects; None: this is
    a server. Errors are OSErrors."""

    packets = None  # where packets end: each becomes a record
    error = None  # text for the log
    identity = None  # of a shared key
    shaking = True  # is the handshake under way?
    more = False  # may there be input that causes no event?
    is_mute = True  # had the last input no plaintext, or has none come yet?
    is_blocked = False  # does the poller wait until the socket takes what waits?
    is_corked = False  # will more be written at once?

    def __init__(self, loop, stream, context, name=None):
        self.loop = loop
        self.sock = self  # whose shutdown() half_close() calls
        self.waits = b""
        self.received = 0  # bytes of the last recv(), if the last read() has called it
        self._sock = stream.sock
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._ssl = context.wrap_bio(self._incoming, self._outgoing, name is None, name)

    def blocked(self):
        """is_blocked has changed."""

    def read(self, buf, n):
        """Up to n bytes of what has come; 0 at the end, None: nothing now."""
        self.received = 0
        if self.shaking and not self._shake():
            return None
        read = self._ssl.read
        view = memoryview(buf)
        got = 0
        self.more = False
        try:
            while got < n:
                try:
                    k = read(n - got, view[got:n])
                except ssl.SSLWantReadError:
                    if got or self.received or not self._receive():
                        break
                    continue
                if not k:
                    return got
                got += k
            else:
                self.more = True  # perhaps
        except OSError as error:  # a record that is wrong or cut, or a lost connection
            if not got:
                self.failed(error)
            self.more = True  # it comes again
        self._answer()
        return got or None

    readinto = read

    def failed(self, error, is_told=False):
        """The connection ends by this error; is it told though the handshake is complete?"""
        if self.shaking or is_told:
            self.error = "TLS: " + reason(error)
        raise OSError(LOST)

    def _answer(self):
        # TLS has answers of its own to what is no plaintext: refusals of renegotiations.
        if self._outgoing.pending:
            self._leave()
            if len(self.waits) > _WAITS_MOST:
                self.failed(OSError("it does not read the answers"), True)

    def _receive(self):
        # False: nothing now.
        try:
            data = self._sock.recv(_RECV_MUTE if self.is_mute else _RECV)
        except BlockingIOError:
            return False
        self.received = len(data)
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()
        return True

    def _shake(self):
        # Go on with the handshake; is it complete?
        self._ssl.context.stream = self  # for _load_psk()
        try:
            self._receive()
            self._ssl.do_handshake()
            self.shaking = False
        except ssl.SSLWantReadError:
            pass
        except OSError as error:
            self.failed(error)
        finally:
            self._ssl.context.stream = None
            self._leave()
        return not self.shaking

    def write(self, buf, off, n):
        """-> how many bytes were taken, perhaps not all; None: none."""
        try:
            return self.send(memoryview(buf)[off : off + n])
        except BlockingIOError:
            return None

    def send(self, data):
        """-> how many bytes were taken, perhaps not all. BlockingIOError: none."""
        if (
            self.shaking and not self._shake()
            or self.waits and not self.flush()
            or self._outgoing.pending >= _PIECE
        ):  # fmt: skip
            raise BlockingIOError(EAGAIN, "the records before have not left")
        n = len(data)
        if n:
            n = self._encrypt(data, n)
            if not self.is_corked:
                self._leave()
        return n

    def _leave(self):
        self.waits += self._outgoing.read()
        self.flush()

    def _encrypt(self, data, n):
        packets = self.packets
        write = self._ssl.write
        if not packets:
            return write(data[:_PIECE] if n > _PIECE else data)
        outgoing = self._outgoing
        at = 0
        while at < n and outgoing.pending < _PIECE:
            size = data[at + 1] if at + 1 < n else 128
            end = at + 2 + size  # most are short and whole
            if size > 127 or end > n or packets.left or packets.place:
                end = packets.cut(data, at, min(n, at + _PIECE))
            write(data[at:end])
            at = end
        return at

    def cork(self, is_corked):
        """True: keep what is written until this is called with False."""
        self.is_corked = is_corked
        if not is_corked and self._outgoing.pending:
            self._leave()

    def flush(self):
        """Has everything left that was encrypted?"""
        waits = self.waits
        try:
            if waits:
                waits = self.waits = waits[self._sock.send(waits) :]
        except BlockingIOError:
            pass
        if self.is_blocked is not bool(waits):
            self.is_blocked = bool(waits)
            self.blocked()
        return not waits

    def shutdown(self, how):
        self._say_goodbye()
        self._sock.shutdown(how)

    def close(self):
        self._say_goodbye()
        self._sock.close()
        self.sock = None  # else it would wait for the collector

    def _say_goodbye(self):
        # close_notify, once; without it some clients report an attack.
        try:
            if not self.shaking:
                self.shaking = True
                self.error = self.error or "closed"
                self._ssl.unwrap()
        except OSError:
            pass
        try:
            self._sock.send(self.waits + self._outgoing.read())
            self.waits = b""
        except OSError:
            pass

    def user(self, is_whole):
        """The subject of the client's certificate as RFC 2253 writes it, or the certificate in
        DER; "", None: it has none. With a shared key its identity."""
        if self.identity:
            return self.identity
        if not is_whole:
            return self._ssl.getpeercert(True)
        try:
            subject = (self._ssl.getpeercert() or {}).get("subject", ())
            return ",".join("+".join(map(_written, each)) for each in reversed(subject))
        except (OSError, ValueError):  # some part of it is no text: ssl decodes all of them
            return ""


def _written(pair):
    name, value = pair
    if isinstance(value, bytes):  # bits, or a sequence
        raise ValueError
    text = ""
    for at, byte in enumerate(value.encode()):
        one = chr(byte)
        if byte < 32 or byte > 126:
            one = "\\%02X" % byte
        elif one in ',+"\\<>;' or at == 0 and one in "# " or one == " " and at == len(value) - 1:
            one = "\\" + one
        text += one
    return _SHORT.get(name, name) + "=" + text


def admit(_loop, accept_plain, stream_of):
    """-> accept() of a listener; stream_of(sock): the stream of an accepted connection."""

    def accept_tls():
        found = accept_plain()
        return found and (stream_of(found[0]), found[1])

    return accept_tls
