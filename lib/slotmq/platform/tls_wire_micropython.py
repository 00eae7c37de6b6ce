# tls_wire_micropython.py - the socket below mbedTLS, which reads on while it gets no plaintext:
# alerts and refused renegotiations would keep it busy as long as they come. So it may read only so
# many bytes at once. Loaded with TLS. Allocates.
import io

from slotmq.platform.runtime import const

WIRE_MOST = const(4096)  # bytes for one readinto() of the loop


class Wire(io.IOBase):
    """Set `left` before mbedTLS reads."""

    def __init__(self, sock):
        self.sock = sock
        self.left = 0

    def readinto(self, buf):
        if not self.left:
            return None
        try:
            n = self.sock.readinto(buf, min(len(buf), self.left))
        except OSError as error:  # it must not leave through mbedTLS
            return -error.args[0]
        self.left -= n or 0
        return n

    def write(self, buf):
        try:
            return self.sock.write(buf)
        except OSError as error:
            return -error.args[0]

    def ioctl(self, request, arg):
        return 0  # the socket is polled and closed by itself
