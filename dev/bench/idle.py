"""The memory that an idle client takes of the broker's process."""

import time

from .brokers import Running
from .client import Client
from .meter import resident_kb

CLIENTS = 200
_SETTLE_S = 0.2


class IdleClients:
    """Idle clients with one subscription each."""

    def __init__(self, running: Running) -> None:
        self._pid = running.pid
        self._before_kb = resident_kb(running.pid)
        self._clients = [Client(running.address, f"idler{n}") for n in range(CLIENTS)]
        for number, client in enumerate(self._clients):
            client.subscribe([f"idle/{number}/set"])

    def round(self, _seconds: float) -> dict[str, float]:
        """The memory per client, and of the broker."""
        time.sleep(_SETTLE_S)
        now = resident_kb(self._pid)
        return {"client_kb": (now - self._before_kb) / CLIENTS, "broker_mb": now / 1024}

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients:
            client.close()
