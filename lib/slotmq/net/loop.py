# loop.py - the only file that reads from and writes to sockets. A turn waits for events, reads
# once from each readable stream, ticks, writes once to each connection with output, and closes
# the connections that have ended.
#
# The broker, the poller (register, modify, unregister, ipoll), the clock (ticks_ms,
# ticks_diff) and the listeners are parameters, so that the simulator runs this same loop.
# A stream has readinto(buf, n) -> count, 0 at the end, None for "nothing now";
# write(buf, off, n) -> count or None; close(); recv(n) where readinto() may read more than once.
# Events are poll's: IN 1, OUT 4, ERR 8, HUP 16, NVAL 32.
#
# The loop runs with MicroPython's heap locked. It unlocks the heap for what may allocate:
# CONNECT, SUBSCRIBE, connections that open or close, the log, $SYS, hooks. So an allocation in
# the steady state is an error at once, and call frames are on the C stack.
# (poll.modify allocates only where objects lie above 2 GB.)
from slotmq.constants import (ALL_BITS, BLOCKED, BYTES_OUT, DIRTY_CONNS, EACH_TURN, EAGAIN,
    ENOBUFS, GONE, HUP, IDLE, IN, LAST_MS, LINGERING, LOST, NONE, NOW, OUT, PENDING_COUNT, SERVED,
    TICK)
from slotmq.fast import copy, next_dirty, pump
from slotmq.net import closing
from slotmq.net.listeners import Listeners
from slotmq.net.timers import tick
from slotmq.platform import heap, ondemand
from slotmq.protocol.dispatch import readable, receive

_STALL = 10  # tenths of a second: more than any wait for events


