# tls_cpython.py - TLS on CPython: a listener's SSLContext, connections as streams of the loop, and
# what the poller must know of them. Loaded for the first listener with a certificate.
#
# OpenSSL reads from and writes to memory here, never a socket. So one recv() takes in many
# records, and a write never has to be repeated with the same bytes:
#
#   socket ─recv_into─> Tls.buffer ─> _incoming ─> OpenSSL ─> readinto()   what is left: Tls.ready
#   socket <─send─ _rest <─ _outgoing <─ OpenSSL <─ write()               not sent yet: _rest
#
# A connection whose socket takes nothing keeps one write in _rest, at most _PIECE bytes and the
# records around them; write() accepts nothing until it has left. Input that was decrypted, or came
# in with it, causes no event of the system, so Tls.wait() adds one for each stream in Tls.ready.
# The handshake is made here; the loop sees no event before. In one turn one handshake goes on by
# one step, or one stream is read whose last input had no plaintext (KeyUpdates, say): others wait
# for one of these at most, however many there are. A byte of plaintext now and then is enough to
# leave that rotation: so a turn reads only so much that is none, and the next one begins with
# those who have waited longest. Until CONNECT, net/timers.py counts connect_timeout as for
# everybody.
#
# Owns the buffer of all connections, the set of streams with input left, and what OpenSSL has for
# each connection. Allocates.
import ssl
import time
from errno import EAGAIN

from slotmq.platform.tls_packets import Packets

_IN = 1
_OUT = 4
_GONE = 8 | 16 | 32
_LOST = 9
_SERVED = 3  # of Connections.counts
_RECV = 16384  # bytes of one recv(), the only one of a stream in a turn
_RECV_MUTE = 4096  # the same, where the last one had no plaintext
_IDLE_MOST = 65536  # bytes of a turn that are no plaintext; what is left is read in the next ones
_PIECE = 65536  # bytes of plaintext in one write()
_RESTS_MOST = 2 * _PIECE  # bytes that wait for the socket, with TLS's own answers
_VERSIONS = {"tlsv1.2": ssl.TLSVersion.TLSv1_2, "tlsv1.3": ssl.TLSVersion.TLSv1_3}
# Short names of what a subject consists of; others keep their long ones
_SHORT = {
    "commonName": "CN", "organizationalUnitName": "OU", "organizationName": "O",
    "localityName": "L", "stateOrProvinceName": "ST", "countryName": "C", "surname": "SN",
    "givenName": "GN", "domainComponent": "DC", "userId": "UID", "streetAddress": "street",
}  # fmt: skip


