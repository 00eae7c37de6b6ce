"""One message at a time, at a low rate: its cost and its delay."""

import time

from .client import Address
from .pipelined import Shape, connect

PAUSE_S = 0.001
SHAPE = Shape(publishers=1, subscribers=1, payload=16, burst=1, depth=1)


class RoundTrip:
    """A publisher and a subscriber that waits for each message."""

    def __init__(self, address: Address, shape: Shape = SHAPE, *, handshake: bool = True) -> None:
        self._pipeline = connect(shape, address, handshake=handshake)

    def run(self, seconds: float) -> list[int]:
        """Send one message after the other for so long; -> the delays in ns."""
        delays = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(PAUSE_S)
            delays.append(self._pipeline.time_burst())
        return delays

    def close(self) -> None:
        """Close both connections."""
        self._pipeline.close()
