"""A client beside an attack: how long its messages take while that lasts."""

import threading
import time

from ...codec import CONNECTED, packet, string
from .inputs import connect
from .link import Link, Noticed

_TOPIC = string(b"canary/of-what-nobody-else-names")
_PAUSE_S = 0.01


class Canary:
    """Sends itself numbered messages, one after the other, in a thread of its own."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._link = Link(address)
        self._link.exchange(connect(b"canary"), CONNECTED)
        self._link.exchange(packet(0x82, b"\0\1" + _TOPIC + b"\0"), b"\x90\3\0\1\0")
        self.delays: list[float] = []
        self.failure: Noticed | None = None
        self._is_ending = False
        self._thread = threading.Thread(target=self._fly)
        self._thread.start()

    def _fly(self) -> None:
        try:
            while not self._is_ending:
                message = packet(0x30, _TOPIC + b"%d" % len(self.delays))
                began = time.monotonic()
                self._link.exchange(message, message)
                self.delays.append(time.monotonic() - began)
                time.sleep(_PAUSE_S)
        except Noticed as noticed:
            self.failure = noticed

    def land(self, most: float) -> None:
        """Stop it. Noticed: a message has not come back, or only after so many seconds."""
        self._is_ending = True
        self._thread.join()
        self._link.finish()
        if self.failure:
            raise self.failure
        if not self.delays or max(self.delays) > most:
            worst = sorted(self.delays)[-5:]
            raise Noticed(f"of {len(self.delays)} messages the slowest took {worst} s")
