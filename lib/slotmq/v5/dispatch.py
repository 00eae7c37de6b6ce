# dispatch.py - the handlers of MQTT 5.0 by packet type, as FIRST and HANDLERS of
# protocol/dispatch.py are those of version 3. That file cannot have them, since it must not load
# code of version 5. Owns nothing. Handlers of CONNECT, AUTH, SUBSCRIBE and UNSUBSCRIBE allocate.
from slotmq.protocol.acks import handle_unexpected
from slotmq.protocol.dispatch import by_type, control
from slotmq.v5.acks import (handle_disconnect, handle_puback, handle_pubcomp, handle_pubrec,
    handle_pubrel)
from slotmq.v5.publish import handle_publish


def _subscribing(broker, conn, pkt, buf):
    return control("v5.subscribe", broker, conn, pkt, buf)


def _connect(broker, conn, pkt, buf):
    return control("protocol.connect", broker, conn, pkt, buf)


def _authenticating(broker, conn, pkt, buf):
    return control("v5.auth", broker, conn, pkt, buf)


_NOT = handle_unexpected
FIRST = (_NOT, _connect) + (_NOT,) * 13 + (_authenticating,)
_PUBLISHING = (handle_publish, handle_puback, handle_pubrec, handle_pubrel, handle_pubcomp)
HANDLERS = by_type(_PUBLISHING, _subscribing, handle_disconnect, _authenticating)
