# wall_clock.py - sets the board's clock, from an NTP server or from messages to $SLOTMQ/time,
# which contain the seconds since 1970. Log and recorder use it; the broker needs no time of day.
#
# `time` in network.json is the name or address of a server, or "$SLOTMQ/time". A query is one UDP
# packet, to the network's DNS server (for a name) and then to the time server. Later steps receive
# the answer, so nothing blocks. The time is requested again after a day, or after a minute without
# an answer. A broker that records gets the answer of the server as a message. Messages to
# $SLOTMQ/time set the clock only with `remote_admin true`.
import socket
import time

from slotmq import app

try:
    import machine
except ImportError:
    machine = None  # type: ignore[assignment]

TOPIC = "$SLOTMQ/time"
_PORT = 123
_ASK = b"\x1b" + bytes(47)
_SECONDS_AT = 40
_FRACTION_AT = 44
_FROM_1900 = 2208988800
_DAY_MS = 86400000
_RETRY_MS = 60000
_OLDEST = 1577836800  # 2020; an earlier time is wrong


def set_clock(seconds):
    """Set the board's clock to `seconds` since 1970. ValueError: before 2020, or too large."""
    if not _OLDEST <= seconds < 1 << 33:
        raise ValueError("seconds since 1970")
    if machine and hasattr(machine, "RTC"):
        epoch = time.gmtime(0)[0]
        when = time.gmtime(seconds - (946684800 if epoch == 2000 else 0))
        machine.RTC().datetime((when[0], when[1], when[2], when[6], when[3], when[4], when[5], 0))


class Clock:
    def __init__(self, source, link):
        self._server = None if source == TOPIC else source  # None: the topic
        self._by_topic = source == TOPIC
        self._link = link
        self._sock = None
        self._names = {}  # the DNS query that waits for an answer, see platform/dns.py
        self._is_due = False  # must a query to the time server be sent?
        self._next = 0  # ms from _asked to the next query
        self._asked = 0
        self.is_set = False
        self._broker = None
        self._is_wrong = False  # was the last message no time? That is printed once.

    def follow(self, broker):
        """Subscribe to $SLOTMQ/time, or publish the server's time there."""
        self._broker = broker
        if self._by_topic:
            if getattr(broker.settings, "remote_admin", False):
                broker.subscribe(TOPIC, self.on_message)
            else:
                print("slotmq: %s: needs remote_admin true in slotmq.conf" % TOPIC)

    def on_message(self, _topic, payload, *_):
        # Seconds, perhaps with a fraction; the words after them are for a recorder.
        try:
            set_clock(int((bytes(payload).split() or [b""])[0].split(b".")[0]))
            self.is_set = True
            self._is_wrong = False
        except ValueError:
            self._is_wrong or print("slotmq: %s: expected seconds since 1970" % TOPIC)
            self._is_wrong = True

    def step(self, now):
        """Send a query, or receive an answer."""
        server = self._server
        if not server:
            return
        if self._sock:
            self._look(self._sock, now)
        if (now - self._asked) & 0x3FFFFFFF >= self._next:
            self._asked = now
            self._next = _RETRY_MS
            self._is_due = True
        if self._is_due:
            self._ask(now, server)

    def _ask(self, now, server):
        try:
            resolver = self._link.resolver()
            if resolver is not None and not server.replace(".", "").isdigit():
                waited = (now - self._asked) & 0x3FFFFFFF
                server = app.find(self._names, server, resolver, waited // 100)
                if server is None:
                    return
            self._asked = now
            self._send(_ASK, server, _PORT)
        except (OSError, ValueError):
            self._close()
        self._is_due = False

    def _send(self, packet, address, port):
        # `address` is numeric on a board, so getaddrinfo does not block.
        self._close()
        self._sock = sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setblocking(False)
        sock.connect(socket.getaddrinfo(address, port)[0][-1])  # drops packets from others
        sock.send(packet)

    def _look(self, sock, now):
        try:
            answer = sock.recv(48)
        except OSError:
            return  # not yet
        self._close()
        self._take(answer, now)

    def _take(self, answer, now):
        if len(answer) == 48:
            sent = int.from_bytes(answer[_SECONDS_AT : _SECONDS_AT + 4], "big")
            seconds = sent - _FROM_1900 + (1 << 32 if sent < 1 << 31 else 0)
            try:
                set_clock(seconds)
            except ValueError:
                return  # the server does not know the time
            self.is_set = True
            self._next = _DAY_MS
            if self._broker and getattr(self._broker.settings, "record", None):
                ms = int.from_bytes(answer[_FRACTION_AT : _FRACTION_AT + 2], "big") * 1000 >> 16
                error = (now - self._asked) & 0x3FFFFFFF  # ms; sent at any time since the query
                self._broker.publish(TOPIC, b"%d.%03d %d ntp" % (seconds, ms, error))

    def _close(self):
        if self._sock:
            self._sock.close()
            self._sock = None
