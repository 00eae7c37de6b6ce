# poller.py - the one poller before the system's, for streams that are no sockets: those around a
# socket (TLS, a bridge's Mapped), and those of the program's clients, which nothing polls. Loaded
# for the first of them, so other brokers pay nothing for it.
#
# Such a stream has `polled`, what the system polls in its place, or None: nothing. If it is
# registered, it has
#   polled_for(mask)   the events of the socket to wait for, where the loop waits for `mask`
#   event(conn)        the socket has an event, or there is input left from before
# and if it may keep input that causes no event of the system (bytes that were decrypted already)
#   more               is there any now? keep() says so
#   in_line            False; only for this file: does it wait here?
#   wanted             the events that the loop waits for
#
# In Loop.of_stream these sockets are those of a callback. Input that was kept is served before the
# system is asked, in the order in which it was kept. Streams whose input has no plaintext (their
# handshake is under way, or they send KeyUpdates, say) take turns: one of them is served in each,
# so that others wait for one at most, however many there are.
#
# Owns the streams by their sockets, and the two lines. Allocates.
from slotmq.constants import IN, SERVED
from slotmq.platform import heap

_IPOLL = 3  # of Loop.at_hand
_TURNS = 0x3FFFFFFF


def of(loop):
    """The Poller of a loop."""
    found = getattr(loop, "beside", None)
    if not found:
        found = loop.beside = Poller(loop)
    return found


class Poller:
    def __init__(self, loop):
        self.loop = loop
        self.inner = loop.poller
        loop.poller = self
        self.inner_ipoll = loop.at_hand[_IPOLL]
        loop.at_hand[_IPOLL] = self.ipoll
        self.streams = {}
        self.kept = []  # streams with input left
        self.slow = []  # streams that wait for their turn
        self.chosen = None  # the one whose turn it is
        self.turn = 0  # its number
        self.idle = 0  # bytes read in this turn that were no plaintext
        loop.callbacks.insert(0, self.event)
        self.index = -len(loop.callbacks)

    def register(self, stream, mask):
        socket = getattr(stream, "polled", stream)
        if socket is not stream:
            mask = stream.polled_for(mask)
            self.streams[socket or stream] = stream
        if socket:
            if socket is not stream:
                self.loop.of_stream[socket] = self.index
            self.inner.register(socket, mask)

    def modify(self, stream, mask):
        socket = getattr(stream, "polled", stream)
        if (socket or stream) in self.streams:
            mask = stream.polled_for(mask)
        if socket:
            self.inner.modify(socket, mask)

    def unregister(self, stream):
        socket = getattr(stream, "polled", stream)
        if self.streams.pop(socket or stream, None) and socket:
            del self.loop.of_stream[socket]
        if socket:
            self.inner.unregister(socket)

    def ipoll(self, timeout_ms):
        self.turn = self.turn + 1 & _TURNS
        self.chosen = None
        self.idle = 0
        if self.slow or self.kept:
            heap.lift()
            while self.slow and not self.chosen:
                self.chosen = self._next(self.slow)
            if self.chosen:
                self.event(self.chosen.polled or self.chosen)
                timeout_ms = 0
            for _ in range(len(self.kept)):
                stream = self._next(self.kept)
                if stream and stream.more:
                    self.keep(stream)  # until it has none
                    if stream.wanted & IN:
                        self.event(stream.polled or stream)
                        timeout_ms = 0
            heap.drop()
        return self.inner_ipoll(timeout_ms)

    def _next(self, line):
        # The first one, unless its connection has ended.
        stream = line.pop(0)
        stream.in_line = False
        return stream if (stream.polled or stream) in self.streams else None

    def event(self, socket):
        """The callback: a socket has an event; or a stream that nothing polls has input."""
        # The heap is lifted. This frame is small enough for the C stack; a larger one would leave
        # a gap in the heap, behind which each search would walk over all later garbage.
        heap.drop()
        stream = self.streams[socket]
        conn = self.loop.conns.counts[SERVED] = self.loop.of_stream[stream]
        stream.event(conn)
        heap.lift()  # (not after a MemoryError, which is a defect)

    def keep(self, stream):
        """This stream has input left."""
        self._append(self.kept, stream)

    def _append(self, line, stream):
        if not stream.in_line:
            stream.in_line = True
            heap.lift()
            line.append(stream)
            heap.drop()

    def is_turn_of(self, stream):
        """May a slow stream be served in this turn? Else one of the next will."""
        if not self.chosen:
            self.chosen = stream
        elif self.chosen is not stream:
            self._append(self.slow, stream)
        return self.chosen is stream
