# joining5.py - what a new connection of version 5 needs, and AUTH, as one piece that is
# loaded on demand. The control plane: may allocate and free.
from slotmq import connack5, ondemand
from slotmq.auth5 import handle_auth
from slotmq.connect5 import handle_connect
from slotmq.runtime import const, new_packet, next_packet

_NEW = const(1)
_REFUSED = const(5)
_PROTOCOL_ERROR = const(0x82)


def connect(broker, conn, pkt, buf, fields):
    """A CONNECT of level 5, which handle_connect.py has begun to read; a result."""
    return handle_connect(broker, conn, pkt, buf, fields)


def refuse(broker, conn):
    """CONNACK for a second CONNECT; a result."""
    connack5.refuse(broker, conn, _PROTOCOL_ERROR)
    return _REFUSED


def handle(broker, conn, pkt, buf):
    """AUTH; where that is the end of an exchange, the CONNECT that began it goes on."""
    result = handle_auth(broker, conn, pkt, buf)
    if not isinstance(result, bytes):
        if result < 0x80 or conn not in broker.five.exchanges or broker.conns.state[conn] != _NEW:
            return result
        connack5.refuse(broker, conn, result)
        return _REFUSED
    pkt = new_packet(len(result))
    next_packet(result, 0, len(result), pkt)
    return ondemand.take("joining", broker.now).handle(broker, conn, pkt, result)
