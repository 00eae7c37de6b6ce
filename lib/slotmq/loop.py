# loop.py - the only place that reads and writes. A turn: wait for events, read each
# stream that has something once, tick, write each connection that has something
# once, close what has ended.
#
# Given a broker, a poller (register, modify, unregister, ipoll), a clock
# (ticks_ms, ticks_diff) and listeners, so that the simulator runs this very loop.
# A stream has readinto(buf, n) -> count, 0 at the end, None for "nothing now";
# write(buf, off, n) -> count or None; close(). Events are poll's: IN 1, OUT 4,
# ERR 8, HUP 16, NVAL 32.
#
# The loop runs with MicroPython's heap locked, and lifts the lock for what may
# allocate: CONNECT, SUBSCRIBE, new connections and closing ones, logs, $SYS, hooks.
# So a steady state that allocates is an error at once, and the frames of calls lie
# on the C stack, which is faster. (poll.modify allocates only where objects lie
# above 2 GB, which is nowhere on a board.)
from slotmq import heap
from slotmq.deliver import pump_pending
from slotmq.intake import readable, receive
from slotmq.runtime import const, copy

_NONE = const(0xFFFF)
_IN = const(1)
_OUT = const(4)
_GONE = const(8 | 16 | 32)
_IDLE = const(0)
_DIRTY = const(1)
_BLOCKED = const(2)
_ENDING = const(3)
_LOST = const(9)
_BYTES_OUT = const(6)
_ENOMEM = const(12)
_EAGAIN = const(11)
_ACCEPTS = const(4)  # new connections a turn
_TICK = const(2)  # tenths of a second between two ticks


