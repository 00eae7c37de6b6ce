# tls.py - TLS on both runtimes and in both directions: connections as streams of the loop. Around
# a socket is a Pipe (platform/tls_cpython.py, net/tls_micropython.py), which has what the library
# asks for; here is what the loop and platform/poller.py ask for. Loaded for the first listener
# with a certificate, and for bridges with TLS (bridge/secure.py). The loop gets and writes nothing
# before the handshake is complete; until CONNECT net/timers.py counts connect_timeout as for
# everybody.
#
# In a turn one stream goes on whose handshake is under way, or whose last input had no plaintext
# (KeyUpdates, say). A byte of plaintext now and then is enough to leave that line: so a turn reads
# only so much that is none, and the next one begins with those who have waited. Such input is no
# activity. Owns nothing but the streams. Allocates.
from slotmq.constants import HUP, IN, LOST, OUT
from slotmq.fast import may_read
from slotmq.platform import heap, poller
from slotmq.platform.runtime import MICROPYTHON
from slotmq.platform.tls_packets import Packets

if MICROPYTHON:
    from slotmq.net.tls_micropython import Pipe, admit, reason  # noqa: F401 - of both
else:
    from slotmq.platform.tls_cpython import Pipe, admit, reason  # noqa: F401

_SERVE = 4  # of Loop.at_hand
_IDLE_MOST = 65536  # bytes of a turn that are no plaintext; the rest is for the next ones


class TlsStream(Pipe):
    """A connection over TLS, with the methods of a socket that the loop uses."""

    is_plain = False  # fast/turn_cpython.py must not read from it
    in_line = False  # of the poller

    def __init__(self, loop, sock, context, name=None):
        self.polled = sock
        self.poller = poller.of(loop)
        self.wanted = 0  # the events that the loop waits for
        self.turn = 0  # number of the last turn that served it
        self.is_idle = False  # has the last readinto() found no plaintext?
        self.has_begun = name is None  # a client's handshake begins when the socket is writable
        super().__init__(loop, sock, context, name)
        self.packets = None if name else Packets()  # None, too: websocket.py makes a frame of each

    @property
    def why(self):
        """For the log."""
        return self.error or ("TLS handshake not complete" if self.shaking else None)

    def polled_for(self, mask):
        """The events of the socket to wait for, where the loop waits for `mask`."""
        self.wanted = mask
        if self.shaking and self.has_begun:
            mask &= ~OUT  # the loop could not write
        return mask | OUT if self.waits else mask

    def blocked(self):
        """Something began to wait for the socket, or has left."""
        heap.lift()
        self.poller.modify(self, self.wanted)
        heap.drop()

    def event(self, conn):
        """The socket has an event, or there is input left from before."""
        if self.turn == self.poller.turn:
            return  # it was served before the system was asked
        if (self.shaking or self.is_mute) and not self.poller.is_turn_of(self):
            return
        self.turn = self.poller.turn
        was_shaking = self.shaking
        self.has_begun = True
        self.is_idle = False
        loop = self.loop
        broker = loop.broker
        active = broker.conns.last_activity[conn]
        try:
            if self.waits:
                self.flush()
            event = self.wanted & IN
            if not self.waits:
                event |= self.wanted & OUT
            n = 0
            if event == IN and broker.fast_path:
                n = may_read(broker.fast_path, conn)
            if n:
                loop.at_hand[_SERVE](conn, n, broker.fast_path)
            elif event or not self.waits:
                loop._other_event(conn, broker.conns.stream[conn], event or HUP)
            if was_shaking and self.polled in loop.of_stream:  # it may have ended
                self.blocked()  # perhaps: see polled_for()
        except OSError:
            broker.end(conn, LOST)
        if self.is_idle:
            broker.conns.last_activity[conn] = active

    def readinto(self, buf, n):
        """Up to n bytes of what has come; 0 at the end, None: nothing now."""
        poller = self.poller
        self.is_idle = self.more = poller.idle > _IDLE_MOST
        got = None
        if not self.more:
            got = self.read(buf, n)
            self.is_idle = got is None
            if self.received:
                self.is_mute = not got
                poller.idle += max(0, self.received - (got or 0))
        if self.more:
            poller.keep(self)
        return got


def accept(loop, accept_plain, own):
    """-> accept() of a listener of TLS, which wraps what accept_plain() returns. own: that
    listener's settings, whose context a reload replaces."""

    def stream_of(sock):
        return TlsStream(loop, sock, own["tls"])

    return admit(loop, accept_plain, stream_of)
