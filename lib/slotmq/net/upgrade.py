# upgrade.py - the HTTP/1.1 request with which a connection begins, where the listener has
# `protocol websockets` [RFC 9112; RFC 6455, 4.2]. It becomes a WebSocket, or is answered and
# closed: with a file where the listener has an http_dir (net/http_files.py), otherwise with an
# error that says why. Loaded on demand; owns nothing; allocates, some 2 KB for each request.
import binascii
import hashlib

from slotmq.constants import LEFT, PROTOCOL
from slotmq.net.websocket import Pipe, WebSocket
from slotmq.platform import heap, ondemand

_REQUEST_MOST = 8192  # bytes of a request behind its first line
_LINE_MOST = 1024  # bytes of a header that is needed; others are skipped
_FIRST_MOST = 8000  # bytes of the first line [RFC 9112, 3]; on a board as many as rx has
_FILE_PIECES = 4  # of a file in one turn
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
# A page may do what it likes, but none of another origin shows it in a frame; an error is text.
_HEADERS = """\
X-Content-Type-Options: nosniff\r
X-Frame-Options: SAMEORIGIN\r
Content-Security-Policy: %sframe-ancestors 'self'\r
Connection: close\r
\r
"""
# Headers that are looked at. Of those before the bar one may stand in several lines.
_LISTS = b"connection upgrade sec-websocket-protocol accept-encoding if-none-match"
_SINGLE = b"host sec-websocket-key sec-websocket-version origin content-length transfer-encoding"
_TOKEN = b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
_REASONS = {
    200: "OK", 301: "Moved Permanently", 304: "Not Modified", 400: "Bad Request",
    403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 413: "Content Too Large",
    414: "URI Too Long", 426: "Upgrade Required", 431: "Request Header Fields Too Large",
    503: "Service Unavailable", 505: "HTTP Version Not Supported",
}  # fmt: skip


