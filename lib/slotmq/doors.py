# doors.py - listeners, and the connections that come in through them.
#
# Owns who came through which listener, and whether any is accepted at all: when not
# one slot is left, the reserve taken too, new connections wait in the system's backlog
# until a slot is free. On the control plane: allocates.
from slotmq.runtime import const

_IN = const(1)
_ACCEPTS = const(4)  # new connections of a listener in one turn


class Door:
    """A listener; accept() -> stream or None; most connections at a time, 0: no bound."""

    def __init__(self, listener, accept, most):
        self.listener = listener
        self.accept = accept
        self.most = most
        self.count = 0


class Doors:
    def __init__(self, loop):
        self.loop = loop
        self.doors = []
        self.door_of = [None] * loop.conns.slots
        self.accepting = True
        self.failed = False  # could not accept though there was a slot

    def add(self, listener, accept, most=0):
        door = Door(listener, accept, most)
        self.doors.append(door)
        self.loop.watch(listener, lambda _: self._accept(door))
        if not self.accepting:
            self.loop.poller.unregister(listener)

    def close(self):
        self._stop()
        for door in self.doors:
            door.listener.close()
        self.doors = []

    def left(self, conn):
        """A connection is closed: there is room for another one."""
        self.door_of[conn].count -= 1
        self.door_of[conn] = None
        self.start()

    def start(self):
        """Accept again, if it was stopped."""
        self.failed = False
        if not self.accepting:
            self.accepting = True
            for door in self.doors:
                self.loop.poller.register(door.listener, _IN)

    def _accept(self, door):
        loop = self.loop
        for _ in range(_ACCEPTS):
            if loop.conns.count == loop.conns.slots:
                self._stop()
                return
            try:
                stream = door.accept()
            except (MemoryError, OSError):
                self._stop()  # out of sockets or heap: tried again with the next tick
                self.failed = True
                return
            if stream is None:
                return
            if door.most and door.count >= door.most:
                stream.close()
                continue
            if not self._watch(stream):
                return
            conn = loop.broker.opened(stream)
            door.count += 1
            self.door_of[conn] = door
            loop.of_stream[stream] = conn

    def _watch(self, stream):
        # What a connection takes of the heap beside its slot; False: there is no room.
        try:
            self.loop.of_stream[stream] = 0
            self.loop.poller.register(stream, _IN)
        except MemoryError:
            self.loop.of_stream.pop(stream, None)
            stream.close()
            return False
        return True

    def _stop(self):
        if self.accepting:
            self.accepting = False
            for door in self.doors:
                self.loop.poller.unregister(door.listener)
