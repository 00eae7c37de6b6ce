# log_outgoing.py - log lines about PUBLISH that go out, while debug lines are logged. It stands
# around Loop.flush() and write() and follows the packets in what the socket took.
#
# Owns, for each connection, how many bytes of a packet are still to come (-1: not known, until its
# buffer is empty) and the bytes of a head that is not whole. Loaded for the first log mask with
# debug lines, and stays. Allocates, with the lock on the heap lifted.
from slotmq.constants import DEBUG, NONE, PUBLISH_TYPE, TOPIC_SHOWN
from slotmq.platform import heap, ondemand
from slotmq.platform.arrays import i32

_FLUSH = 6  # of Loop.at_hand


def make(broker, loop):
    """Begin; -> what is to be kept."""
    return Outgoing(broker, loop)


class Outgoing:
    def __init__(self, broker, loop):
        self.broker = broker
        self.conns = broker.conns
        self.streams = self.conns.stream[:]  # of which the columns speak
        self.left = i32(len(self.streams))
        self.head = [b""] * len(self.streams)
        for conn in range(len(self.streams)):
            self.left[conn] = -1
        self.inner_flush, self.inner_write = loop.flush, loop.write
        loop.flush = broker.flush = loop.at_hand[_FLUSH] = self.flush
        loop.write = broker.write = self.write

    def flush(self, conn):
        """Loop.flush()"""
        conns = self.conns
        if not self.broker._log_mask & DEBUG:
            self.left[conn] = -1
            self.inner_flush(conn)
            return
        base = conn * conns.tx_bytes
        if self.streams[conn] is not conns.stream[conn]:
            self.streams[conn] = conns.stream[conn]
            self.left[conn] = 0
            self.head[conn] = b""
        with heap.lifted:
            data = bytes(conns.tx[base : conns.tx_end[conn]])
        held = getattr(conns.attached[conn], "is_held", 0)  # a byte that does not leave
        self.inner_flush(conn)
        done = len(data) - (conns.tx_end[conn] - base)
        with heap.lifted:
            self._took(conn, data[min(held, done) : done])
        if done == len(data) and conns.chunked_msg[conn] == NONE:
            self.left[conn] = max(0, self.left[conn])

    def write(self, conn, buf, start, n):
        """Loop.write(), of the rest of a packet whose head was in the buffer"""
        done = self.inner_write(conn, buf, start, n)
        if self.left[conn] > 0:
            self.left[conn] = max(0, self.left[conn] - done)
        return done

    def _took(self, conn, data):
        if self.left[conn] < 0:
            return
        data = self.head[conn] + data
        self.head[conn] = b""
        at = 0
        while at < len(data):
            if not self.left[conn]:
                self.left[conn] = self._packet(conn, data[at : at + TOPIC_SHOWN + 7])
                if not self.left[conn]:
                    self.head[conn] = data[at:]
                    return
            n = min(self.left[conn], len(data) - at)
            self.left[conn] -= n
            at += n

    def _packet(self, conn, data):
        # -> its length, or 0: its head is not whole
        size = shift = 0
        at = 1
        while at < len(data):
            size |= (data[at] & 127) << shift
            shift += 7
            at += 1
            if data[at - 1] < 128:
                break
        else:
            return 0
        session = self.conns.session[conn]
        if data[0] >> 4 == PUBLISH_TYPE and session != NONE:
            n = data[at] << 8 | data[at + 1] if at + 2 <= len(data) else size
            if len(data) < at + 2 + min(n, TOPIC_SHOWN):
                return 0
            broker = self.broker
            words = ondemand.take("status.log_packets", broker.now)
            what = words.publish(data, data[0] & 15, at + 2, n, len(data))
            what = words.who(broker, conn), what, at + size
            broker.log(DEBUG, "Sending PUBLISH to %s (%s%d bytes)" % what)
        return at + size