class Request(Pipe):
    def __init__(self, loop, own):
        super().__init__(loop)
        self.own = own  # the listener's settings by name
        self.line = b""  # the beginning of a line that was cut
        self.size = 0  # bytes of the request so far
        self.most = max(_LINE_MOST, len(loop.broker.rx)) if ondemand.IS_SMALL else _FIRST_MOST
        self.first = None  # method, target, version
        self.headers = {}
        self.file = None  # what is being sent
        self.piece = None

    why = "no HTTP request"

    def took(self, buf, at, end):
        if self.result:
            return None
        with heap.lifted:
            at += self._read(bytes(buf[at:end]))
            pipe = self.loop.conns.attached[self.conn]
            # What came behind the request is moved to the beginning of buf, too.
            return None if pipe is self or at == end else pipe.took(buf, at, end)

    def _read(self, data):
        # -> how many bytes belong to the request
        at = 0
        if not self.size and not 65 <= data[0] <= 90 and data[0] not in b"\r\n":
            self.why = "MQTT without WebSocket" if data[0] == 0x10 else "no HTTP request"
            if data[0] == 0x16:
                self.why = "TLS, and this port speaks WebSocket without it"
            self.refuse(400, "this port speaks MQTT over WebSocket")
        while not self.result:
            stop = data.find(b"\n", at)
            line = self.line + data[at : stop if stop >= 0 else len(data)]
            self.size += (stop + 1 if stop >= 0 else len(data)) - at
            most = _LINE_MOST if self.first else self.most
            if self.size > _REQUEST_MOST + self.most:
                self.refuse(431, "at most %d bytes" % (_REQUEST_MOST + self.most))
            elif stop < 0:
                self.line = line[: most + 1]
                break
            else:
                self.line = b""
                at = stop + 1
                line = line[: most + 1]
                if line[-1:] == b"\r":
                    line = line[:-1]
                if not line and self.first:
                    self._complete()
                    return at
                self._take(line)
        return len(data)

    def _take(self, line):
        if not self.first:
            if line:  # empty lines before a request are skipped [RFC 9112, 2.2]
                self._begin(line)
            return
        name, colon, value = line.partition(b":")
        name = name.lower()
        if not colon or not name or name.strip(_TOKEN) or b"\0" in line:
            self.refuse(400, "a line that is no header")
        elif name in (_LISTS + b" " + _SINGLE).split():
            value = value.strip(b" \t")
            before = self.headers.get(name)
            if len(line) > _LINE_MOST:
                self.refuse(431, "%s is too long" % name.decode())
            elif before is None:
                self.headers[name] = value
            elif name in _LISTS.split():
                self.headers[name] = before + b"," + value
            else:
                self.refuse(400, "%s twice" % name.decode())

    def _begin(self, line):
        words = line.split(b" ")
        if len(line) > self.most:
            self.refuse(414, "at most %d bytes" % self.most)
        elif len(words) != 3 or words[2][:5] != b"HTTP/" or not _is_ascii(words[1]):
            self.refuse(400, "no HTTP request")
        elif words[2] not in (b"HTTP/1.1", b"HTTP/1.0"):
            self.refuse(505, "HTTP/1.1")
        else:
            self.first = words

    def _complete(self):
        method, target, version = self.first
        headers = self.headers
        if version == b"HTTP/1.1" and b"host" not in headers:
            self.refuse(400, "no Host")
        elif headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers:
            self.refuse(413, "no body is expected")
        elif has(headers.get(b"upgrade"), b"websocket"):
            self._upgrade(method, version, headers)
        elif not self.own.get("http_dir"):
            self.refuse(426, "this port speaks MQTT over WebSocket", "Upgrade: websocket\r\n")
        elif method not in (b"GET", b"HEAD"):
            self.refuse(405, "GET or HEAD", "Allow: GET, HEAD\r\n")
        else:
            files = ondemand.take("net.http_files", self.loop.broker.now)
            files.answer(self, self.own["http_dir"], target, headers)

    def _upgrade(self, method, version, headers):
        origins = self.own.get("websockets_origin")
        offered = headers.get(b"sec-websocket-protocol")
        key = headers.get(b"sec-websocket-key", b"")
        protocol = None
        for name in (b"mqtt", b"mqttv3.1"):
            if not protocol and has(offered, name):
                protocol = name
        if method != b"GET" or version != b"HTTP/1.1":
            self.refuse(405, "an upgrade is a GET of HTTP/1.1", "Allow: GET\r\n")
        elif not has(headers.get(b"connection"), b"upgrade"):
            self.refuse(400, "no Connection: Upgrade")
        elif headers.get(b"sec-websocket-version") != b"13":
            self.refuse(426, "version 13 only", "Sec-WebSocket-Version: 13\r\n")
        elif len(key) != 24 or not _is_base64(key):
            self.refuse(400, "no Sec-WebSocket-Key")
        elif origins and headers.get(b"origin") not in [each.encode() for each in origins]:
            self.refuse(403, "websockets_origin does not list this origin")
        elif not protocol:
            self.refuse(400, "no Sec-WebSocket-Protocol: mqtt")
        else:
            accept = binascii.b2a_base64(hashlib.sha1(key + _GUID).digest())[:-1]
            text = (
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                b"Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n"
                b"Sec-WebSocket-Protocol: %s\r\n\r\n"
            )
            kind = WebSocket
            if self.packets:
                module = ondemand.take("net.secure_websocket", self.loop.broker.now)
                kind = module.SecureWebSocket
            kind(self, text % (accept, protocol))

    def refuse(self, status, text, more=""):
        """Answer with an error."""
        if self.size:
            self.why = "HTTP %d: %s" % (status, text)
        body = (text + "\n").encode()
        more += "Content-Type: text/plain; charset=utf-8\r\n"
        self.respond(status, more, len(body), body)
        self.result = PROTOCOL

    def respond(self, status, more, size, body):
        """Send a status, headers and a body, then end the connection. size: the body's or None."""
        if size is not None:
            more += "Content-Length: %d\r\n" % size
        of_file = "" if status in (200, 304) else "default-src 'none'; "
        head = "HTTP/1.1 %d %s\r\n%s" % (status, _REASONS[status], more) + _HEADERS % of_file
        if self.first and self.first[0] == b"HEAD":
            body = b""
        self.rest = head.encode() + body
        self.at = 0
        self.end = len(self.rest)
        self.result = LEFT
        self.hold()

    def write(self, buf, off, n):
        """Send a part of the answer; n if all has left, or 0."""
        if not self.push():
            return 0
        for _ in range(_FILE_PIECES):
            if not self.file:
                break
            with heap.lifted:
                self.end = self.file.readinto(self.piece)
            self.rest = self.piece
            self.at = 0
            if not self.end:
                self.file.close()
                self.file = None
            elif not self.push():
                return 0
        if self.file:
            return 0
        if self.result:
            self.finish()
        self.is_held = False
        return n

    def close(self):
        if self.file:
            self.file.close()
        self.stream.close()


def has(value, token):
    """Is the token in a header's list?"""
    return value is not None and token in [each.strip() for each in value.lower().split(b",")]


def _is_ascii(target):
    return bool(target) and min(target) > 32 and max(target) < 127


def _is_base64(key):
    try:
        return len(binascii.a2b_base64(key)) == 16
    except ValueError:
        return False
