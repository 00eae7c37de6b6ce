# network_stack.py - base of the fakes of the ports' sockets: a board's network stack with its time
# and its heap, the other ends of connections, and what the sockets of all ports have in common.
#
# It runs on CPython and on MicroPython, also while the broker's loop has locked the heap: a fake
# lifts the lock for its own work. What the port's C code would allocate fails then, so each call
# asks first whether the heap was locked: Heap.enter() ... alloc(point, locked) ... leave().
from fakes import Clock

from slotmq.platform import heap as lock

_EAGAIN = 11
_PEER_ADDRESS = ("192.168.4.2", 50000)


class Heap:
    """MicroPython's heap, as C code of a port uses it.

    `points` are the names of the places that have allocated. One of them fails as often as
    fail(point, times) says; all of them fail while the heap is locked."""

    def __init__(self):
        self.points = []
        self._failing = None
        self.times = 0  # that are left

    def fail(self, point, times=1):
        self._failing = point
        self.times = times

    def enter(self):
        locked = lock._state[0] and not lock._state[1]
        lock.lift()
        return locked

    def leave(self):
        lock.drop()

    def alloc(self, point, locked):
        if point not in self.points:
            self.points.append(point)
        if point == self._failing and self.times:
            self.times -= 1
            raise MemoryError("no heap: " + point)
        if locked:
            raise MemoryError("heap is locked: " + point)


class Peer:
    """The other end of a connection, on another machine.

    It sends with send(), end() (FIN) and reset() (RST). What it was sent is in `received`. It
    acknowledges everything after `rtt_ms`, or `rate` bytes a millisecond at most; after stop(n)
    it acknowledges n bytes more (its machine's receive buffer) and then nothing, until go_on().
    `state` is "open", "ended" (the broker's FIN has come) or "reset"."""

    rtt_ms = 0
    rate = None

    def __init__(self, stack):
        self.stack = stack
        self.received = bytearray()
        self.to_send = bytearray()  # what does not fit the board's window yet
        self.takes = None  # bytes that it will acknowledge; None: all
        self.has_ended = False
        self.state = "open"
        self._last_ms = stack.clock.ms
        self._budget = 0

    def send(self, data):
        self.to_send += data
        self.stack.carry()

    def end(self):
        self.has_ended = True
        self.stack.carry()

    def reset(self):
        self.state = "reset"
        self.stack.lose(self, "reset")

    def vanish(self):
        """It answers no more, and the board's stack has given up the connection."""
        self.stack.lose(self, "aborted")

    def stop(self, more=0):
        self.takes = more

    def go_on(self):
        self.takes = None
        self.stack.carry()

    def may_take(self, n):
        # -> how many of n bytes it acknowledges now
        now = self.stack.clock.ms
        if self.rate is not None:
            self._budget = min(self._budget + self.rate * (now - self._last_ms), 65535)
            n = min(n, self._budget)
        self._last_ms = now
        return n if self.takes is None else min(n, self.takes)

    def take(self, data):
        self.received += data
        if self.rate is not None:
            self._budget -= len(data)
        if self.takes is not None:
            self.takes -= len(data)


class Udp:
    """A UDP socket to a name server: Stack.names(packet) has its answer, or None."""

    def __init__(self, stack):
        self.stack = stack
        self.waiting = []
        stack.udp.append(self)

    def setblocking(self, on):
        assert not on

    def connect(self, address):
        assert address[1] == 53

    def send(self, data):
        self.stack.route()
        self.stack.asked.append(bytes(data))
        answer = self.stack.names(data) if self.stack.names else None
        if answer and not self.waiting:  # 1.25 keeps one packet
            self.waiting.append(answer)

    def recv(self, n):
        if not self.waiting:
            raise OSError(_EAGAIN)
        return self.waiting.pop()[:n]

    def close(self):
        self.stack.udp.remove(self)


