# in_process.py - clients that are part of the program that the broker runs in (embed/client.py).
# The broker treats their connections as any other, with sessions, wills, QoS and retained
# messages.
#
# Owns the interceptor for these clients (see interceptors.py). Nothing polls their streams
# (platform/poller.py). Callbacks are called after each turn's last writes, with the heap
# unlocked. What they publish is sent in the same turn. An exception of a callback leaves turn() or
# run(); its message is acknowledged. Loaded when the program asks for a client. Allocates.
from slotmq.constants import EMFILE, LOST, NONE
from slotmq.embed import publishing
from slotmq.embed.client import Client
from slotmq.embed.client_packets import connect_of, filter_of
from slotmq.platform import heap, ondemand, poller

_ROUNDS = 4  # of callbacks in one turn, before clients of the network are served


def subscribe(broker, topic_filter, callback, qos=0):
    """Call callback(topic, payload, qos, retained) for what matches; takes a connection.

    -> the granted QoS. May be called between two turns, in a callback, and in a hook on_...,
    and takes effect at once; RuntimeError in a hook may_...
    ValueError: filter, callback or QoS is not valid. OSError: no space, or a hook forbids it."""
    publishing.check_idle(broker)
    filter_of(broker, topic_filter, callback, qos)
    clients = _clients(broker)
    if clients.own is None or not clients.own.is_connected:
        own = Client(clients)
        _open(own, connect_of(broker, "", True, None, None))
        clients.own = own
    return clients.own.subscribe(topic_filter, callback, qos)


def client(broker, client_id="", clean=True, will=None, user=None):
    """A client of the program itself; will: (topic, payload, qos, retain). With a user name it
    has the rights of that user, without one it may do everything.

    ValueError: id, will or user name is not valid. OSError: no space. May be called where
    subscribe() may."""
    publishing.check_idle(broker)
    user = publishing.encoded(user) if user else None
    packet = connect_of(broker, client_id, clean, will, user)
    one = Client(_clients(broker), user)
    _open(one, packet)
    return one


def _open(one, packet):
    code = -1
    try:
        code = one.request(packet)
    finally:
        if code == -1:
            one.interceptor.broker.end(one.conn, LOST)  # else its slot would wait for a CONNECT
    if code:
        raise OSError(EMFILE, "full: limit connections, sessions, messages")


def serve(broker):
    """run() for asyncio: `await broker.serve()`."""
    from slotmq.embed import asyncio_task

    return asyncio_task.serve(broker)


def _clients(broker):
    return getattr(broker, "in_process", None) or InProcessClients(broker)


class InProcessClients:
    """A broker's own clients. Stands before the loop's finish_turn()."""

    def __init__(self, broker):
        self.broker = broker
        self.clients = []
        self.own = None
        self.is_calling = False
        self.inner_finish_turn = None
        poller.of(broker._loop())
        ondemand.take("interceptors", broker.now).in_process(broker, self)

    def finish_turn(self):
        """The loop's finish_turn(), then the callbacks."""
        self.inner_finish_turn()
        if self.is_calling:
            return
        self.is_calling = True
        self.broker.reading = NONE  # also where a hook has raised in the midst of a packet
        heap.lift()
        try:
            for _ in range(_ROUNDS):
                any_came = False
                for one in self.clients:  # not a function of its own: callbacks need the stack
                    if one.deliver():
                        any_came = True
                if not any_came:
                    return
                self.inner_finish_turn()
            self.broker.turn_soon = 1  # there may be more: the next turn must not wait
        finally:
            heap.drop()
            self.is_calling = False
