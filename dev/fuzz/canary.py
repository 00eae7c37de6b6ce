"""A client beside an attack: how long its messages take while that lasts."""

import threading
import time

from slotmq_tools.codec import CONNECTED, packet, string

from .inputs import connect
from .link import Link, Noticed

_TOPIC = string(b"canary/of-what-nobody-else-names")
_PAUSE_S = 0.01
_P99 = 0.25  # of the most: what one of a hundred may take longer


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
        """Stop it. Noticed: a message has not come back, or only after so many seconds, or one of
        a hundred after a quarter of that."""
        self._is_ending = True
        self._thread.join()
        self._link.finish()
        if self.failure:
            raise self.failure
        delays = sorted(self.delays)
        p99 = delays[: max(1, len(delays) * 99 // 100)][-1:]
        if not delays or delays[-1] > most or p99[0] > most * _P99:
            what = f"the slowest took {delays[-5:]} s, the 99th of a hundred {p99} s"
            raise Noticed(f"of {len(delays)} messages {what}")
