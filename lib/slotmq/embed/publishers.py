# publishers.py - who has published what the hook on_publish gets, for hooks with `with_peer`.
#
# on_publish has a client of its own, which is subscribed (embed/hooks.py). Each PUBLISH, PUBREL or
# will of another client may put messages into its outgoing stream. After each, a mark notes the
# position there and who has published: the bytes up to it, from the mark before, are that
# publisher's. Bytes between two of these are of the program itself. The fast path is off
# meanwhile (control.py). Owns the marks. Control plane: allocates.
from slotmq.constants import ALL_BITS, NONE, OF_WILL, TYPE
from slotmq.platform import heap, ondemand

_AHEAD = 0x1FFFFFFF
NOBODY = (None, None)


class Publishers:
    def __init__(self, broker, own):
        self.broker = broker
        self.own = own  # the client that is subscribed
        self.marks = []  # (position, (client id, peer)), in order
        self.last = 0
        self.inner_handlers = self.inner_handlers5 = None  # interceptors.py sets them
        ondemand.take("interceptors", broker.now).publishers(broker, self)

    def publish(self, broker, conn, pkt, buf):
        """PUBLISH and PUBREL: call the handler, then note the client."""
        self.note(NONE, NONE)
        handlers = self.inner_handlers5 if broker.conns.level[conn] == 5 else self.inner_handlers
        result = handlers[pkt[TYPE]](broker, conn, pkt, buf)
        self.note(conn, broker.conns.session[conn])
        return result

    def publish_will(self, broker, msg, session):
        """A will: its client may have no connection any more."""
        self.note(NONE, NONE)
        self.inner_handlers[OF_WILL](broker, msg, session)
        self.note(NONE, session)

    def note(self, conn, session):
        """Whatever has come since the last mark is of this client."""
        own = self.own
        conns = self.broker.conns
        if own.conn is None:
            return
        waiting = conns.tx_end[own.conn] - own.conn * conns.tx_bytes
        position = own.written + waiting & ALL_BITS
        if position == self.last:
            return
        self.last = position
        heap.lift()
        who = NOBODY
        if session != NONE:
            peer = None
            if conn != NONE:
                peer = ondemand.take("embed.asking", self.broker.now).peer(self.broker, conn)
            who = self.broker.sessions.client_id(session), peer
        self.marks.append((position, who))
        heap.drop()

    def of_message(self):
        """(client id, peer) of the message that the subscription has just got."""
        position = self.own.taken()
        while self.marks and self.marks[0][0] - position & ALL_BITS > _AHEAD:
            self.marks.pop(0)
        return self.marks[0][1] if self.marks else NOBODY
