"""The HTTP request with which a WebSocket begins [RFC 6455, 4.2; RFC 9112]."""

import unittest

from packets import connect
from web_client import HEADERS, KEY, PING, PONG, Web, frame, request, without

from slotmq import Limits
from slotmq.platform import ondemand

CONNACK = b"\x20\x02\0\0"
ODD = (
    "hOsT:broker",
    "sec-websocket-protocol: chat,  mqttv3.1 , mqtt",
    "CONNECTION: keep-alive, upgrade",
    "Cookie: " + "x" * 3000,
    "Sec-Websocket-Version:13",
    "upgrade:\tWebSocket ",
    "SEC-WEBSOCKET-KEY:    " + KEY,
    "Origin: http://page",
    "Accept-Encoding: gzip",
    "X-Empty:",
)


def fields(one):
    """The answer's headers."""
    found = [line.decode().split(": ", 1) for line in one.lines[1:]]
    return {name.lower(): value for name, value in found}


SAFE = {"x-content-type-options": "nosniff", "x-frame-options": "SAMEORIGIN"}


class Case(unittest.TestCase):
    def setUp(self):
        self.web = Web()

    def refused(self, status, *requests, **options):
        for data in requests:
            with self.subTest(data=data[:200]):
                self.web = Web(options)
                one = self.web.come(data, turns=60)
                self.assertEqual(one.status, status)
                self.assertTrue(one.stream.closed)
                self.assertEqual(int(fields(one)["content-length"]), len(one.body))
                self.assertEqual(fields(one)["connection"], "close")
                policy = fields(one)["content-security-policy"]
                self.assertEqual(policy, "default-src 'none'; frame-ancestors 'self'")
                for name, value in SAFE.items():
                    self.assertEqual(fields(one)[name], value)
                self.assertEqual(self.web.broker.conns.count, 0)


class TestUpgrade(Case):
    def test_headers_in_any_case_and_order(self):
        for headers in (HEADERS, tuple(reversed(HEADERS)), ODD, tuple(reversed(ODD))):
            for end in ("\r\n", "\n"):
                one = self.web.come(request(*headers, end=end), turns=60)
                self.assertEqual(one.status, 101)
                self.assertEqual(fields(one)["sec-websocket-protocol"], "mqtt")
                self.web.send(one, frame(connect("web")))
                self.assertEqual(one.mqtt(), [CONNACK])

    def test_a_client_that_offers_only_the_old_name(self):
        headers = without("Sec-WebSocket-Protocol", "Sec-WebSocket-Protocol: mqttv3.1")
        one = self.web.come(request(*headers), turns=20)
        self.assertEqual(fields(one)["sec-websocket-protocol"], "mqttv3.1")

    def test_lists_in_several_lines(self):
        headers = without("Connection", "Connection: keep-alive", "Connection: Upgrade")
        headers.insert(0, "Sec-WebSocket-Protocol: chat")
        self.assertEqual(self.web.come(request(*headers), turns=20).status, 101)

    def test_a_long_request_line(self):
        """8,000 bytes [RFC 9112, 3]: a token in the URL. On a board as many as rx has."""
        for size in (1024, 8000):
            line = "GET /?token=" + "a" * (size - 21) + " HTTP/1.1"
            self.assertEqual(len(line), size)
            self.assertEqual(self.web.come(request(first=line), turns=60).status, 101)
        data = request(first="GET /" + "a" * 1100 + " HTTP/1.1")
        for rx_bytes, status in ((512, 414), (1024, 414), (2048, 101)):
            self.web = Web(limits=Limits(connections=6, rx_bytes=rx_bytes))
            small = ondemand.IS_SMALL
            ondemand.IS_SMALL = True
            try:
                self.assertEqual(self.web.come(data, turns=60).status, status)
            finally:
                ondemand.IS_SMALL = small

    def test_empty_lines_before_it(self):
        for lines in ("\r\n", "\n", "\r\n\r\n"):
            one = self.web.come(lines.encode() + request(), turns=20)
            self.assertEqual(one.status, 101)

    def test_any_path(self):
        for target in ("/", "/mqtt", "/a/b?c=d", "http://broker:80/mqtt"):
            data = request(first=f"GET {target} HTTP/1.1")
            self.assertEqual(self.web.come(data, turns=20).status, 101)
            self.setUp()

    def test_split_at_each_byte(self):
        data = request() + frame(b"1", PING)
        for cut in range(1, len(data)):
            self.setUp()
            one = self.web.come(data[:cut])
            self.web.send(one, data[cut:])
            self.assertEqual(one.frames(), [(PONG, b"1")])

    def test_frames_behind_it(self):
        one = self.web.come(request() + frame(connect("web")) + frame(b"1", PING), turns=10)
        self.assertEqual(sorted(one.frames()), [(2, CONNACK), (PONG, b"1")])

    def test_the_end_behind_each_byte(self):
        data = request()
        for cut in range(len(data)):
            one = self.web.come(data[:cut], turns=6)
            one.stream.ended = True
            self.web.world.turn(2)
            self.assertTrue(one.stream.closed)
            self.assertEqual(one.stream.received, b"")

    def test_a_request_that_does_not_end_is_timed_out(self):
        self.web = Web(connect_timeout=2)
        one = self.web.come(request()[:-1])
        for _ in range(6):
            self.web.send(one, b"X-More: 1\r\n"[:6])
            self.web.world.turn(5, ms=100)
        self.assertTrue(one.stream.closed)