class Loop:
    def __init__(self, broker, poller, clock):
        # First what each turn looks up: MicroPython finds it at once.
        self.at_hand = self.incoming = self.outgoing = self.lwip = None  # platform/lwip.py
        self.broker = broker
        self.conns = conns = broker.conns
        self.poller = poller
        self.ticks_diff = clock.ticks_diff
        self.ticks_ms = clock.ticks_ms
        conns.counts[LAST_MS] = clock.ticks_ms() & ALL_BITS
        self.next_tick = 0
        self.stalled = False
        self.stopping = False
        self.of_stream = {}  # stream: its connection; below 0: an index of callbacks
        # For flush(), finish_turn(), _serve() and pump(): one look-up each, since look-ups are
        # most of what a turn with one small packet costs.
        tx = conns.tx, conns.tx_bytes, conns.tx_end
        self.outgoing = (broker,) + tx + (conns.attached, broker.stats)
        self.at_end = broker, conns, conns.counts, broker.deliveries.pending
        self.incoming = broker, conns.attached, broker.rx
        self.callbacks = []
        self.listeners = Listeners(self)
        self.paused = bytearray(broker.conns.slots)  # events that a connection is not polled for
        self.errno = 0  # of the last error of a socket, see bridge/bridges.py
        self.exhausted = 0  # allocations that failed because the heap was locked
        self.exceptions = 0  # other exceptions that a connection or a message has caused
        broker.flush = self.flush
        broker.write = self.write
        self.at_hand = [self, broker, self.of_stream, poller.ipoll, self._serve, broker.drain,
            broker.flush, clock.ticks_ms, conns.columns, heap._state]  # fmt: skip

    def watch(self, stream, callback):
        """Call callback(stream) whenever the stream is readable."""
        self.callbacks.insert(0, callback)
        self.of_stream[stream] = -len(self.callbacks)
        self.poller.register(stream, IN)
        self.listeners.peak = 0  # the tables may have to grow again

    def run(self):
        """Run turns until stop(), then close(). RuntimeError: within a turn."""
        if heap.in_turn():
            self.refuse()
        try:
            while not self.stopping:
                self.turn(250)
        finally:
            self.close()

    def close(self):
        """Publish or store the wills, then close everything."""
        self.stopping = True  # nobody lingers
        ondemand.take("control", self.broker.now).end(self)
        self.listeners.close()

    def turn(self, timeout_ms=250):
        """Wait for events for at most this time, and handle them. RuntimeError: within a turn."""
        # The heap is not locked yet. So this function's frame must not be larger than 44 bytes:
        # MicroPython would take it from the heap, in each turn.
        pump(self.at_hand, timeout_ms)

    def failed(self, error):
        """An exception ends the turn. It is logged, or raised again, since the program gets it."""
        # The heap is as it was when it was raised.
        counts = self.conns.counts
        conn = counts[SERVED]
        counts[SERVED] = -1
        self.broker.turn_soon = 1  # there may be output that has not left
        try:
            # Disconnect the client that is being read: its stream may be in the middle of a
            # packet. What ends a program, an error of its own callback or hook, and one of the
            # wait for events leave the turn. What else input causes must not end the broker.
            if not isinstance(error, Exception) or self.broker.caught(error, conn):
                raise error
        finally:
            heap.unlock()

    # What pump() calls

    def refuse(self):
        """It would unlock the heap under the turn that has called the program."""
        raise RuntimeError("turn(), run(): not in a callback or a hook")

    def _serve(self, conn, n, columns):
        # The common case: a connected client has sent something, and the fast path handles it in
        # the receive buffer.
        broker, pipes, rx = self.incoming
        try:
            n = pipes[conn].readinto(rx, n)
        except OSError as error:
            self.errno = error.args[0]
            n = None if self.errno == EAGAIN else 0
        if n:
            at = broker.handle_fast(columns, conn, rx, 0, n)
            if at < n:
                receive(broker, conn, rx, at, n)
        elif n == 0:
            broker.end(conn, LOST)

    def finish(self, passed):
        """What is seldom due in a turn. passed: ms since broker.now was right."""
        broker = self.broker
        counts = self.conns.counts
        tenths = passed // 100
        if tenths:
            # In 30 bits; their sum would be an object.
            last = counts[LAST_MS] - ALL_BITS + tenths * 100
            counts[LAST_MS] = last - 1 if last > 0 else last + ALL_BITS
            broker.now += tenths
            broker.clock[NOW] = broker.now
            # After a stall read all clients first, then check keep-alive.
            self.stalled = tenths >= _STALL and not self.stalled
            if broker.now >= self.next_tick and not self.stalled:
                self.next_tick = broker.now + TICK
                tick(broker)
                if self.lwip:
                    self.lwip.tick()
                if self.listeners.failed:
                    self.listeners.start()
        if broker.turn_soon:
            broker.resume_scans()
        self.finish_turn()
        if counts[EACH_TURN]:
            self._resume()

    def _other_event(self, conn, stream, event):
        if conn < 0:
            heap.lift()
            self.callbacks[conn](stream)
            heap.drop()
            return
        if self.conns.state[conn] == LINGERING:
            closing.discard(self, conn, stream, event)
            return
        if event & OUT:
            self.writable(conn)
        if event & ~OUT:
            if event & GONE and not readable(self.broker, conn):
                self.broker.end(conn, LOST)
            else:
                self._read(conn, self.conns.attached[conn], event & GONE)

    # In

    def _read(self, conn, stream, gone):
        # Read once, at most as many bytes as there is space for answers, and handle the packets.
        broker = self.broker
        n = readable(broker, conn)
        if n == 0:
            # It is not read, but it sends: that is activity.
            self.conns.last_activity[conn] = broker.now
            self.pause(conn, self.paused[conn] | IN)
            return
        rx = broker.rx
        try:
            if gone and hasattr(stream, "recv"):
                # MicroPython's readinto() reads until it has n bytes. If an error follows fewer,
                # it raises, and a DISCONNECT before a reset would be lost. recv() reads once.
                data = b""
                with heap.lifted:
                    try:
                        data = stream.recv(n)
                    except MemoryError:  # the peer has closed the connection in any case
                        pass
                n = len(data)
                copy(rx, 0, data, 0, n)
            else:
                n = stream.readinto(rx, n)
        except OSError as error:
            self.errno = error.args[0]
            n = None if self.errno == EAGAIN else 0
        if n:
            receive(broker, conn, rx, 0, n)
        elif n == 0:
            broker.end(conn, LOST)

    def pause(self, conn, events):
        """Stop polling a connection for these events."""
        before = self.paused[conn]
        if before != events:
            self.conns.counts[EACH_TURN] += (events > 0) - (before > 0)
            self.paused[conn] = events
            self.poll_for(conn)

    def _resume(self):
        # Poll again for what may go on: paused input waits for space, paused output for the
        # journal or for lwIP's memory. A free reassembly buffer goes to the connection whose
        # packet began first.
        conns = self.conns
        first = NONE
        for conn in range(conns.slots):
            paused = self.paused[conn]
            if paused & IN and readable(self.broker, conn):
                paused &= ~IN
                if conns.waits_for_reassembly(conn):
                    if first == NONE or conns.buffered_since[conn] < conns.buffered_since[first]:
                        first = conn
            if paused & OUT and self._may_write(conn):
                paused &= ~OUT
            self.pause(conn, paused)
        if first != NONE:
            conns.take_reassembly(first)
        self.finish_turn()

    def _may_write(self, conn):
        journal = self.broker.journal
        if journal and journal.always and not journal.whole:
            return False
        if self.lwip and not self.lwip.may_send(self.conns.stream[conn]):
            self.broker.turn_soon = self.broker.turn_soon or 2
            return False
        return True

    def poll_for(self, conn):
        """Tell the poller which events this connection waits for."""
        mask = IN | HUP
        if self.conns.out[conn] == BLOCKED:
            mask |= OUT
        mask &= ~self.paused[conn]
        heap.lift()
        self.poller.modify(self.conns.stream[conn], mask)
        heap.drop()

    # Out

    def write(self, conn, buf, off, n):
        """Write bytes that follow what flush() has written; -> how many the socket took. An error
        ends the connection."""
        pipe = self.conns.attached[conn]
        lwip = self.lwip
        try:
            done = (lwip.write(pipe, buf, off, n) if lwip else pipe.write(buf, off, n)) or 0
        except OSError as error:
            done = self._failed(conn, error)
        except Exception:
            self.broker.end(conn, LOST)
            raise
        self.broker.stats[BYTES_OUT] += done
        return done

    def _failed(self, conn, error):
        # After these two errors nothing was sent. After any other, also ENOMEM, that is unknown.
        self.errno = error.args[0]
        if self.errno not in (EAGAIN, ENOBUFS):
            self.broker.end(conn, LOST)
        return 0

    def flush(self, conn):
        """Write the outgoing buffer, if the journal has stored what the packets in it promise.

        If the socket does not take all, the connection is blocked until it is writable."""
        broker, tx, tx_bytes, end, pipes, stats = self.outgoing
        base = conn * tx_bytes
        n = end[conn] - base
        journal = broker.journal
        if journal and not journal.commit():
            if n and not broker.no_commit:
                self._block(conn, base, n, 0)
                self.pause(conn, self.paused[conn] | OUT)
            return
        lwip = self.lwip
        try:
            if lwip:
                done = lwip.write(pipes[conn], tx, base, n)
            else:
                done = pipes[conn].write(tx, base, n)
        except OSError as error:
            done = self._failed(conn, error)
        except Exception:
            broker.end(conn, LOST)
            raise
        if done == n:
            end[conn] = base
            stats[BYTES_OUT] += n
        elif n:
            self._block(conn, base, n, done or 0)
            if lwip:  # its sockets count as writable whether or not there is memory
                broker.turn_soon = broker.turn_soon or 2
                self.pause(conn, self.paused[conn] | OUT)

    def _block(self, conn, base, n, done):
        # The rest waits until the socket is writable.
        conns = self.conns
        self.broker.stats[BYTES_OUT] += done
        conns.tx_end[conn] = base + n - done
        copy(conns.tx, base, conns.tx, base + done, n - done)
        if conns.out[conn] != BLOCKED:
            conns.out[conn] = BLOCKED
            self.poll_for(conn)

    def writable(self, conn):
        """The socket is writable again."""
        if self.paused[conn] & IN:
            # Its PINGREQ is not read now, but it takes bytes: that is activity.
            self.conns.last_activity[conn] = self.broker.now
        self.flush(conn)
        if self.conns.is_empty(conn):
            self.conns.out[conn] = IDLE
            self.poll_for(conn)
            self.broker.resume(conn)

    def finish_turn(self):
        """Write once to each connection with output, then close the connections that have ended.

        Closing one may publish its will, which is output for others."""
        broker, conns, counts, pending = self.at_end
        if pending[PENDING_COUNT]:
            broker.drain()
        while True:
            # Before the list is emptied: if a commit runs out of heap, the connections stay on it.
            broker.journal and broker.journal.commit()
            while counts[DIRTY_CONNS]:
                conn = next_dirty(conns.columns)
                if conn != NONE:
                    self.flush(conn)
            if not broker.ending_count:
                return
            broker.ending_count -= 1
            closing.close(self, broker.ending[broker.ending_count])
            broker.drain()
