# interceptors.py - what is called instead of a broker's own functions, and in which order.
#
# From the innermost outwards; each one calls what it has replaced:
#
#   class, file                made when          what it sees
#   RecordInterceptor          record_location    CONNECT, AUTH, PUBLISH, wills, what the program
#     recorder/interceptor.py  is set             publishes, the end of a turn, close(); with
#                                                 record_events SUBSCRIBE, UNSUBSCRIBE and the end
#                                                 of a connection
#   EventHooks                 hooks have on_...  CONNECT, AUTH, the end of a connection and of a
#     embed/hooks.py                              turn
#   InProcessClients           the program asks   the end of a turn; which streams are polled
#     embed/in_process.py      for a client
#
# None of them may refuse a packet. Only may_connect, may_publish and may_subscribe may, which
# the handlers call. A broker without interceptors has no code for them.
# Loaded on demand, when one is made. Allocates.
from slotmq.platform import heap
from slotmq.platform.runtime import const

_CONNECT = const(1)
_PUBLISH_TYPE = const(3)
_SUBSCRIBE = const(8)
_UNSUBSCRIBE = const(10)
_AUTH_TYPE = const(15)
_OF_WILL = const(16)  # index of the handler for wills, after those of the packet types


def recorder(broker, one):
    """The innermost: it is made before the program has the broker."""
    loop = broker.loop
    broker.record = one
    broker.handle_fast = one.handle_fast
    broker.publish = one.publish_own
    one.inner_first = broker.first_handlers
    broker.first_handlers = _with(broker.first_handlers, one.connect, _CONNECT, _AUTH_TYPE)
    one.inner_handlers = broker.handlers
    handlers = _with(broker.handlers, one.publish, _PUBLISH_TYPE)
    broker.handlers = _with(handlers, one.publish_will, _OF_WILL)
    five = broker.five
    if five:
        one.inner_handlers5 = five.handlers
        five.handlers = _with(five.handlers, one.publish, _PUBLISH_TYPE)
    one.inner_finish_turn = loop.finish_turn
    loop.finish_turn = one.finish_turn
    one.inner_close = loop.close
    loop.close = one.close


def record_events(broker, one):
    """Only if record_events is set. SUBSCRIBE and UNSUBSCRIBE have one handler."""
    one.inner_end = broker.end
    broker.end = one.end
    broker.handlers = _with(broker.handlers, one.subscribe, _SUBSCRIBE, _UNSUBSCRIBE)
    five = broker.five
    if five:
        five.handlers = _with(five.handlers, one.subscribe, _SUBSCRIBE, _UNSUBSCRIBE)


def hooks(broker, one):
    """Inside the program's clients: on_connect is called before a client's callbacks."""
    loop = broker._loop()
    _guard(loop)
    broker.watch = one
    one.inner_end = broker.end
    broker.end = one.end
    one.inner_first = broker.first_handlers
    broker.first_handlers = _with(broker.first_handlers, one.connect, _CONNECT, _AUTH_TYPE)
    clients = getattr(broker, "in_process", None)
    if clients:
        one.inner_finish_turn = clients.inner_finish_turn
        clients.inner_finish_turn = one.finish_turn
    else:
        one.inner_finish_turn = loop.finish_turn
        loop.finish_turn = one.finish_turn


def in_process(broker, one):
    """The outermost: callbacks are called when everything else is done."""
    loop = broker._loop()
    _guard(loop)
    broker.in_process = one
    one.inner_poller = loop.poller
    loop.poller = one
    one.inner_finish_turn = loop.finish_turn
    loop.finish_turn = one.finish_turn


def _with(handlers, by, *types):
    made = list(handlers)
    for kind in types:
        made[kind] = by
    return tuple(made)


def _guard(loop):
    """From now on turn() and run() raise RuntimeError within a turn.

    They use no more stack than Loop's own, and no more code before the lock (see there)."""
    from slotmq.embed import local  # it is loaded already

    run = loop.run

    def turn_once(timeout_ms):
        local.in_turn() and _refuse()
        heap.lock()
        try:
            loop._turns(timeout_ms)
        finally:
            heap.unlock()

    def run_once():
        local.in_turn() and _refuse()
        run()

    loop.turn = turn_once
    loop.run = run_once


def _refuse():
    raise RuntimeError("turn(), run(): not in a callback or a hook")
