# subscribing5.py - SUBSCRIBE and UNSUBSCRIBE of version 5, as one piece that is loaded on
# demand. The control plane: may allocate and free.
from slotmq.subscribe5 import answer


def handle(broker, conn, pkt, buf):
    """SUBSCRIBE or UNSUBSCRIBE; a result."""
    return answer(broker, conn, pkt, buf)
