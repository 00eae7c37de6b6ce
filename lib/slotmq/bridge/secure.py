# secure.py - the stream of a bridge with TLS. The socket is polled; its events come as those of a
# callback, as with Mapped. Around it is a Pipe of platform/tls_client_*.py, which the writes of
# CONNECT drive through the handshake. Loaded on demand; owns one Pipe; allocates.
from slotmq.platform import heap, ondemand
from slotmq.platform.runtime import MICROPYTHON, const
from slotmq.protocol.dispatch import readable

if MICROPYTHON:
    from slotmq.platform import tls_client_micropython as tls
else:
    from slotmq.platform import tls_client_cpython as tls

_IN = const(1)
_OUT = const(4)
_BLOCKED = const(2)
_LOST = const(9)
_EAGAIN = const(11)
_WARNING = const(2)
NOT_HERE = tls.NOT_HERE
WHY_NOT = tls.WHY_NOT


def make_context(options):
    """The SSLContext of a bridge. ValueError: `KEY: what was expected`."""
    context = tls.make_context(options)
    if MICROPYTHON:
        ondemand.take("net.tls_context", 0).drop_weak(context)  # as its listeners
    return context


class Secure:
    is_plain = False

    def __init__(self, broker, bridge, socket, name):
        self.broker = broker
        self.socket = socket
        self.conn = bridge.conn
        self._bridge = bridge
        self._pipe = tls.Pipe(socket, bridge.options.context, name)
        self.is_shaking = True

    def send(self, data):
        return 0  # for fast/turn_cpython.py: the loop must write

    def close(self):
        loop = self.broker.loop
        loop.of_stream.pop(self.socket, None)
        self._pipe.close()

    def mask(self, mask):
        """The events of the socket that are waited for, where the loop waits for `mask`."""
        if self.is_shaking:
            return mask & ~_OUT | (_OUT if self._pipe.waits else 0)
        return mask | (_OUT if self._pipe.waits else 0)

    def is_open(self):
        """Called for each event first: go on with the handshake. Is it over?"""
        loop = self.broker.loop
        if self.is_shaking:
            loop.writable(self.conn)
            self.is_shaking = self._pipe.shaking
            loop.poll_for(self.conn)
        elif self._pipe.waits:
            with heap.lifted:
                self._try(self._pipe.flush, None, 0, 0)
            loop.poll_for(self.conn)
        return not self.is_shaking

    def event(self):
        """The socket is readable, or writable."""
        loop = self.broker.loop
        if loop.conns.out[self.conn] == _BLOCKED:
            loop.writable(self.conn)
        loop._other_event(self.conn, loop.conns.stream[self.conn], _IN)

    def go_on(self):
        """After a turn: is something decrypted that the broker has not got, and may it now?"""
        broker = self.broker
        if self._pipe.more and broker.conns.stream[self.conn] is self:
            if readable(broker, self.conn):
                self.event()
                broker.turn_soon = 1

    def has_more(self):
        return self._pipe.more

    def readinto(self, buf, n):
        with heap.lifted:
            return self._try(self._pipe.readinto, buf, 0, n)

    def write(self, buf, off, n):
        with heap.lifted:
            return self._try(self._pipe.write, buf, off, n)

    def _try(self, function, buf, off, n):
        try:
            done = function(buf, off, n)
            if self._pipe.waits:
                self.broker.loop.poll_for(self.conn)
            return done
        except (OSError, ValueError) as error:
            if error.args and error.args[0] == _EAGAIN:
                return None
            self._bridge.why = "TLS: " + tls.reason(error)
        raise OSError(_LOST)
