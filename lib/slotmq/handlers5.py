# handlers5.py - the handlers of MQTT 5.0 by packet type, as intake.py has those of
# version 3. Does not allocate; CONNECT, AUTH, SUBSCRIBE and UNSUBSCRIBE may.
from slotmq.acks5 import (
    handle_disconnect,
    handle_puback,
    handle_pubcomp,
    handle_pubrec,
    handle_pubrel,
)
from slotmq.handle_control import handle_unexpected
from slotmq.intake import by_type, control
from slotmq.publish5 import handle_publish


def _subscribing(broker, conn, pkt, buf):
    return control("subscribing5", broker, conn, pkt, buf)


def _joining(broker, conn, pkt, buf):
    return control("joining", broker, conn, pkt, buf)


def _authenticating(broker, conn, pkt, buf):
    return control("auth", broker, conn, pkt, buf)


_NOT = handle_unexpected
FIRST = (_NOT, _joining) + (_NOT,) * 13 + (_authenticating,)
_PUBLISHING = (handle_publish, handle_puback, handle_pubrec, handle_pubrel, handle_pubcomp)
HANDLERS = by_type(_PUBLISHING, _subscribing, handle_disconnect, _authenticating)