class Stack:
    """A board's network stack and the time in which things happen."""

    TICK_MS = 1  # of the port's waits
    SYN_MS = 30  # until the answer to a SYN is there
    EINPROGRESS, EHOSTUNREACH = 115, 113

    def __init__(self):
        self.clock = Clock()
        self.heap = Heap()
        self.printed = []  # lines on the console
        self.listeners = []  # listening sockets
        self.garbage = []  # sockets without a reference: the collector will close them
        self.names = None
        self.asked = []  # packets to the name server
        self.udp = []  # open sockets
        self.has_link = True  # without it nothing arrives, and there is no route
        self.servers = []  # (host, port): what answers a SYN; others refuse it
        self.dialled = []  # the Peers that were connected to
        self._later = []  # (ms, callback): soft timers and scheduled callbacks

    def later(self, ms, callback):
        """Call this in so many milliseconds: in a pass_time(), a wait for events, a write that
        waits. As on a board the heap is locked meanwhile if the program has locked it."""
        self._later.append((self.clock.ms + ms, callback))

    def pass_time(self, ms, locked=False):
        end = self.clock.ms + ms
        while self.clock.ms < end:
            self.clock.ms += min(self.TICK_MS, end - self.clock.ms)
            self.carry()
            self._call(locked)

    def _call(self, locked):
        for due in [item for item in self._later if item[0] <= self.clock.ms]:
            self._later.remove(due)
            if locked:
                lock.drop()
            try:
                due[1]()
            finally:
                if locked:
                    lock.lift()

    def find_listener(self, port):
        for listener in self.listeners:
            if listener.port == port:
                return listener
        raise AssertionError("no socket listens there")

    def route(self):
        """Raise OSError if there is no way to another host."""
        if not self.has_link:
            raise OSError(self.EHOSTUNREACH)

    def collect(self):
        """A garbage collection: finalisers close sockets without a reference."""
        for sock in self.garbage:
            sock.close()
        self.garbage = []

    def carry(self):
        """What is on its way arrives, and is acknowledged."""
        raise NotImplementedError

    def lose(self, peer, how):
        """A connection has ended; how: "reset" by the peer, or "aborted" by the stack."""
        raise NotImplementedError


class BaseSocket:
    """What sockets of all ports do alike: py/stream.c, and the steps of accept().

    A port's class has _accept(), _read() and _write(), which return None for EAGAIN."""

    def __init__(self, board):
        self.board = board
        self.blocks = True
        self.waiting = []  # connections that nobody has accepted
        self.port = 0

    def setblocking(self, on):
        self.blocks = on

    def accept(self):
        heap = self.board.heap
        locked = heap.enter()
        try:
            sock = self._accept(locked)
            try:
                heap.alloc("accept: address", locked)
            except MemoryError:
                self.board.garbage.append(sock)
                raise
            return sock, _PEER_ADDRESS
        finally:
            heap.leave()

    def readinto(self, buf, n=None):
        """mp_stream_readinto: read until there are n bytes, the end, or nothing now. An error
        discards what was read before it."""
        self.board.heap.enter()
        try:
            n = len(buf) if n is None else n
            done = 0
            while done < n:
                data = self._read(n - done)
                if data is None:
                    return done or None
                if not data:
                    break
                buf[done : done + len(data)] = data
                done += len(data)
            return done
        finally:
            self.board.heap.leave()

    def recv(self, n):
        """One read, into memory of its own (lwip_socket_recv, socket_recv)."""
        locked = self.board.heap.enter()
        try:
            self.board.heap.alloc("recv: bytes", locked)
            data = self._read(n)
            if data is None:
                raise OSError(_EAGAIN)
            return data
        finally:
            self.board.heap.leave()

    def write(self, buf, off=0, n=None):
        """mp_stream_write: one call."""
        locked = self.board.heap.enter()
        try:
            n = len(buf) if n is None else n
            return self._write(bytes(memoryview(buf)[off : off + n]), locked)
        finally:
            self.board.heap.leave()