class TlsStream:
    """A connection over TLS, with the methods of sockets_cpython.Stream."""

    is_plain = False

    def __init__(self, tls, plain, context):
        self.tls = tls
        self.fileno = plain.fileno
        self.sock = self  # whose shutdown() half_close() calls
        self.why = "TLS handshake not complete"  # for the log; None: it is
        self.mask = 0  # the events that the loop waits for
        self._sock = plain.sock
        self.identity = None  # of a shared key
        self.is_blocked = False  # does the poller wait until the socket takes _rest?
        self.packets = Packets()  # None: net/websocket.py makes a frame of each
        self.is_corked = False  # will more be written at once?
        self.is_mute = True  # had the last input no plaintext, or has none come yet?
        self.chosen = 0  # number of the turn that read it last
        self._active = 0  # tenths of a second: the last activity before the event under way
        self._rest = b""
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._ssl = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    def readinto(self, buf, n):
        """Up to n bytes of what has come; 0 at the end, None: nothing now."""
        tls = self.tls
        if tls.idle > _IDLE_MOST:
            tls.ready.add(self)
            self._was_idle()
            return None
        self.chosen = tls.turn
        tls.ready.discard(self)
        if self.why:
            return None
        read = self._ssl.read
        view = memoryview(buf)
        got = 0
        has_received = False
        try:
            while got < n:
                try:
                    k = read(n - got, view[got:n])
                except ssl.SSLWantReadError:
                    if got or has_received or not self._receive():
                        return self._answer(got)
                    has_received = True
                    tls.idle += tls.received
                    continue
                if not k:
                    return got
                got += k
                if has_received:
                    tls.idle -= k
        except OSError:  # a record that is wrong or cut, or a lost connection
            if not got:
                return 0
        if self._has_too_many_answers():
            return 0
        self.tls.ready.add(self)  # there may be more; or the error comes again
        return got

    def _has_too_many_answers(self):
        # TLS has answers of its own to what is no plaintext: refusals of renegotiations.
        if self._outgoing.pending:
            self._leave()
            if len(self._rest) > _RESTS_MOST:
                self.why = "TLS: it does not read the answers"
                return True
        return False

    def _answer(self, got):
        # All input was handled. What was no plaintext is no activity.
        if self._has_too_many_answers():
            return 0
        self.is_mute = not got
        if not got:
            self._was_idle()
        return got or None

    def _was_idle(self):
        loop = self.tls.loop
        loop.conns.last_activity[loop.of_stream[self]] = self._active

    def _receive(self):
        # False: nothing now.
        tls = self.tls
        try:
            n = self._sock.recv_into(tls.buffer, _RECV_MUTE if self.is_mute else _RECV)
        except BlockingIOError:
            return False
        tls.received = n
        if n:
            self._incoming.write(tls.view[:n])
        else:
            self._incoming.write_eof()
        return True

    def write(self, buf, off, n):
        try:
            return self.send(memoryview(buf)[off : off + n])
        except BlockingIOError:
            return None

    def send(self, data):
        """-> how many bytes were taken, perhaps not all. BlockingIOError: none."""
        if self._rest and not self._flush() or self._outgoing.pending >= _PIECE:
            raise BlockingIOError(EAGAIN, "the records before have not left")
        n = len(data)
        if n:
            n = self._encrypt(data, n)
            if not self.is_corked:
                self._leave()
        return n

    def _leave(self):
        self._rest += self._outgoing.read()
        self._flush()

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

    def _flush(self):
        # Has everything left that was encrypted?
        rest = self._rest
        try:
            rest = self._rest = rest[self._sock.send(rest) :]
        except BlockingIOError:
            pass
        if self.is_blocked is not bool(rest):
            self.is_blocked = bool(rest)
            self.tls.modify(self, self.mask)
        return not rest

    def handle(self, event):
        """An event of the system; -> what is left of it for the loop."""
        loop = self.tls.loop
        self._active = loop.conns.last_activity[loop.of_stream[self]]
        try:
            if event & _OUT and self._rest:
                self._flush()
                event &= ~_OUT if self._rest else -1
            if self.why and event & (_IN | _GONE):
                return self._shake_hands()
        except OSError as error:
            if not self.why:
                return event | _IN  # the loop reads, and sees what has happened
            self._fail(error)
        return event & (self.mask | _GONE)

    def _shake_hands(self):
        self.chosen = self.tls.turn
        if not self._receive():
            return 0
        self._ssl.context.stream = self  # for _load_psk()
        try:
            self._ssl.do_handshake()
            self.why = None
        except ssl.SSLWantReadError:
            pass
        except OSError as error:
            self._fail(error)
        self._ssl.context.stream = None
        self._rest += self._outgoing.read()
        if self._rest:
            self._flush()
        if not self.why and self._incoming.pending:
            self.tls.ready.add(self)
        return 0

    def _fail(self, error):
        self.why = "TLS: %s" % (getattr(error, "verify_message", None) or _reason(error))
        broker = self.tls.loop.broker
        broker.end(self.tls.loop.of_stream[self], _LOST)

    def shutdown(self, how):
        self._say_goodbye()
        self._sock.shutdown(how)

    def close(self):
        self.tls.ready.discard(self)
        self._say_goodbye()
        self._sock.close()
        self.sock = None  # else it would wait for the collector

    def _say_goodbye(self):
        # close_notify, once; without it some clients report an attack.
        try:
            if not self.why:
                self.why = "closed"
                self._ssl.unwrap()
        except OSError:
            pass
        try:
            self._sock.send(self._rest + self._outgoing.read())
            self._rest = b""
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


