# log_topics.py - the log as messages, with `log_dest topic`: $SYS/broker/log/E, W, N, I for
# errors, warnings, notices and information, M/subscribe and M/unsubscribe.
#
# A line may be written in the midst of a packet, where nothing can be published. So it waits in a
# buffer until the end of the turn; a line that has no space there is dropped, and the next message
# says how many were. Nothing waits unless there is a subscription below $SYS. Lines that are
# caused by these messages are not sent as messages, so that no line can cause itself. The messages
# have QoS 0 and are not retained; debug lines, of which each packet has one, are not sent.
#
# Owns the buffer and the interceptor of the end of a turn (interceptors.py). Loaded if the log has
# this destination. Allocates.
from slotmq.constants import DEBUG, NONE, PACKET_MAX, WARNING
from slotmq.platform import heap, log, ondemand

_BUFFER = 1024  # bytes of the buffer on a board; on a computer 16 times as much
_LINE_MAX = 512  # bytes of a line
_BESIDE_LINE = 36  # bytes of a packet besides the line, at most
# By the bits of platform/log.py, from 1 to 32
_NAMES = "E W N I M/subscribe M/unsubscribe"


class LogTopics:
    def __init__(self, broker):
        self.broker = broker
        self.buf = bytearray(_BUFFER if ondemand.IS_SMALL else 16 * _BUFFER)
        self.used = 0  # bytes of lines: type, length in 2 bytes, text
        self.lost = 0  # lines that had no space
        self.is_sending = False
        self.inner_finish_turn = None
        ondemand.take("interceptors", broker.now).log_topics(broker, self)

    def write(self, line):
        """A line of the log, as for a file."""
        bit = log.current
        if not 0 < bit < DEBUG or self.is_sending or not self._is_wanted():
            return
        data = line[:-1].encode()
        n = min(len(data), _LINE_MAX)
        at = self.used
        if at + 3 + n > len(self.buf):
            self.lost += 1
            return
        self.buf[at] = bit
        self.buf[at + 1] = n & 255
        self.buf[at + 2] = n >> 8
        self.buf[at + 3 : at + 3 + n] = data[:n]
        self.used = at + 3 + n
        self.broker.turn_soon = 1  # if this is between two turns, the next one must not wait

    def close(self):
        """The interceptor stays, and gets no more lines."""

    def _is_wanted(self):
        subs = self.broker.subscriptions
        return subs.nodes.find(subs.root, b"$SYS", 0, 4) != NONE

    def finish_turn(self):
        """The loop's finish_turn(), then the lines so far."""
        self.inner_finish_turn()
        if not self.used or self.is_sending:
            return
        self.is_sending = True
        heap.lift()
        try:
            self._send_all()
        except MemoryError:
            self.lost += 1
        heap.drop()
        self.used = 0
        self.inner_finish_turn()
        self.is_sending = False

    def _send_all(self):
        at = 0
        while at < self.used:
            bit = self.buf[at]
            n = self.buf[at + 1] | self.buf[at + 2] << 8
            at += 3
            self._send(bit, bytes(self.buf[at : at + n]))
            at += n
        if self.lost:
            text = "%d: %d lines of the log were not sent." % (log.now(), self.lost)
            self._send(WARNING, text.encode())
            self.lost = 0

    def _send(self, bit, data):
        broker = self.broker
        most = broker.pkt[PACKET_MAX] - _BESIDE_LINE
        if most <= 0:
            return  # max_packet_size allows no such message
        k = 0
        while bit > 1 << k:
            k += 1
        topic = b"$SYS/broker/log/" + _NAMES.split()[k].encode()
        publishing = ondemand.take("embed.publishing", broker.now)
        publishing.send(broker, topic, data[:most], 0, False)
