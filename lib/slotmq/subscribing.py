# subscribing.py - SUBSCRIBE and UNSUBSCRIBE of version 3, as one piece that is loaded on
# demand. The control plane: may allocate and free.
from slotmq.handle_subscribe import handle_subscribe, handle_unsubscribe
from slotmq.runtime import const

_TYPE = const(0)
_SUBSCRIBE = const(8)


def handle(broker, conn, pkt, buf):
    """The packet's result."""
    if pkt[_TYPE] == _SUBSCRIBE:
        return handle_subscribe(broker, conn, pkt, buf)
    return handle_unsubscribe(broker, conn, pkt, buf)
