# hooks.py - hooks that are told what has happened:
#
#   on_connect(client_id)                          a client has been let in
#   on_disconnect(client_id, reason)               it leaves, or is lost; reason as in telling.py
#   on_publish(topic, payload, qos, retained)      a message; takes a connection, as a
#                                                  subscription to # of the program's own does
#
# Stands in the way of what a broker calls, so that one without hooks has no code for them.
# A connection may end in the midst of a fan-out: on_disconnect is told behind the turn's last
# writes, or those of a CONNECT, where it may publish as between two turns.
# On the control plane: allocates. None of them may raise.
from slotmq import heap, local
from slotmq.runtime import const

_NONE = const(0xFFFF)
_ENDING = const(3)
_ACCEPTED = const(15)
_CONNECT = const(1)
_AUTH_TYPE = const(15)


def watch(broker, hooks):
    """Tell the broker's hooks from now on, whichever it has then."""
    seen = getattr(broker, "watch", None)
    if seen is None:
        seen = broker.watch = Watcher(broker)
    if hasattr(hooks, "on_publish") and not seen.hears:
        seen.hears = True
        local.find(broker, "client")().subscribe("#", seen.told)


class Watcher:
    def __init__(self, broker):
        self.broker = broker
        self.hears = False
        self.left = []  # (client id, reason), not told yet
        self.end_it = broker.end
        broker.end = self.end
        loop = broker._loop()
        self.finish = loop.finish_turn
        loop.finish_turn = self.finish_turn
        self.handlers = broker.first_handlers
        first = list(self.handlers)
        first[_CONNECT] = lambda _, conn, pkt, buf: self.handle(_CONNECT, conn, pkt, buf)
        first[_AUTH_TYPE] = lambda _, conn, pkt, buf: self.handle(_AUTH_TYPE, conn, pkt, buf)
        broker.first_handlers = tuple(first)

    def handle(self, kind, conn, pkt, buf):
        broker = self.broker
        heap.lift()
        result = self.handlers[kind](broker, conn, pkt, buf)
        self.tell_left()  # who was taken over has gone before its successor came
        joined = getattr(broker.hooks, "on_connect", None)
        if result == _ACCEPTED and joined and broker.conns.session[conn] != _NONE:
            joined(broker.sessions.client_id(broker.conns.session[conn]))
        heap.drop()
        return result

    def told(self, topic, payload, qos, retained):
        published = getattr(self.broker.hooks, "on_publish", None)
        if published:
            published(topic, payload, qos, retained)

    def end(self, conn, reason):
        broker = self.broker
        session = broker.conns.session[conn]
        if session != _NONE and broker.conns.state[conn] != _ENDING:
            heap.lift()
            self.left.append((broker.sessions.client_id(session), reason))
            heap.drop()
        self.end_it(conn, reason)

    def finish_turn(self):
        """The loop's, and who has left meanwhile is told of."""
        self.finish()
        if self.left:
            self.tell_left()
            self.finish()
            if self.left:
                self.broker.scanning = True  # there are more: the next turn must not wait

    def tell_left(self):
        heap.lift()
        left = self.left
        self.left = []
        told = getattr(self.broker.hooks, "on_disconnect", None)
        for client_id, reason in left:
            told and told(client_id, reason)
        heap.drop()
