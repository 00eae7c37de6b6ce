# listeners.py - listeners, and the connections that come in through them.
#
# Owns whether a listener accepts. Of its max_connections, as of the table's slots, there
# is one in reserve: the client too many comes in, and CONNECT tells it so, or lets it
# take over its own session. Those after it wait in the system's backlog until one ends.
#
# On the control plane: allocates, and lifts the lock on the heap for it. Where accept() finds no
# heap a port may lose the connection for ever (esp32: its descriptor, rp2 from 1.28: its control
# block), and register() leaves an entry that makes the next poll crash. So who comes in is let in
# only where there is heap for all of that.
from slotmq.net import closing
from slotmq.platform import heap, ondemand
from slotmq.platform.runtime import const

_IN = const(1)
_HUP = const(16)
_ACCEPTS = const(4)  # new connections of a listener in one turn
_NEEDS = const(96)  # words of heap, for a connection's objects
_NEEDS_EACH = const(6)  # and for each slot: tables of of_stream and of the poller that grow
# What a listener may have: [max_connections, its sockets, those that are connected]
_QUOTA_MOST = const(0)
_QUOTA_SOCKETS = const(1)


class Listener:
    """A listener; accept() -> (stream, the peer's address) or None."""

    def __init__(self, socket, accept, quota):
        self.socket = socket
        self.accept = accept
        self.quota = quota
        self.is_open = False


class Listeners:
    def __init__(self, loop):
        self.loop = loop
        self.listeners = []
        self.failed = False  # could not accept though there was a slot

    def add(self, socket, accept, most=0):
        """At most so many connected, 0: no bound, None: counted with the listener before."""
        quota = self.listeners[-1].quota if most is None else [most or 0xFFFF, 0, 0]
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

    def left(self, conn):
        """A connection is closed: there is space for another one."""
        self.loop.conns.quota[conn][_QUOTA_SOCKETS] -= 1
        self.start()

    def start(self):
        """Accept again, where it was stopped."""
        heap.lift()
        self.failed = False
        for listener in self.listeners:
            if not listener.is_open:
                listener.is_open = self._register(listener.socket)
                self.failed = self.failed or not listener.is_open
        heap.drop()

    def _register(self, stream):
        # False: there is no heap for it (or the system has no more): tried again with the tick.
        poller = self.loop.poller
        try:
            self._make_space()
            poller.register(stream, _IN | _HUP)
            return True
        except (MemoryError, OSError):
            poller.unregister(stream)
            return False

    def _make_space(self):
        # MemoryError now, and not half way. What this takes is free again at once.
        words = _NEEDS + _NEEDS_EACH * self.loop.conns.slots
        try:
            space = [None] * words
        except MemoryError:
            ondemand.forget_all()
            space = [None] * words
        space.clear()

    def _accept(self, listener):
        loop = self.loop
        conns = loop.conns
        quota = listener.quota
        for k in range(_ACCEPTS):
            if conns.count == conns.slots or quota[_QUOTA_SOCKETS] > quota[_QUOTA_MOST]:
                if k == 0 and not closing.make_way(loop):  # else: does anybody wait?
                    self._stop(listener)
                return
            try:
                self._make_space()
                found = listener.accept()
            except (MemoryError, OSError):
                self._stop(listener)  # out of sockets or heap: tried again with the next tick
                self.failed = True
                return
            if found is None or not self._watch(found[0]):
                return
            stream = found[0]
            conn = loop.broker.opened(stream)
            conns.source[conn] = found[1]
            quota[_QUOTA_SOCKETS] += 1
            conns.quota[conn] = quota
            loop.of_stream[stream] = conn

    def _watch(self, stream):
        # What a connection takes of the heap beside its slot; False: there is no space.
        try:
            self.loop.of_stream[stream] = 0
            if self._register(stream):
                return True
        except MemoryError:
            pass
        self.loop.of_stream.pop(stream, None)
        stream.close()
        return False

    def _stop(self, listener):
        listener.is_open = False
        self.loop.poller.unregister(listener.socket)
