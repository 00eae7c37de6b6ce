# interceptors.py - which objects replace functions of a broker, and in which order.
#
# From the innermost outwards; each one calls the function that it has replaced:
#
#   class, file                made when          what it sees
#   RecordInterceptor          record_location    CONNECT, AUTH, PUBLISH, wills, what the program
#     recorder/interceptor.py  is set             publishes, the end of a turn, close(); with
#                                                 record_events SUBSCRIBE, UNSUBSCRIBE and the end
#                                                 of a connection
#   EventHooks                 hooks have on_...  CONNECT, AUTH, the end of a connection and of a
#     embed/hooks.py                              turn
#   Publishers                 these have         PUBLISH, PUBREL and wills
#     embed/publishers.py      on_publish and
#                              with_peer
#   InProcessClients           the program asks   the end of a turn
#     embed/in_process.py      for a client
#   Bridges                    there is a bridge  what only servers send, CONNECT, PUBLISH, its
#     bridge/bridges.py                           acknowledgements, SUBSCRIBE; bytes for the fast
#                                                 path; the end of a connection and of a turn;
#                                                 close()
#   LogTopics                  log_dest topic     the end of a turn
#     status/log_topics.py
#
# Beside these MicroPython has two shortcuts, innermost of all, for a broker whose program has no
# such function of its own: broker.turn is loop.turn (control.py), and broker.publish is
# Publishing.publish_own (embed/own_messages.py). Functions of the tables are never replaced: who
# may read is asked by Subscriptions.match(), who may write by Broker.asks.
#
# The order does not depend on when they are made. Only Bridges refuse packets, of other brokers;
# else may_connect, may_publish and may_subscribe do, which the handlers call. Loaded on demand
# when an interceptor is made, so a broker without one has no code for them. What stands before the
# loop's poller is one, too: platform/poller.py. Owns nothing.
# Allocates.
from slotmq.constants import (AUTH_TYPE, CONNACK_TYPE, CONNECT_TYPE, DISCONNECT_TYPE, EACH_TURN,
    OF_WILL, PINGRESP_TYPE, PUBACK_TYPE, PUBLISH_TYPE, PUBREC_TYPE, PUBREL_TYPE, SUBACK_TYPE,
    SUBSCRIBE_TYPE, UNSUBACK_TYPE, UNSUBSCRIBE_TYPE, WHOLE)


def recorder(broker, one):
    """Put the recorder innermost: it is made before the program gets the broker."""
    loop = broker.loop
    broker.record = one
    broker.handle_fast = one.handle_fast
    broker.publish = one.publish_own
    one.inner_first = broker.first_handlers
    broker.first_handlers = _with(broker.first_handlers, one.connect, CONNECT_TYPE, AUTH_TYPE)
    one.inner_handlers = broker.handlers
    handlers = _with(broker.handlers, one.publish, PUBLISH_TYPE)
    broker.handlers = _with(handlers, one.publish_will, OF_WILL)
    five = broker.five
    if five:
        one.inner_handlers5 = five.handlers
        five.handlers = _with(five.handlers, one.publish, PUBLISH_TYPE)
    _at_end(loop, one)
    one.inner_close = loop.close
    loop.close = one.close


def record_events(broker, one):
    """Let the recorder see events too: SUBSCRIBE, UNSUBSCRIBE, and ends of connections."""
    one.inner_end = broker.end
    broker.end = one.end
    broker.handlers = _with(broker.handlers, one.subscribe, SUBSCRIBE_TYPE, UNSUBSCRIBE_TYPE)
    five = broker.five
    if five:
        five.handlers = _with(five.handlers, one.subscribe, SUBSCRIBE_TYPE, UNSUBSCRIBE_TYPE)


def hooks(broker, one):
    """Put hooks inside the program's clients, so that on_connect is called before their
    callbacks."""
    loop = broker._loop()
    broker.watch = one
    one.inner_end = broker.end
    broker.end = one.end
    one.inner_first = broker.first_handlers
    broker.first_handlers = _with(broker.first_handlers, one.connect, CONNECT_TYPE, AUTH_TYPE)
    clients = getattr(broker, "in_process", None)
    if clients:
        one.inner_finish_turn = clients.inner_finish_turn
        clients.inner_finish_turn = one.finish_turn
    else:
        _at_end(loop, one)


def publishers(broker, one):
    """Let the hook on_publish know who publishes: outside of the recorder."""
    one.inner_handlers = broker.handlers
    handlers = _with(broker.handlers, one.publish, PUBLISH_TYPE, PUBREL_TYPE)
    broker.handlers = _with(handlers, one.publish_will, OF_WILL)
    five = broker.five
    if five:
        one.inner_handlers5 = five.handlers
        five.handlers = _with(five.handlers, one.publish, PUBLISH_TYPE, PUBREL_TYPE)


def in_process(broker, one):
    """Put the program's clients outermost: callbacks are called when everything else is done."""
    loop = broker._loop()
    broker.in_process = one
    _at_end(loop, one)


def bridges(broker, one):
    """Let bridges answer what servers send. Their place among the others does not matter: what
    comes from another broker opens no session and subscribes to nothing."""
    loop = broker._loop()
    broker.bridges = one
    one.inner_first = broker.first_handlers
    first = _with(one.inner_first, one.handle, CONNECT_TYPE, CONNACK_TYPE, AUTH_TYPE)
    broker.first_handlers = first
    one.inner_handlers = broker.handlers
    handlers = _with(broker.handlers, one.handle, SUBSCRIBE_TYPE, UNSUBSCRIBE_TYPE)
    handlers = _with(handlers, one.handle, SUBACK_TYPE, UNSUBACK_TYPE, PINGRESP_TYPE)
    broker.handlers = _with(handlers, one.publish, PUBLISH_TYPE)
    one.inner_fast = broker.handle_fast
    broker.handle_fast = one.handle_fast
    one.inner_end = broker.end
    broker.end = one.end
    five = broker.five
    one.inner_5 = five.handlers
    handlers = _with(five.handlers, one.handle, SUBSCRIBE_TYPE, UNSUBSCRIBE_TYPE, DISCONNECT_TYPE)
    handlers = _with(handlers, one.handle, SUBACK_TYPE, UNSUBACK_TYPE, PINGRESP_TYPE)
    handlers = _with(handlers, one.handle, AUTH_TYPE)
    handlers = _with(handlers, one.publish, PUBLISH_TYPE)
    five.handlers = _with(handlers, one.acknowledged, PUBACK_TYPE, PUBREC_TYPE)
    one.inner_goodbye = five.goodbye
    five.goodbye = one.goodbye
    _at_end(loop, one)
    loop.conns.counts[EACH_TURN] += 1
    one.inner_close = loop.close
    loop.close = one.close


def log_topics(broker, one):
    """Let the log publish at the end of a turn. Its place among the others does not matter."""
    loop = broker._loop()
    loop.log_topics = one
    _at_end(loop, one)


def _at_end(loop, one):
    # From now on a turn ends with one.finish_turn().
    one.inner_finish_turn = loop.finish_turn
    loop.finish_turn = one.finish_turn
    loop.conns.counts[WHOLE] = 1


def _with(handlers, by, *types):
    made = list(handlers)
    for kind in types:
        made[kind] = by
    return tuple(made)
