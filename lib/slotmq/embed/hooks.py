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
# Hooks with `with_peer = True` get one more argument, (user name, address) as in embed/asking.py;
# on_publish two: the client id of who has published, and that; both None: the program itself.
#
# Owns the interceptor that collects the events (see interceptors.py), and the events. The hooks
# are called after the turn's last writes, in the order of events, and not at once, for two
# reasons: a connection may end within a fan-out, and CONNECT is handled deep in the stack, of
# which an RP2040 has 8 KB. So a hook may publish, subscribe and make clients as between two turns.
# For events that this causes hooks are called in the next turn, so that no hook is called within
# itself. None of the hooks may raise. Control plane: allocates.
from slotmq.constants import ACCEPTED, ENDING, NONE, TYPE
from slotmq.embed import publishing
from slotmq.platform import heap, ondemand


def watch(broker, hooks):
    """Call the hooks of broker.hooks from now on, also after that is replaced."""
    seen = getattr(broker, "watch", None) or EventHooks(broker)
    if hasattr(hooks, "on_publish") and not seen.is_subscribed:
        own = publishing.find(broker, "client")()
        asked = broker.may_subscribe
        broker.may_subscribe = None  # it is asked about clients, not about this subscription
        try:
            own.subscribe("#", seen.published)
            seen.is_subscribed = True
            seen.own = own
        finally:
            broker.may_subscribe = asked
            seen.is_subscribed or own.disconnect()
    if seen.own and not seen.publishers and getattr(hooks, "with_peer", False):
        made = ondemand.take("embed.publishers", broker.now).Publishers(broker, seen.own)
        seen.publishers = made


class EventHooks:
    """Intercepts the end of a connection and of a turn, and CONNECT and AUTH after they were
    handled."""

    def __init__(self, broker):
        self.broker = broker
        self.is_subscribed = False
        self.own = None  # the client that is subscribed for on_publish
        self.publishers = None  # says who has published
        self.events = []  # (client id, reason; None: it has connected; what peer() says)
        self.inner_end = self.inner_finish_turn = self.inner_first = None
        ondemand.take("interceptors", broker.now).hooks(broker, self)

    def connect(self, broker, conn, pkt, buf):
        # The stack is deep here. With one more variable the frame would be allocated on the
        # heap, which is locked.
        result = self.inner_first[pkt[TYPE]](broker, conn, pkt, buf)
        if result == ACCEPTED and broker.conns.session[conn] != NONE:
            self.add_event(conn, None)
        return result

    def published(self, topic, payload, _qos, retained):
        published = getattr(self.broker.hooks, "on_publish", None)
        if published and not retained:  # a retained one was published before the subscription
            who = ()
            if self.publishers and getattr(self.broker.hooks, "with_peer", False):
                who = self.publishers.of_message()
            published(topic, payload, *who)

    def end(self, conn, reason):
        broker = self.broker
        if broker.conns.session[conn] != NONE and broker.conns.state[conn] != ENDING:
            self.add_event(conn, reason)
        self.inner_end(conn, reason)

    def add_event(self, conn, reason):
        broker = self.broker
        heap.lift()
        who = ()
        if getattr(broker.hooks, "with_peer", False):
            who = (ondemand.take("embed.asking", broker.now).peer(broker, conn),)
        client_id = broker.sessions.client_id(broker.conns.session[conn])
        self.events.append((client_id, reason, who))
        heap.drop()
        broker.turn_soon = 1  # if this is between two turns, the next one must not wait

    def finish_turn(self):
        """The loop's finish_turn(), then the hooks for the events so far."""
        self.inner_finish_turn()
        if self.events:
            broker = self.broker
            broker.reading = NONE  # also where a hook has raised in the midst of a packet
            heap.lift()
            try:
                for _ in range(len(self.events)):
                    client_id, reason, who = self.events.pop(0)
                    hook = getattr(
                        broker.hooks, "on_connect" if reason is None else "on_disconnect", None
                    )
                    if hook and reason is None:
                        hook(client_id, *who)
                    elif hook:
                        hook(client_id, reason, *who)
            except Exception:
                broker.reading = None  # tells Broker.caught()
                raise
            finally:
                heap.drop()
            self.inner_finish_turn()
            if self.events:
                broker.turn_soon = 1  # there are more events: the next turn must not wait
