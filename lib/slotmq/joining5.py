# joining5.py - what a new connection of version 5 needs, as one piece that is loaded on demand.
# The control plane: may allocate and free.
from slotmq.connect5 import handle_connect


def connect(broker, conn, pkt, buf, fields):
    """A CONNECT of level 5, which handle_connect.py has begun to read; a result."""
    return handle_connect(broker, conn, pkt, buf, fields)
