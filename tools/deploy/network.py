"""network.json: how a board joins a network, where its time comes from, and its host name."""

import json
from dataclasses import dataclass, field, replace
from string import ascii_letters, digits, hexdigits
from typing import Any

from .. import boards
from ..errors import ToolError
from .link_options import LinkOptions

TIME_TOPIC = "$SLOTMQ/time"
WIFI = ("station", "access_point")
_OF_USERS = ("pins", "led", "watchdog", "spi", "uart", "baudrate")  # set by editing the file
_REUSED = ("hostname", "time")  # stay as they are on the board unless given
_HOSTNAME_MAX = 32  # MicroPython's MICROPY_PY_NETWORK_HOSTNAME_MAX_LEN
_HOSTNAME_CHARACTERS = f"{ascii_letters}{digits}-_."
_SSID_MAX = 32
_PASSWORD_LENGTHS = range(8, 64)  # WPA2
_KEY_DIGITS = 64  # hexadecimal digits of the key that WPA2 derives from a password
_WATCHDOG_MS = range(2000, 8389)


@dataclass(frozen=True)
class Network:
    """What the user asks for. None: as it is on the board. The password is never shown."""

    link: str  # station, access_point, ethernet or ppp
    ssid: str = ""
    password: str | None = None
    hostname: str | None = None
    time: str | None = None  # a server, or TIME_TOPIC
    options: LinkOptions = field(default_factory=LinkOptions)

    def __repr__(self) -> str:
        return f"Network({self.link}, {self.ssid})"

    def check(self) -> None:
        """ToolError: a host name, time source, SSID or password that cannot be used."""
        name = self.hostname or ""
        if len(name) > _HOSTNAME_MAX or name.strip(_HOSTNAME_CHARACTERS):
            raise ToolError(
                f"{name!r}: --hostname takes 1 to {_HOSTNAME_MAX} letters, digits and hyphens"
            )
        if (self.time or "").startswith("$") and not self.time_by_topic:
            raise ToolError(f"{self.time}: --time takes a server, or '{TIME_TOPIC}'")
        if self.link not in WIFI:
            return
        if not 0 < len(self.ssid.encode()) <= _SSID_MAX:
            raise ToolError(f"{self.ssid!r}: an SSID has 1 to {_SSID_MAX} bytes")
        text = self.password
        if not text or (len(text) in _PASSWORD_LENGTHS and text.isascii() and text.isprintable()):
            return
        if self.link == "station" and len(text) == _KEY_DIGITS and not text.strip(hexdigits):
            return
        raise ToolError(
            f"the password of {self.ssid} cannot be a WPA2 password: expected"
            f" {_PASSWORD_LENGTHS[0]} to {_PASSWORD_LENGTHS[-1]} characters of printable ASCII, or"
            " an empty one for an open network"
        )

    @property
    def time_by_topic(self) -> bool:
        """Is the clock set by messages to TIME_TOPIC?"""
        return self.time == TIME_TOPIC

    def completed(self, on_board: dict[str, Any]) -> "Network":
        """This one, with host name and time of the board's network.json where none is given."""
        values: dict[str, Any] = {}
        for name in _REUSED:
            if getattr(self, name) is None:
                text = on_board.get(name)
                values[name] = text if isinstance(text, str) else ""
        return replace(self, **values)

    def to_json(self, board: str, on_board: dict[str, Any]) -> bytes:
        """network.json; `on_board` is the board's present one.

        ToolError: no password is given, and the board has none for this SSID."""
        values: dict[str, Any] = {"board": board, "link": self.link}
        if self.link in WIFI:
            values["ssid"] = self.ssid
            values["password"] = self._password(on_board)
        for name in _REUSED:
            if given := getattr(self, name):
                values[name] = given
        values |= self.options.to_json(self.link, boards.load(board), on_board)
        for name in _OF_USERS:
            if name in on_board and (name != "watchdog" or _is_watchdog(on_board[name])):
                values[name] = on_board[name]
        return json.dumps(values).encode()

    def _password(self, on_board: dict[str, Any]) -> str:
        if self.password is not None:
            return self.password
        if on_board.get("ssid") == self.ssid and "password" in on_board:
            return str(on_board["password"])
        raise ToolError(f"the password of {self.ssid} is not known: see --wifi-password-file")


def _is_watchdog(value: Any) -> bool:
    # As firmware/slotmq_run/watch.py checks it; with another value the board goes to safe mode.
    return type(value) is int and (value == 0 or value in _WATCHDOG_MS)
