# secure.py - the stream of a bridge with TLS, which the writes of CONNECT drive through the
# handshake, and its SSLContext. Loaded on demand; owns nothing; allocates.
# ruff: noqa: F401 - others import from here
from slotmq.constants import LOST
from slotmq.net.tls import Pipe, TlsStream, reason
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    from slotmq.net.tls_context import NOT_HERE, WHY_NOT, make_client_context
else:
    from slotmq.platform.tls_context_cpython import NOT_HERE, WHY_NOT, make_client_context


class Secure(TlsStream):
    """A connection to another broker."""

    def __init__(self, bridge, socket):
        super().__init__(bridge.broker.loop, socket, bridge.options.context, bridge.host)
        self.bridge = bridge

    def failed(self, error, is_told=True):
        self.bridge.why = "TLS: " + reason(error)
        raise OSError(LOST)