def of(*headers):
    """A request with these in place of the header of that name."""
    return request(*without(headers[0].partition(":")[0], *headers[1:]))


KEY_IS, VERSION_IS, PROTOCOL_IS = (f"Sec-WebSocket-{x}" for x in ("Key", "Version", "Protocol"))
PAGES = ("http://page:8080", "https://other")
# The status, and requests that have it
WRONG = (
    (400, (b"\0", b"hello\r\n\r\n", b"GET /\r\n\r\n", b"GET  HTTP/1.1\r\n\r\n", connect("web"))),
    (400, (b"GET / HTTP/1.1 x\r\n\r\n", b"\x16\3\1\2\0\1\0", b"G\0T / FTP/1.1\r\n\r\n")),
    (400, (b"GET /\xc3%a9 HTTP/1.1\r\nHost: a\r\n\r\n", b"GET /\x7f HTTP/1.1\r\n\r\n")),
    (400, (request("Host broker"), request("Host : a"), request(": b"), request("Host: a\0"))),
    (400, (request("Host: a", "Host: b"), request("Upgrade: websocket"))),
    (400, (request(*HEADERS, " folded"), request(*HEADERS, KEY_IS + ": " + KEY))),
    (400, (of("Connection"), of(KEY_IS), of("Connection", "Connection: close"))),
    (400, [of(KEY_IS, KEY_IS + ": " + key) for key in ("", "abc", KEY[:-1], "=" * 24, KEY[:-2])]),
    (400, (of(PROTOCOL_IS), of(PROTOCOL_IS, PROTOCOL_IS + ": mqtt5, MQTT.x"))),
    (405, [request(first=one + " / HTTP/1.1") for one in ("POST", "DELETE", "PUT")]),
    (405, (request(first="GET / HTTP/1.0"),)),
    (413, [request(*HEADERS, x) for x in ("Content-Length: 1", "Transfer-Encoding: chunked")]),
    (414, (request(first="GET /" + "a" * 8000 + " HTTP/1.1"),)),
    (
        426,
        (
            of(VERSION_IS, VERSION_IS + ": 8"),
            request("Host: a"),
            request("Host: a", "Upgrade: h2c"),
        ),
    ),
    (431, (request(*HEADERS, *[f"X-{k}: " + "y" * 90 for k in range(180)]),)),
    (431, (request("Host: a", "Upgrade: " + "y" * 2000),)),
    (505, (request(first="GET / HTTP/2.0"), request(first="GET / HTTP/0.9"))),
)


class TestRefused(Case):
    def test_each_has_its_status(self):
        for status, requests in WRONG:
            self.refused(status, *requests)

    def test_the_version_that_is_served(self):
        one = self.web.come(of(VERSION_IS), turns=20)
        self.assertEqual((one.status, fields(one)["sec-websocket-version"]), (426, "13"))

    def test_origins(self):
        self.refused(403, request(), websockets_origin=PAGES)
        wrong = request(*HEADERS).replace(b"Host: broker", b"Host: a\r\nOrigin: \xff\xfe")
        self.refused(403, wrong, websockets_origin=PAGES)
        for bad in ("http://page", "http://page:8080.evil", "null", "HTTPS://other"):
            self.refused(403, request(*HEADERS, "Origin: " + bad), websockets_origin=PAGES)
        for good in PAGES:
            self.web = Web({"websockets_origin": PAGES})
            one = self.web.come(request(*HEADERS, "Origin: " + good), turns=20)
            self.assertEqual(one.status, 101)

    def test_an_empty_body(self):
        one = self.web.come(request(*HEADERS, "Content-Length: 0"), turns=20)
        self.assertEqual(one.status, 101)

    def test_damaged_requests_end_no_more_than_their_connection(self):
        options = {"http_dir": "/", "websockets_origin": ("http://page",)}
        self.web = Web(options)
        good = request(
            *HEADERS, "Origin: http://page", 'If-None-Match: "a"', first="GET /no%20x HTTP/1.1"
        )
        number = 1
        for _ in range(400):
            data = bytearray(good)
            for _ in range(3):
                number = (number * 1103515245 + 12345) & 0x3FFFFFFF
                data[(number >> 8) % len(data)] = number >> 20 & 255
            one = self.web.come(bytes(data), turns=3)
            one.stream.ended = True
            self.web.world.turn(3)
            self.assertTrue(one.stream.closed)
        self.assertEqual(self.web.broker.conns.count, 0)

    def test_an_answer_that_leaves_byte_by_byte(self):
        stream = self.web.stream(write=lambda n: 1)
        one = self.web.come(request("Host: a"), stream, 400)
        self.assertEqual((one.status, one.stream.closed), (426, True))

    def test_the_log_says_why(self):
        lines = []
        self.web.broker.log = lambda kind, text: lines.append(text)
        self.web.broker.log_mask = 4
        for data, why in (
            (connect("web"), "MQTT without WebSocket"),
            (b"\x16\3\1\2\0\1\0", "TLS, and this port speaks WebSocket without it"),
            (request("Host: a"), "HTTP 426: this port speaks MQTT over WebSocket"),
            (
                request(*without("Sec-WebSocket-Protocol")),
                "HTTP 400: no Sec-WebSocket-Protocol: mqtt",
            ),
        ):
            self.web.come(data, turns=20)
            self.assertTrue(lines[-1].endswith(f"protocol error ({why})."), lines[-1])
