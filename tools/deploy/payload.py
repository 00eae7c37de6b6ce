"""Which files a board gets, as a dict from path to content.

The broker and the firmware's modules are compiled for the board's processor, the
board's limits are a module of their own; slotmq.conf and network.json are the user's.
"""

import hashlib
import json
import tempfile
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from string import hexdigits
from typing import Any

from .. import mpy
from ..errors import ToolError

CONF, NETWORK, BOOTS = "/slotmq.conf", "/network.json", "/slotmq.boots"
# What deploy itself may remove: its own folders, in which nothing else has a place.
OWN = ("/lib/slotmq/", "/lib/slotmq_boards/", "/lib/slotmq_run/")
_FIRMWARE = Path(__file__).resolve().parents[2] / "firmware"
_MAIN = _FIRMWARE / "main.py"
_RUN = "slotmq_run"
# Of main.py in earlier versions: what has one of these is ours.
_MAINS = ("704fc428bb05823927888498a0cfb9f33168dcd61ce92a7d922c57ea6ad3d2e2",)
NEW = ".new"  # behind the name of a file while it is written
_OPEN = b"# No configuration was given: anybody on the network may come in.\n"
_OPEN += b"listener 1883\nallow_anonymous true\n"
_BY_HAND = ("pins", "led", "watchdog", "spi", "uart", "baudrate")  # of network.json
_SSID_MAX = 32
_PASSWORD = range(8, 64)  # WPA2's lengths
_KEY = 64  # hexadecimal digits: what a password is made into


@dataclass(frozen=True)
class Network:
    """How the board comes onto a network; the password is shown nowhere."""

    link: str
    ssid: str = ""
    password: str | None = None  # None: the one that the board has
    hostname: str = ""
    time: str = ""

    def __repr__(self) -> str:
        return f"Network({self.link}, {self.ssid})"

    def check(self) -> None:
        """ToolError: no Wi-Fi has such a name or password."""
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

    def file(self, board: str, there: dict[str, Any]) -> bytes:
        """network.json; `there` is what the board has now."""
        facts: dict[str, Any] = {"board": board, "link": self.link}
        if self.link in ("station", "access_point"):
            facts["ssid"] = self.ssid
            facts["password"] = self._password(there)
        for name in ("hostname", "time"):
            if given := getattr(self, name):
                facts[name] = given
        for name in _BY_HAND:
            if name in there:
                facts[name] = there[name]
        return json.dumps(facts).encode()

    def _password(self, there: dict[str, Any]) -> str:
        if self.password is not None:
            return self.password
        if there.get("ssid") == self.ssid and "password" in there:
            return str(there["password"])
        raise ToolError(f"the password of {self.ssid} is not known: see --wifi-password-file")


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


def configuration(conf: Path | None, board: str, topic_time: bool) -> bytes:
    """slotmq.conf, checked here with the broker's own parser."""
    text = _OPEN if conf is None else _read(conf)
    if topic_time:
        limits, _ = limits_of(conf, board)
        text += b"\n# One more, for the program on the board itself\n"
        text += b"limit connections %d\n" % (limits.connections + 1)
    return text


def limits_of(conf: Path | None, board: str) -> tuple[Any, Any]:
    """The board's limits as the configuration changes them, and the settings."""
    from slotmq import Settings
    from slotmq import conf as parser
    from slotmq.settings import ConfError

    limits = import_module(f"slotmq_boards.{board}.limits").LIMITS
    if conf is None:
        return limits, Settings()
    try:
        settings, limits, _ = parser.load(str(conf), limits)
    except (ConfError, ValueError, OSError) as error:
        raise ToolError(f"{error}: the board would not start with it") from None
    return limits, settings


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
