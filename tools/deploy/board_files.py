"""Which files a board gets, as a dict from path to content.

The broker and the firmware's modules are compiled for the board's processor, the
board's limits are a module of their own; network.json is the user's, as slotmq.conf is, of
which configuration.py knows.
"""

import hashlib
import json
import re
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import ascii_letters, digits, hexdigits
from typing import Any

from .. import boards
from ..errors import ToolError
from ..pack import mpy
from .link_options import LinkOptions

APP = "/app.py"  # an application beside the broker, see docs/embed.md
CONF, NETWORK, BOOTS = "/slotmq.conf", "/network.json", "/slotmq.boots"
# What deploy itself may remove: its own folders, in which nothing else has a place.
OWN = ("/lib/slotmq/", "/lib/slotmq_boards/", "/lib/slotmq_run/")
_FIRMWARE = Path(__file__).resolve().parents[2] / "firmware"
_MAIN = _FIRMWARE / "main.py"
_RUN = "slotmq_run"
# Of main.py in earlier versions: what has one of these is ours.
_MAINS = ("704fc428bb05823927888498a0cfb9f33168dcd61ce92a7d922c57ea6ad3d2e2",)
NEW = ".new"  # behind the name of a file while it is written
_BY_HAND = ("pins", "led", "watchdog", "spi", "uart", "baudrate")  # of network.json
_KEPT = ("hostname", "time")  # unless something else is said
TOPIC = "$SLOTMQ/time"
_HOSTNAME_MAX = 32  # MicroPython's MICROPY_PY_NETWORK_HOSTNAME_MAX_LEN
_OF_HOSTNAMES = f"{ascii_letters}{digits}-_."
_SSID_MAX = 32
_PASSWORD = range(8, 64)  # WPA2's lengths
_WATCHDOG_MS = range(2000, 8389)
_KEY = 64  # hexadecimal digits: what a password is made into


@dataclass(frozen=True)
class Network:
    """How the board comes onto a network; the password is shown nowhere."""

    link: str
    ssid: str = ""
    # None, here and below: as the board has it
    password: str | None = None
    hostname: str | None = None
    time: str | None = None
    more: LinkOptions = field(default_factory=LinkOptions)

    def __repr__(self) -> str:
        return f"Network({self.link}, {self.ssid})"

    def check(self) -> None:
        """ToolError: no board takes such a host name, no Wi-Fi such a name or password."""
        name = self.hostname or ""
        if len(name) > _HOSTNAME_MAX or name.strip(_OF_HOSTNAMES):
            raise ToolError(
                f"{name!r}: --hostname takes 1 to {_HOSTNAME_MAX} letters, digits and hyphens"
            )
        if (self.time or "").startswith("$") and not self.by_topic:
            raise ToolError(f"{self.time}: --time takes a server, or '{TOPIC}'")
        if self.link not in ("station", "access_point"):
            return
        if not 0 < len(self.ssid.encode()) <= _SSID_MAX:
            raise ToolError(f"{self.ssid!r}: the name of a network has 1 to {_SSID_MAX} bytes")
        text = self.password
        if not text or (len(text) in _PASSWORD and text.isascii() and text.isprintable()):
            return
        if self.link == "station" and len(text) == _KEY and not text.strip(hexdigits):
            return
        raise ToolError(
            f"the password of {self.ssid} is none of WPA2: it takes {_PASSWORD[0]} to"
            f" {_PASSWORD[-1]} characters of printable ASCII, or none at all for an open network"
        )

    @property
    def by_topic(self) -> bool:
        """Does the time come from who publishes it?"""
        return self.time == TOPIC

    def kept(self, there: dict[str, Any]) -> "Network":
        """With what the board has, where nothing else was said."""
        names = [name for name in _KEPT if getattr(self, name) is None]
        texts: dict[str, Any] = {}
        for name in names:
            text = there.get(name)
            texts[name] = text if isinstance(text, str) else ""
        return replace(self, **texts)

    def file(self, board: str, there: dict[str, Any]) -> bytes:
        """network.json; `there` is what the board has now."""
        facts: dict[str, Any] = {"board": board, "link": self.link}
        if self.link in ("station", "access_point"):
            facts["ssid"] = self.ssid
            facts["password"] = self._password(there)
        for name in _KEPT:
            if given := getattr(self, name):
                facts[name] = given
        facts |= self.more.facts(self.link, boards.load(board), there)
        for name in _BY_HAND:
            if name in there and (name != "watchdog" or _is_watchdog(there[name])):
                facts[name] = there[name]
        return json.dumps(facts).encode()

    def _password(self, there: dict[str, Any]) -> str:
        if self.password is not None:
            return self.password
        if there.get("ssid") == self.ssid and "password" in there:
            return str(there["password"])
        raise ToolError(f"the password of {self.ssid} is not known: see --wifi-password-file")


def _is_watchdog(value: Any) -> bool:
    # As firmware/slotmq_run/watch.py would take it; with another one the board starts no broker.
    return type(value) is int and (value == 0 or value in _WATCHDOG_MS)


def code(board: str, arch: str) -> dict[str, bytes]:
    """The broker, this board's limits and the firmware's modules, and main.py."""
    made = mpy.build(arch)
    files = {f"/lib/{name}": (made / name).read_bytes() for name in mpy.for_board(made, board)}
    with tempfile.TemporaryDirectory() as folder:
        for source in sorted((_FIRMWARE / _RUN).glob("*.py")):
            made_of_it = mpy.compile_file(source, f"{_RUN}/{source.name}", Path(folder))
            files[f"/lib/{_RUN}/{made_of_it.name}"] = made_of_it.read_bytes()
    files["/main.py"] = _MAIN.read_bytes()
    return files


def mains() -> tuple[str, ...]:
    """SHA-256 of every main.py that deploy has ever written."""
    return (hashlib.sha256(_MAIN.read_bytes()).hexdigest(), *_MAINS)


def application(file: Path) -> bytes:
    """app.py; ToolError: no board could load it, or it has no start()."""
    text = _read(file)
    with tempfile.TemporaryDirectory() as folder:
        mpy.compile_file(file, "app.py", Path(folder))
    if not re.search(rb"\bstart\b", text):
        raise ToolError(f"{file} has no start(broker): see docs/embed.md")
    return text


def changed(wanted: dict[str, bytes], there: dict[str, str]) -> list[str]:
    """The paths that the board has not, or otherwise; main.py last: it is what starts."""
    found = [
        path
        for path, content in wanted.items()
        if there.get(path) != hashlib.sha256(content).hexdigest()
    ]
    return sorted(found, key=lambda path: (path == "/main.py", path))


def left_over(wanted: dict[str, bytes], there: dict[str, str]) -> list[str]:
    """What an older version has left in our folders, and what was not written to its end."""
    cut_off = {path + NEW for path in wanted}
    return [
        path for path in there if path not in wanted and (path.startswith(OWN) or path in cut_off)
    ]


def _read(conf: Path) -> bytes:
    try:
        return conf.read_bytes()
    except OSError as error:
        raise ToolError(f"{conf}: {error.strerror}") from None
