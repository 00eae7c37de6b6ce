# handlers5.py - the handlers of MQTT 5.0 by packet type, as intake.py has those of
# version 3. Does not allocate; CONNECT, AUTH, SUBSCRIBE and UNSUBSCRIBE may.
from slotmq import heap
from slotmq.acks5 import (
    handle_disconnect,
    handle_puback,
    handle_pubcomp,
    handle_pubrec,
    handle_pubrel,
)
from slotmq.auth5 import handle_auth
from slotmq.handle_connect import handle_connect
from slotmq.handle_control import handle_pingreq, handle_unexpected
from slotmq.publish5 import handle_publish
from slotmq.runtime import const, new_packet, next_packet
from slotmq.subscribe5 import handle_subscribe, handle_unsubscribe

_TYPE = const(0)
_QUOTA = const(0x97)


def _control(broker, conn, pkt, buf):
    # The loop's lock on the heap is lifted for the control plane.
    heap.lift()
    try:
        return CONTROL[pkt[_TYPE]](broker, conn, pkt, buf)
    except MemoryError:
        return _QUOTA
    finally:
        heap.drop()


def _handle_auth(broker, conn, pkt, buf):
    result = handle_auth(broker, conn, pkt, buf)
    if not isinstance(result, bytes):
        return result
    # The exchange is over: the CONNECT that began it goes on.
    pkt = new_packet(len(result))
    next_packet(result, 0, len(result), pkt)
    return handle_connect(broker, conn, pkt, result)


CONTROL = {
    1: handle_connect,
    8: handle_subscribe,
    10: handle_unsubscribe,
    15: _handle_auth,
}
_NOT = handle_unexpected
FIRST = (_NOT, _control) + (_NOT,) * 13 + (_control,)
HANDLERS = (
    _NOT,
    _NOT,
    _NOT,
    handle_publish,
    handle_puback,
    handle_pubrec,
    handle_pubrel,
    handle_pubcomp,
    _control,
    _NOT,
    _control,
    _NOT,
    handle_pingreq,
    _NOT,
    handle_disconnect,
    _control,
)
