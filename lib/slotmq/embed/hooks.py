# hooks.py - hooks that are told what has happened:
#
#   on_connect(client_id)                          a client has been let in, also one of the
#                                                  program's own
#   on_disconnect(client_id, reason)               it leaves, or is lost; reason as in
#                                                  status/log_connections.py
#   on_publish(topic, payload)                     a message that is published; takes a
#                                                  connection and a subscription to # at QoS 0,
#                                                  which no hook is asked for: what QoS or RETAIN
#                                                  it came with is not known here
#
# Owns the interceptor that sees it (see interceptors.py).
# A connection may end in the midst of a fan-out, and a client comes in deep in the stack, of which
# an RP2040 has 8 KB: all is told behind the turn's last writes, in the order in which it happened.
# There a hook may publish, subscribe and make clients as between two turns; what it hears of by
# that, it hears of in the next turn, so that no hook is called within itself.
# On the control plane: allocates. None of them may raise.
from slotmq.embed import local
from slotmq.platform import heap, ondemand
from slotmq.platform.runtime import const

_NONE = const(0xFFFF)
_ENDING = const(3)
_ACCEPTED = const(15)
_TYPE = const(0)


def watch(broker, hooks):
    """Tell the broker's hooks from now on, whichever it has then."""
    seen = getattr(broker, "watch", None) or EventHooks(broker)
    if hasattr(hooks, "on_publish") and not seen.hears:
        own = local.find(broker, "client")()
        asked = broker.may_subscribe
        broker.may_subscribe = None  # it is for clients; this is the hooks' own ear
        try:
            own.subscribe("#", seen.told)
            seen.hears = True
        finally:
            broker.may_subscribe = asked
            seen.hears or own.disconnect()


class EventHooks:
    """The end of a connection and of a turn; CONNECT and AUTH, behind their handlers."""

    def __init__(self, broker):
        self.broker = broker
        self.hears = False
        self.news = []  # (client id, reason or None: it has come), not told yet
        self.inner_end = self.inner_finish_turn = self.inner_first = None
        ondemand.take("interceptors", broker.now).hooks(broker, self)

    def connect(self, broker, conn, pkt, buf):
        # The stack is deep there. With one name more the call would take heap, which is locked.
        result = self.inner_first[pkt[_TYPE]](broker, conn, pkt, buf)
        if result == _ACCEPTED and broker.conns.session[conn] != _NONE:
            self.note(conn, None)
        return result

    def told(self, topic, payload, _qos, retained):
        published = getattr(self.broker.hooks, "on_publish", None)
        if published and not retained:  # that was published before there was somebody to hear it
            published(topic, payload)

    def end(self, conn, reason):
        broker = self.broker
        if broker.conns.session[conn] != _NONE and broker.conns.state[conn] != _ENDING:
            self.note(conn, reason)
        self.inner_end(conn, reason)

    def note(self, conn, reason):
        broker = self.broker
        heap.lift()
        self.news.append((broker.sessions.client_id(broker.conns.session[conn]), reason))
        heap.drop()
        broker.scanning = 1  # one who comes between two turns is told of in the next at once

    def finish_turn(self):
        """The loop's, and what is not told yet is."""
        self.inner_finish_turn()
        if self.news:
            broker = self.broker
            broker.current = _NONE  # also where a hook has raised in the midst of a packet
            heap.lift()
            try:
                for _ in range(len(self.news)):
                    client_id, reason = self.news.pop(0)
                    name = "on_connect" if reason is None else "on_disconnect"
                    told = getattr(broker.hooks, name, None)
                    if told and reason is None:
                        told(client_id)
                    elif told:
                        told(client_id, reason)
            except MemoryError:
                broker.current = None  # see Broker.out_of_memory
                raise
            finally:
                heap.drop()
            self.inner_finish_turn()
            if self.news:
                broker.scanning = 1  # there is more: the next turn must not wait