def _reason(error):
    text = getattr(error, "reason", None) or error.args
    while isinstance(text, tuple):
        text = text[-1] if text else "failed"
    return str(text).split(" (_ssl.c")[0].replace("_", " ").lower()


class Tls:
    """Stands before the loop's poller: its methods that see streams of TLS."""

    def __init__(self, loop, poller):
        self.loop = loop
        self.poller = poller
        self.buffer = bytearray(_RECV)
        self.view = memoryview(self.buffer)
        self.ready = set()
        self.turn = 0  # its number
        self.idle = 0  # bytes in it that were no plaintext
        self.received = 0  # by the last recv()
        self._wait, poller.wait = poller.wait, self.wait
        self._register, poller.register = poller.register, self.register
        self._modify, poller.modify = poller.modify, self.modify
        poller.with_streams = self.with_streams

    def register(self, stream, mask):
        self._register(stream, mask)
        if isinstance(stream, TlsStream):
            stream.mask = mask

    def modify(self, stream, mask):
        if isinstance(stream, TlsStream):
            stream.mask = mask
            mask |= _OUT if stream.is_blocked else 0
        self._modify(stream, mask)

    def wait(self, seconds, most):
        ready = [stream.fileno() for stream in self.ready if stream.mask & _IN]
        if not ready:
            return self._wait(seconds, most)
        events = dict(self._wait(0, most))
        for fd in ready:
            events[fd] = events.get(fd, 0) | _IN
        return list(events.items())

    def with_streams(self, events):
        found = []
        self.turn += 1
        chosen = self._choose(events)
        if self.idle > _IDLE_MOST:  # those first that have waited longest
            events = sorted(events, key=self._last_read)
        self.idle = 0
        for fd, event in events:
            stream = self.poller.streams[fd]
            if isinstance(stream, TlsStream):
                self.loop.conns.counts[_SERVED] = self.loop.of_stream[stream]
                if (stream.why or stream.is_mute) and stream is not chosen:
                    event &= _OUT  # the rest in one of the next turns
                event = stream.handle(event)
            if event:
                found.append((stream, event))
        return found

    def _last_read(self, found):
        return getattr(self.poller.streams[found[0]], "chosen", 0)

    def _choose(self, events):
        # Of the streams that make their handshake or are mute the one whose turn it is, or None.
        streams = [self.poller.streams[fd] for fd, event in events if event != _OUT]
        streams = [each for each in streams if isinstance(each, TlsStream)]
        streams = [each for each in streams if each.why or each.is_mute]
        return min(streams, key=lambda each: each.chosen, default=None)


def accept(loop, accept_plain, own):
    """-> accept() of a listener of TLS, which wraps what accept_plain() returns. own: that
    listener's settings, whose context a reload replaces."""
    poller = loop.poller
    while hasattr(poller, "inner_poller"):
        poller = poller.inner_poller
    tls = poller.tls = getattr(poller, "tls", None) or Tls(loop, poller)

    def accept_tls():
        found = accept_plain()
        return found and (TlsStream(tls, found[0], own["tls"]), found[1])

    return accept_tls


def lacking(key):
    """Why this Python cannot serve a key of a listener; None: it can."""
    method, text = _LATER.get(key, (None, None))
    return text if method and not hasattr(ssl.SSLContext, method) else None


# CPython's own default, which Debian's has not: of TLS 1.2 those with forward secrecy, none with
# SHA-1 or a short tag
_CIPHERS = "ECDH+AESGCM:ECDH+CHACHA20:ECDH+AES:DHE+AES:!aNULL:!eNULL:!aDSS:!SHA1:!AESCCM"
_PSK = "TLS with shared keys needs CPython 3.13; `certfile` and `keyfile` serve TLS"
# What older ones do not have: a method of SSLContext, and what to say without it
_LATER = {
    "psk_file": ("set_psk_server_callback", _PSK),
    "psk_hint": ("set_psk_server_callback", _PSK),
    "ciphers_tls1.3": (
        "set_ciphersuites",
        "this needs CPython 3.15; the ciphers of TLS 1.3 are all good, `ciphers` is for TLS 1.2",
    ),
}


