# hooks.py - hooks that are called after an event:
#
#   on_connect(client_id)                          a client has been accepted, also one of the
#                                                  program's own
#   on_disconnect(client_id, reason)               its connection has ended; reason as in
#                                                  status/log_connections.py
#   on_publish(topic, payload)                     a message has been published. This hook takes
#                                                  a connection and a subscription to # at QoS 0,
#                                                  for which may_subscribe is not called; the
#                                                  message's own QoS and RETAIN are not known
#
# Owns the interceptor that notes the events (see interceptors.py).
# A connection may end within a fan-out, and CONNECT is handled deep in the stack, of which an
# RP2040 has 8 KB: so the hooks are called after the turn's last writes, in the order of events.
# There a hook may publish, subscribe and make clients as between two turns; events that this
# causes are told in the next turn, so that no hook is called within itself.
# Control plane: allocates. None of the hooks may raise.
from slotmq.embed import local
from slotmq.platform import heap, ondemand
from slotmq.platform.runtime import const

_NONE = const(0xFFFF)
_ENDING = const(3)
_ACCEPTED = const(15)
_TYPE = const(0)


def watch(broker, hooks):
    """Call broker.hooks from now on, also if they are replaced later."""
    seen = getattr(broker, "watch", None) or EventHooks(broker)
    if hasattr(hooks, "on_publish") and not seen.hears:
        own = local.find(broker, "client")()
        asked = broker.may_subscribe
        broker.may_subscribe = None  # it decides about clients, not about this subscription
        try:
            own.subscribe("#", seen.told)
            seen.hears = True
        finally:
            broker.may_subscribe = asked
            seen.hears or own.disconnect()


class EventHooks:
    """Intercepts the end of a connection and of a turn, and CONNECT and AUTH after they were
    handled."""

    def __init__(self, broker):
        self.broker = broker
        self.hears = False
        self.news = []  # events: (client id, reason; None: it has connected)
        self.inner_end = self.inner_finish_turn = self.inner_first = None
        ondemand.take("interceptors", broker.now).hooks(broker, self)

    def connect(self, broker, conn, pkt, buf):
        # The stack is deep here. With one more variable the frame would be allocated on the
        # heap, which is locked.
        result = self.inner_first[pkt[_TYPE]](broker, conn, pkt, buf)
        if result == _ACCEPTED and broker.conns.session[conn] != _NONE:
            self.note(conn, None)
        return result

    def told(self, topic, payload, _qos, retained):
        published = getattr(self.broker.hooks, "on_publish", None)
        if published and not retained:  # a retained one was published before the subscription
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
        broker.turn_soon = 1  # for an event between two turns: the next one must not wait

    def finish_turn(self):
        """The loop's finish_turn(), then the hooks for the events so far."""
        self.inner_finish_turn()
        if self.news:
            broker = self.broker
            broker.reading = _NONE  # also where a hook has raised in the midst of a packet
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
                broker.reading = None  # tells Broker.out_of_memory()
                raise
            finally:
                heap.drop()
            self.inner_finish_turn()
            if self.news:
                broker.turn_soon = 1  # there are more events: the next turn must not wait
