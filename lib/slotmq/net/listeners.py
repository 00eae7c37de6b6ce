# listeners.py - listeners, and the connections that they accept.
#
# Owns which listeners accept now. One connection more than max_connections, and than the limit, is
# accepted: that client is refused by CONNACK, or takes over its own session. Later clients wait in
# the system's backlog until a connection ends.
#
# Control plane: allocates, and unlocks the heap for it. If accept() runs out of heap, a port may
# lose the connection for ever (esp32: its descriptor, rp2 from 1.28: its control block); if
# register() does, it leaves an entry that makes the next poll crash. So a connection is accepted
# only where there is heap for both.
from slotmq.constants import HUP, IN, QUOTA_MOST, QUOTA_SOCKETS
from slotmq.net import closing
from slotmq.platform import heap, ondemand

_ACCEPTS = 4  # new connections of a listener in one turn
# Pieces of 32 words of heap, by which a list is copied faster: for a connection's objects, and 6
# words for each slot where the tables of of_stream and of the poller may grow.
_NEEDS = 4
_SLOTS_EACH = 5
_COPIED = 32
_SOCKETS_OPENED = 24  # index in stats


class Listener:
    """A listening socket; accept() -> (stream, the peer's address), and perhaps the Pipe of
    net/websocket.py around the stream; or None: no client waits."""

    def __init__(self, socket, accept, quota):
        self.socket = socket
        self.accept = accept
        self.quota = quota
        self.is_open = False


class Listeners:
    def __init__(self, loop):
        self.loop = loop
        self.listeners = []
        self.failed = False  # has a listener stopped for a lack of sockets or heap?
        self.poller = loop.poller
        self.peak = 0  # the tables have had so many entries, and do not shrink

    def add(self, socket, accept, most=0, options=None):
        """Accept connections of a socket. most: max_connections; 0: no bound; None: the quota of
        the listener before applies to both together. options: settings of its own by name."""
        if options:
            ways = ondemand.take("net.protocols", 0)
            accept = ways.handle(self.loop, accept, options)
        quota = self.listeners[-1].quota if most is None else [most or 0xFFFF, 0, 0, options]
        listener = Listener(socket, accept, quota)
        self.listeners.append(listener)
        self.loop.watch(socket, lambda _: self._accept(listener))
        listener.is_open = True

    def close(self):
        for listener in self.listeners:
            if listener.is_open:
                self._stop(listener)
            listener.socket.close()
        self.listeners = []

    def start(self):
        """Let the listeners that had to stop accept again."""
        heap.lift()
        self.failed = False
        for listener in self.listeners:
            if not listener.is_open:
                listener.is_open = self._register(listener.socket)
                self.failed = self.failed or not listener.is_open
        heap.drop()

    def _register(self, stream):
        # Poll for a stream, and allocate what else it needs. False: the heap or the system's
        # memory is used up; for a listener the next tick tries again.
        loop = self.loop
        try:
            self._make_space()
            loop.poller.register(stream, IN | HUP)
            loop.of_stream.setdefault(stream, 0)
            self.peak = max(self.peak, len(loop.of_stream))
            return True
        except (MemoryError, OSError):
            loop.poller.unregister(stream)
            return False

    def _make_space(self):
        # Raise MemoryError now if there is too little heap, and not half-way. It is free at once.
        # (The peak says nothing where other code has streams of its own there.)
        loop = self.loop
        pieces = _NEEDS
        if len(loop.of_stream) >= self.peak or loop.poller is not self.poller:
            pieces += loop.conns.slots // _SLOTS_EACH
        try:
            space = [None] * _COPIED * pieces
        except MemoryError:
            ondemand.forget_all()
            space = [None] * _COPIED * pieces
        space.clear()

    def _accept(self, listener):
        loop = self.loop
        conns = loop.conns
        quota = listener.quota
        peak = self.peak
        for k in range(_ACCEPTS):
            if conns.count == conns.slots or quota[QUOTA_SOCKETS] > quota[QUOTA_MOST]:
                if k == 0 and not closing.make_way(loop):  # k > 0: perhaps no other client waits
                    self._stop(listener)
                return
            if k and peak == self.peak <= len(loop.of_stream):
                return  # perhaps nobody else waits, and a check for so much space takes long
            try:
                self._make_space()
                found = listener.accept()
            except (MemoryError, OSError):
                self._stop(listener)  # out of sockets or heap: the next tick tries again
                self.failed = True
                return
            if found is None:
                return
            stream = found[0]
            if not self._register(stream):
                stream.close()
                return
            loop.of_stream[stream] = conn = conns.take(stream, loop.broker.now)
            conns.source[conn] = found[1]
            loop.broker.stats[_SOCKETS_OPENED] += 1
            quota[QUOTA_SOCKETS] += 1
            conns.quota[conn] = quota
            if len(found) > 2:
                found[2].opened(conn)

    def _stop(self, listener):
        listener.is_open = False
        self.loop.poller.unregister(listener.socket)
