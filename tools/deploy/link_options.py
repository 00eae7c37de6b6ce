"""Network options of `slotmq deploy`: address, Wi-Fi and INT pin, and which board and link
supports each.

A value stays on the board until a deploy gives another one. In network.json it has the name that
firmware/slotmq_run uses.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from ipaddress import IPv4Address, IPv4Interface
from typing import Any

import click

from ..boards import Board
from ..errors import ToolError

_AS_BEFORE = "as-before"  # --int-pin was not given; None means that there is no INT pin
_SECURITIES = {"wpa2": "", "wpa3": "wpa3", "wpa2-wpa3": "wpa2_wpa3"}
_PINS = range(30)  # GPIOs of an RP2040
_WITH_ADDRESS = ("station", "ethernet")
_OPTIONS = {
    "address": "--address",
    "country": "--country",
    "security": "--wifi-security",
    "power_saving": "--wifi-power-saving",
    "int_pin": "--int-pin",
}


@dataclass(frozen=True)
class LinkOptions:
    """What the user asks for. None: as it is on the board; empty: remove it."""

    address: tuple[str, ...] | None = None  # address, mask, gateway, DNS; empty: DHCP
    country: str | None = None
    security: str | None = None
    power_saving: bool | None = None
    int_pin: int | str | None = _AS_BEFORE  # None: the board has no INT pin

    def given(self) -> dict[str, Any]:
        """The options that the user gave, by their names in network.json."""
        found = {name: getattr(self, name) for name in _OPTIONS}
        defaults = dict.fromkeys(found) | {"int_pin": _AS_BEFORE}
        return {name: each for name, each in found.items() if each != defaults[name]}

    def check(self, link: str, board: Board) -> None:
        """ToolError: this board, or this link, does not support an option that was given."""
        for name, value in self.given().items():
            if (value or name == "int_pin") and (why := _unsupported(name, link, board)):
                raise ToolError(f"{_OPTIONS[name]}: {why}")

    def to_json(self, link: str, board: Board, on_board: dict[str, Any]) -> dict[str, Any]:
        """Entries of network.json: the given options, else those of the present network.json."""
        wanted = {name: on_board[name] for name in _OPTIONS if _is_valid(name, on_board)}
        wanted |= self.given()
        return {
            name: list(value) if name == "address" else value
            for name, value in wanted.items()
            if (value or name == "int_pin") and not _unsupported(name, link, board)
        }

    def reused(self, entries: dict[str, Any]) -> list[str]:
        """The entries of network.json that were not given now, as options of the command."""
        found = [name for name in _OPTIONS if name in entries and name not in self.given()]
        return [f"{_OPTIONS[name]} {_as_argument(entries[name])}".rstrip() for name in found]


def _as_argument(value: Any) -> str:
    if value is True:
        return ""  # a flag
    if isinstance(value, list):
        return str(IPv4Interface(f"{value[0]}/{value[1]}"))
    return str(value).lower() if value is None else str(value).replace("_", "-")


def _unsupported(name: str, link: str, board: Board) -> str:
    # The reason; "": it is supported
    wifi = link in ("station", "access_point")
    if name == "address" and link not in _WITH_ADDRESS:
        return "only a Wi-Fi client or Ethernet can have a fixed address"
    if name in ("country", "security", "power_saving") and not wifi:
        return "only for Wi-Fi"
    if name == "country" and not board.mcu.startswith("rp2"):
        return "MicroPython cannot set it on an ESP32, whose Wi-Fi follows the access point"
    if name == "security" and link != "station":
        return "only for a Wi-Fi client; the board's own access point uses WPA2"
    if name == "security" and not board.mcu.startswith("rp2"):
        return "not needed: an ESP32 uses what the access point offers, WPA3 included"
    if name == "int_pin" and link != "ethernet":
        return "only for the W5500 of an Ethernet board"
    return ""


def _is_valid(name: str, on_board: dict[str, Any]) -> bool:
    # Does network.json have the entry, with a value that deploy could have written?
    value = on_board.get(name)
    if name == "address":
        return isinstance(value, list) and len(value) == 4 and all(map(_is_ip, value))
    if name == "int_pin":
        return name in on_board and (value is None or isinstance(value, int))
    return isinstance(value, bool if name == "power_saving" else str)


def _is_ip(value: Any) -> bool:
    try:
        IPv4Address(value)
    except ValueError:
        return False
    return isinstance(value, str)


class _Fixed(click.ParamType):  # type: ignore[type-arg]
    name = "ADDRESS/BITS"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not value or isinstance(value, IPv4Interface):
            return value
        try:
            found = IPv4Interface(value)
        except ValueError:
            found = IPv4Interface("0.0.0.0/32")
        net = found.network
        if "/" not in value or net.num_addresses < 4:
            self.fail(f"{value}: expected an address and a prefix length, such as 192.168.1.10/24")
        if found.ip in (net.network_address, net.broadcast_address):
            self.fail(f"{value}: this is the address of the network, or its broadcast address")
        return found


class _Ip(click.ParamType):  # type: ignore[type-arg]
    name = "ADDRESS"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            return IPv4Address(value)
        except ValueError:
            self.fail(f"{value}: expected an IPv4 address")


class _Pin(click.ParamType):  # type: ignore[type-arg]
    name = "GPIO"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if value in (_AS_BEFORE, None, "none"):
            return None if value == "none" else value
        if not str(value).isdigit() or int(value) not in _PINS:
            self.fail(f"{value}: expected a GPIO number, or none")
        return int(value)


class _Country(click.ParamType):  # type: ignore[type-arg]
    name = "CODE"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if value and not (len(value) == 2 and value.isascii() and value.isalpha()):
            self.fail(f"{value}: expected two letters, such as DE or US")
        return value.upper()


_CLICK = (
    click.option(
        "--address",
        type=_Fixed(),
        help="A fixed address with its prefix length, such as 192.168.1.10/24 [as before]; '' for"
        " DHCP.",
    ),
    click.option("--gateway", type=_Ip(), help="With --address [the network's first address]."),
    click.option("--dns", type=_Ip(), help="With --address [the gateway]."),
    click.option(
        "--country",
        type=_Country(),
        help="Country of a Pico W, such as DE; it decides which Wi-Fi channels may be used [as"
        " before]; '' for those that every country allows.",
    ),
    click.option(
        "--wifi-security",
        "security",
        type=click.Choice(list(_SECURITIES)),
        help="Security of the access point that a Pico W joins [as before; wpa2]. An ESP32 uses"
        " what the access point offers.",
    ),
    click.option(
        "--wifi-power-saving/--no-wifi-power-saving",
        "power_saving",
        default=None,
        help="Let the radio sleep; packets to the board may wait then [as before; no].",
    ),
    click.option(
        "--int-pin",
        type=_Pin(),
        default=_AS_BEFORE,
        help="GPIO of a W5500's INT pin [as before; 21, as on WIZnet's board]; 'none': the board"
        " polls the W5500 every 64 ms.",
    ),
)


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: add the options to a command."""
    return reduce(lambda made, option: option(made), reversed(_CLICK), command)


def from_arguments(given: dict[str, Any]) -> LinkOptions:
    """LinkOptions of the parsed options. UsageError: they contradict each other."""
    address, gateway, dns = (given[name] for name in ("address", "gateway", "dns"))
    security = given["security"]
    fixed: tuple[str, ...] | None = None if address is None else ()
    if address:
        gateway = gateway or address.network.network_address + 1
        if gateway == address.ip or gateway not in address.network:
            raise click.UsageError(
                f"--gateway {gateway} (default: the network's first address): expected another"
                f" address in {address.network}"
            )
        fixed = tuple(map(str, (address.ip, address.netmask, gateway, dns or gateway)))
    elif gateway or dns:
        raise click.UsageError("--gateway and --dns need --address")
    return LinkOptions(
        fixed,
        given["country"],
        None if security is None else _SECURITIES[security],
        given["power_saving"],
        given["int_pin"],
    )
