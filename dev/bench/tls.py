"""With --tls all brokers and clients of the bench speak TLS, with one certificate; with
--passwords each client logs in."""

import base64
import hashlib
import ssl
from pathlib import Path
from typing import Any

from slotmq_tools import passwd
from slotmq_tools.certs import Authority

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


_USER, _PASSWORD = "bench", "a password"
_users: list[Path] = []


def use_passwords(folder: Path) -> None:
    """From now on, with files in this folder. Each broker has its own format; mosquitto's
    password is hashed 101 times, as mosquitto_passwd does, slotmq's as `slotmq passwd` does."""
    passwd.put(folder / "slotmq", _USER, _PASSWORD)
    salt = b"twelve bytes"
    key = hashlib.pbkdf2_hmac("sha512", _PASSWORD.encode(), salt, 101)
    words = (base64.b64encode(each).decode() for each in (salt, key))
    (folder / "mosquitto").write_text(f"{_USER}:$7$101${'$'.join(words)}\n")
    for name in ("slotmq", "mosquitto"):
        (folder / name).chmod(0o600)
    _users.append(folder)


def access(broker: str) -> str:
    """Who may come in: a line or two of a broker's configuration."""
    if not _users:
        return "allow_anonymous true\n"
    return f"allow_anonymous false\npassword_file {_users[0] / broker}\n"


def login() -> dict[str, Any]:
    """Of each CONNECT, for codec.connect()."""
    return {"username": _USER, "password": _PASSWORD.encode()} if _users else {}


def is_used() -> bool:
    """Has a broker's listener more in its configuration than its port?"""
    return bool(_used or _users)
