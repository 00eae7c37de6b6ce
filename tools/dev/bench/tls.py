"""With --tls all brokers and clients of the bench speak TLS, with one certificate."""

import ssl
from pathlib import Path

from ...certs import Authority

BROKERS = ("slotmq-cpython", "slotmq-micropython32", "slotmq-micropython64", "mosquitto")
_used: list[tuple[str, ssl.SSLContext]] = []


def use(folder: Path) -> None:
    """From now on, with files in this folder."""
    Authority(folder).issue("server", "localhost", ("localhost",), 1)
    lines = f"certfile {folder}/server.crt\nkeyfile {folder}/server.key\n"
    _used.append((lines, ssl.create_default_context(cafile=folder / "ca.crt")))


def lines() -> str:
    """What a broker's listener has in its configuration."""
    return _used[0][0] if _used else ""


def context() -> ssl.SSLContext | None:
    """Of the clients; None: they speak plain MQTT."""
    return _used[0][1] if _used else None