class Loop:
    def __init__(self, broker, poller, clock):
        self.broker = broker
        self.conns = broker.conns
        self.poller = poller
        self.clock = clock
        self.last_ms = clock.ticks_ms()
        self.ms = 0  # that make no tenth of a second yet
        self.next_tick = 0
        self.stopping = False
        self.of_stream = {}  # stream -> its connection; below 0: index of a callback
        self.callbacks = []
        self.doors = []
        self.door_of = [None] * broker.conns.slots
        self.accepting = True
        self.paused = bytearray(broker.conns.slots)  # not polled for input
        self.paused_count = 0
        broker.flush = self.flush
        broker.write = self.write

    def watch(self, stream, callback):
        """Call callback(stream) whenever it has something to read."""
        self.callbacks.insert(0, callback)
        self.of_stream[stream] = -len(self.callbacks)
        self.poller.register(stream, _IN)

    def run(self):
        heap.lock()
        try:
            while not self.stopping:
                self._turn(250)
        finally:
            heap.unlock()
            self.close()

    def close(self):
        """End in order: wills go out, everything is closed."""
        self.broker.shut_down()
        self._finish_turn()
        self._stop_accepting()
        for door in self.doors:
            door.listener.close()
        self.doors = []

    def turn(self, timeout_ms):
        """Wait so long at most for events; handle what has come."""
        heap.lock()
        try:
            self._turn(timeout_ms)
        finally:
            heap.unlock()

    def _turn(self, timeout_ms):
        of_stream = self.of_stream
        for stream, event in self.poller.ipoll(timeout_ms):
            conn = of_stream[stream]
            if conn < 0:
                heap.lift()
                self.callbacks[conn](stream)
                heap.drop()
                continue
            if event & _OUT:
                self._writable(conn)
            if event & ~_OUT:
                self._read(conn, stream, event)
        self._keep_time()
        self._finish_turn()
        if self.paused_count:
            self._resume()

    def _keep_time(self):
        clock = self.clock
        now = clock.ticks_ms()
        self.ms += clock.ticks_diff(now, self.last_ms)
        self.last_ms = now
        if self.ms >= 100:
            broker = self.broker
            broker.now += self.ms // 100
            self.ms %= 100
            if broker.now >= self.next_tick:
                self.next_tick = broker.now + _TICK
                broker.tick()

    # In

    def _read(self, conn, stream, event):
        broker = self.broker
        n = readable(broker, conn)
        if n == 0:
            if event & _GONE:
                broker.end(conn, _LOST)
            elif self.conns.state[conn] != _ENDING:
                self._pause(conn, stream)
            return
        try:
            n = stream.readinto(broker.rx, n)
        except OSError:
            n = 0
        if n:
            receive(broker, conn, n)
        elif n == 0:
            broker.end(conn, _LOST)

    def _pause(self, conn, stream):
        if not self.paused[conn]:
            self.paused[conn] = 1
            self.paused_count += 1
            self._poll_for(conn)

    def _resume(self):
        for conn in range(self.conns.slots):
            if self.paused[conn] and readable(self.broker, conn):
                self.paused[conn] = 0
                self.paused_count -= 1
                self._poll_for(conn)
        self._finish_turn()

    def _poll_for(self, conn):
        # Tell the poller what this connection waits for now.
        mask = 0 if self.paused[conn] else _IN
        if self.conns.out[conn] == _BLOCKED:
            mask |= _OUT
        heap.lift()
        self.poller.modify(self.conns.stream[conn], mask)
        heap.drop()

    # Out

    def write(self, conn, buf, off, n):
        """Write at once; -> how many bytes the socket took. An error ends the connection."""
        try:
            done = self.conns.stream[conn].write(buf, off, n)
        except OSError as error:
            done = None
            if error.args[0] not in (_EAGAIN, _ENOMEM):
                self.broker.end(conn, _LOST)
        if not done:
            return 0
        self.broker.stats[_BYTES_OUT] += done
        return done

    def flush(self, conn):
        """Write what waits in the connection's outgoing buffer; the rest blocks it."""
        conns = self.conns
        start = conns.tx_start[conn]
        n = conns.tx_end[conn] - start
        done = self.write(conn, conns.tx, start, n) if n else 0
        base = conn * conns.tx_bytes
        conns.tx_start[conn] = base
        conns.tx_end[conn] = base + n - done
        if done == n:
            if conns.out[conn] == _BLOCKED:
                conns.out[conn] = _IDLE
                self._poll_for(conn)
            return
        copy(conns.tx, base, conns.tx, start + done, n - done)
        if conns.out[conn] != _BLOCKED:
            conns.out[conn] = _BLOCKED
            self._poll_for(conn)

    def _writable(self, conn):
        self.flush(conn)
        if self.conns.out[conn] != _BLOCKED:
            self.broker.go_on(conn)

    def _finish_turn(self):
        # Write once to each connection that has something, then close what has ended;
        # the wills of those may give others something again.
        broker = self.broker
        conns = self.conns
        counts = conns.counts
        pump_pending(broker)
        while counts[0] or broker.ending_count:
            i = 0
            while i < counts[0]:
                conn = conns.dirty[i]
                if conns.out[conn] == _DIRTY:
                    conns.out[conn] = _IDLE
                    self.flush(conn)
                i += 1
            counts[0] = 0
            if broker.ending_count:
                broker.ending_count -= 1
                self._close(broker.ending[broker.ending_count])
                pump_pending(broker)

    def _close(self, conn):
        conns = self.conns
        stream = conns.stream[conn]
        heap.lift()
        self.poller.unregister(stream)
        del self.of_stream[stream]
        stream.close()
        if self.paused[conn]:
            self.paused[conn] = 0
            self.paused_count -= 1
        self.broker.closed(conn)
        self.door_of[conn].count -= 1
        self.door_of[conn] = None
        self._start_accepting()
        heap.drop()

    # Listeners

    def add_listener(self, listener, accept, most=0):
        """Take connections from it; accept() -> stream or None; most at a time, 0: no bound."""
        door = Door(listener, accept, most)
        self.doors.append(door)
        self.watch(listener, lambda _: self._accept(door))

    def _accept(self, door):
        for _ in range(_ACCEPTS):
            if self.conns.count == self.conns.slots:
                self._stop_accepting()
                return
            stream = door.accept()
            if stream is None:
                return
            if door.most and door.count >= door.most:
                stream.close()
                continue
            conn = self.broker.opened(stream)
            door.count += 1
            self.door_of[conn] = door
            self.of_stream[stream] = conn
            self.poller.register(stream, _IN)

    def _stop_accepting(self):
        # Not one slot left, the reserve is taken too: new ones wait in the backlog.
        if self.accepting:
            self.accepting = False
            for door in self.doors:
                self.poller.unregister(door.listener)

    def _start_accepting(self):
        if not self.accepting:
            self.accepting = True
            for door in self.doors:
                self.poller.register(door.listener, _IN)


class Door:
    """A listener, and how many connections came through it."""

    def __init__(self, listener, accept, most):
        self.listener = listener
        self.accept = accept
        self.most = most
        self.count = 0
