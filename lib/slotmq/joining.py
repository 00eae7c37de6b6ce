# joining.py - what a new connection needs, as one piece that is loaded on demand: CONNECT
# of every version up to its answer. The control plane: may allocate and free.
from slotmq.handle_connect import handle_connect


def handle(broker, conn, pkt, buf):
    """CONNECT; a result."""
    return handle_connect(broker, conn, pkt, buf)