def make_context(own):
    """-> the SSLContext of a listener with these settings, errors as (key, what was expected), and
    warnings as (key, text). None if there are errors."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.set_ciphers(_CIPHERS)
    errors = []
    steps = {
        "certfile": lambda path: _load_chain(context, path, own["keyfile"]),
        "cafile": lambda path: context.load_verify_locations(cafile=path),
        "capath": lambda path: context.load_verify_locations(capath=path),
        "crlfile": lambda path: _load_crl(context, path),
        "dhparamfile": context.load_dh_params,
        "psk_file": lambda path: _load_psk(context, path, own["psk_hint"]),
        "ciphers": context.set_ciphers,
        "ciphers_tls1.3": lambda names: context.set_ciphersuites(names),
    }
    for key in steps:
        if own.get(key):
            try:
                steps[key](own[key])
            except _Wrong as error:
                errors.append(error.args)
            except (OSError, ValueError) as error:
                errors.append((key, "%s (%s)" % (_EXPECTED[key], _reason(error))))
    context.minimum_version = _VERSIONS[own.get("tls_version") or "tlsv1.2"]
    if own.get("require_certificate"):
        context.verify_mode = ssl.CERT_REQUIRED
    return None if errors else context, errors, _warnings(own) if not errors else []


_EXPECTED = {
    "cafile": "a file with certificates in PEM",
    "capath": "a folder that `openssl rehash` has prepared",
    "crlfile": "a file with revocation lists in PEM",
    "dhparamfile": "a file of `openssl dhparam`",
    "psk_file": "a file of identities and keys",
    "ciphers": "names of ciphers, as `openssl ciphers` takes them",
    "ciphers_tls1.3": "names of ciphers of TLS 1.3 with colons between them",
}


def _load_psk(context, path, hint):
    # Versions below 1.3, since Python serves these only. Unknown identities get no key.
    keys = {}
    with open(path, encoding="utf-8") as file:
        for at, line in enumerate(file, 1):
            line = line.strip()
            if line and line[0] != "#":
                identity, _, key = line.rpartition(":")
                try:
                    keys[identity] = bytes.fromhex(key)
                except ValueError:
                    identity = ""
                if not identity or not keys[identity]:
                    text = "lines IDENTITY:KEY, the key in hexadecimal digits, also in line %d"
                    raise _Wrong("psk_file", text % at)

    def key_of(identity):
        context.stream.identity = identity
        return keys.get(identity, b"")

    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("PSK")
    context.set_psk_server_callback(key_of, hint)


class _Wrong(Exception):
    """(key, what was expected)"""


def _load_chain(context, certificate, key):
    # One of the two files is wrong: which?
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(certificate)
    except OSError as error:
        raise _Wrong("certfile", "a certificate in PEM (%s)" % _reason(error))
    try:
        context.load_cert_chain(certificate, key, _no_password)
    except _Encrypted:
        raise _Wrong("keyfile", "a key without a password, since nobody could enter it")
    except OSError as error:
        if getattr(error, "reason", None) in ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"):
            raise _Wrong("keyfile", "the key of the certificate in certfile")
        raise _Wrong("keyfile", "a private key in PEM (%s)" % _reason(error))


class _Encrypted(Exception):
    pass


def _no_password():
    raise _Encrypted


def _load_crl(context, path):
    context.load_verify_locations(cafile=path)
    if not context.cert_store_stats()["crl"]:
        raise ValueError("there is none")
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _warnings(own):
    # Is it the wrong time for the certificate?
    if not own.get("certfile"):
        return []
    try:
        dates = ssl._ssl._test_decode_cert(own["certfile"])
    except (AttributeError, OSError):
        return []  # another Python, which cannot tell
    now = time.time()
    for name, is_wrong in (("notBefore", 1), ("notAfter", -1)):
        if (ssl.cert_time_to_seconds(dates[name]) - now) * is_wrong > 0:
            text = "the certificate is not valid %s %s, and clients will refuse it"
            return [("certfile", text % ("before" if is_wrong > 0 else "after", dates[name]))]
    return []
