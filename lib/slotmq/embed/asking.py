# asking.py - asks the hooks may_... of the surrounding program. Loaded on demand, where there are
# such hooks; owns nothing. Allocates.
#
# Hooks with `with_peer = True` get one more argument, the last one: (user name, address) of the
# client. The user name is None where CONNECT had none; the address is a text, or None for a client
# of the program itself.
from slotmq.delivery.lifecycle import is_own
from slotmq.platform import heap, ondemand

# What a hook says, a return code of version 3, as in protocol/connect.py
_REFUSALS = (0, 0x0184, 0x0285, 0x0388, 0x0486, 0x0587)


def peer(broker, conn, fields=None):
    """(user name, address) of a connection; fields: of a CONNECT that is not accepted yet."""
    source = broker.conns.source[conn]
    user = source[1] if isinstance(source, list) else None
    if isinstance(user, str):  # for the log, from before there were such hooks
        user = user.encode()
    if fields:
        user = fields.user or fields.read(fields.user_name)
    if is_own(broker, conn):
        return broker.conns.stream[conn].user, None
    return user, ondemand.take("status.log_connections", broker.now).address(broker, conn)[0]


def _ask(broker, conn, hook, args, fields=None):
    if getattr(broker.hooks, "with_peer", False):
        args += (peer(broker, conn, fields),)
    return answer(broker, hook, *args)


def answer(broker, hook, *args):
    """Call a hook of the program, which gets its own exceptions. (Without heap it refuses.)"""
    try:
        return hook(*args)
    except MemoryError:
        raise
    except Exception:
        broker.reading = None  # tells Broker.caught()
        raise


def may_connect(broker, conn, fields):
    """0 or a refusal of CONNECT; after SCRAM, with the name that it has proved."""
    args = (fields.read(fields.client_id), fields.user, None)
    if fields.user is None:
        args = args[:1] + (fields.read(fields.user_name), fields.read(fields.password))
    code = _ask(broker, conn, broker.may_connect, args, fields) or 0
    return 0x0500 | code if code & 0x80 else _REFUSALS[min(code, 5)]


def may_publish(broker, conn, fields):
    """May the client that connects publish its will?"""
    args = (fields.read(fields.client_id), fields.read(fields.will_topic))
    return _ask(broker, conn, broker.may_publish, args, fields)


def may_subscribe(broker, session, topic_filter, qos):
    """May the session subscribe?"""
    args = (broker.sessions.client_id(session), topic_filter, qos)
    return _ask(broker, broker.sessions.conn[session], broker.may_subscribe, args)


class Publishers:
    """Broker.asks of a broker with a hook may_publish."""

    def __init__(self, broker):
        self.broker = broker

    def ask(self, conn, buf, topic, n):
        """May the client publish this? Where answers are kept, a yes is."""
        broker = self.broker
        heap.lift()
        client_id = broker.sessions.client_id(broker.conns.session[conn])
        args = (client_id, bytes(buf[topic : topic + n]))
        is_wanted = _ask(broker, conn, broker.may_publish, args)
        heap.drop()
        senders = broker.subscriptions.routes.senders
        if senders and is_wanted:
            senders.add(conn, buf, topic, n)
        return is_wanted
