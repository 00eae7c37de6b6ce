"""What else `slotmq deploy` may ask of a board's network, and which board and link can do it.

Each value is kept when a board is deployed to again, unless another one is given. In
network.json they have the names that firmware/slotmq_run knows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from ipaddress import IPv4Address, IPv4Interface
from typing import Any

import click

from ..boards import Board
from ..errors import ToolError

_AS_BEFORE = "as-before"  # of the INT pin, which may be none
_SECURITIES = {"wpa2": "", "wpa3": "wpa3", "wpa2-wpa3": "wpa2_wpa3"}
_PINS = range(30)  # of an RP2040
_FIXED = ("station", "ethernet")
_OF_OPTIONS = {
    "address": "--address",
    "country": "--country",
    "security": "--wifi-security",
    "power_saving": "--wifi-power-saving",
    "int_pin": "--int-pin",
}


@dataclass(frozen=True)
class LinkOptions:
    """None: as the board has it; empty: none."""

    address: tuple[str, ...] | None = None  # address, mask, gateway, DNS; empty: DHCP's
    country: str | None = None
    security: str | None = None
    power_saving: bool | None = None
    int_pin: int | str | None = _AS_BEFORE  # None: it has none

    def given(self) -> dict[str, Any]:
        """What the user has said, by its name in network.json."""
        found = {name: getattr(self, name) for name in _OF_OPTIONS}
        unsaid = dict.fromkeys(found) | {"int_pin": _AS_BEFORE}
        return {name: each for name, each in found.items() if each != unsaid[name]}

    def check(self, link: str, board: Board) -> None:
        """ToolError: that board could not do it, or not on such a link."""
        for name, value in self.given().items():
            if (value or name == "int_pin") and (why := _why_not(name, link, board)):
                raise ToolError(f"{_OF_OPTIONS[name]}: {why}")

    def facts(self, link: str, board: Board, there: dict[str, Any]) -> dict[str, Any]:
        """For network.json: what was said, and what the board has."""
        wanted = {name: there[name] for name in _OF_OPTIONS if _is_one(name, there)}
        wanted |= self.given()
        return {
            name: list(value) if name == "address" else value
            for name, value in wanted.items()
            if (value or name == "int_pin") and not _why_not(name, link, board)
        }

    def kept(self, facts: dict[str, Any]) -> list[str]:
        """Of what network.json gets: what was not said now, as an option."""
        found = [name for name in _OF_OPTIONS if name in facts and name not in self.given()]
        return [f"{_OF_OPTIONS[name]} {_shown(facts[name])}".rstrip() for name in found]


def _shown(value: Any) -> str:
    if value is True:
        return ""  # a flag
    if isinstance(value, list):
        return str(IPv4Interface(f"{value[0]}/{value[1]}"))
    return str(value).lower() if value is None else str(value).replace("_", "-")


def _why_not(name: str, link: str, board: Board) -> str:
    wifi = link in ("station", "access_point")
    if name == "address" and link not in _FIXED:
        return "only a client of an access point, or Ethernet, has an address to be fixed"
    if name in ("country", "security", "power_saving") and not wifi:
        return "that is of Wi-Fi"
    if name == "country" and not board.mcu.startswith("rp2"):
        return "MicroPython tells an ESP32's Wi-Fi no country; it follows the access point"
    if name == "security" and link != "station":
        return "only a client of an access point chooses it; its own one has WPA2"
    if name == "security" and not board.mcu.startswith("rp2"):
        return "an ESP32 takes what the access point has, WPA3 too"
    if name == "int_pin" and link != "ethernet":
        return "that is a W5500's, on Ethernet"
    return ""


def _is_one(name: str, there: dict[str, Any]) -> bool:
    # Is it in the board's network.json, as deploy would have written it?
    value = there.get(name)
    if name == "address":
        return isinstance(value, list) and len(value) == 4 and all(map(_is_ip, value))
    if name == "int_pin":
        return name in there and (value is None or isinstance(value, int))
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
            self.fail(f"{value}: expected an address with its network, as 192.168.1.10/24")
        if found.ip in (net.network_address, net.broadcast_address):
            self.fail(f"{value}: that is the network's own address, or the one for all in it")
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
            self.fail(f"{value}: expected the number of a GPIO, or none")
        return int(value)


class _Country(click.ParamType):  # type: ignore[type-arg]
    name = "CODE"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if value and not (len(value) == 2 and value.isascii() and value.isalpha()):
            self.fail(f"{value}: expected two letters, as DE or US")
        return value.upper()


_CLICK = (
    click.option(
        "--address",
        type=_Fixed(),
        help="The board's address and its network's bits, as 192.168.1.10/24 [as before]; '' for"
        " one by DHCP.",
    ),
    click.option("--gateway", type=_Ip(), help="With --address [the network's first address]."),
    click.option("--dns", type=_Ip(), help="With --address [the gateway]."),
    click.option(
        "--country",
        type=_Country(),
        help="Where a Pico W is, as DE: which Wi-Fi channels it may use [as before]; '' for those"
        " of everywhere.",
    ),
    click.option(
        "--wifi-security",
        "security",
        type=click.Choice(list(_SECURITIES)),
        help="Of the access point that a Pico W joins [as before; wpa2]. An ESP32 takes what there"
        " is.",
    ),
    click.option(
        "--wifi-power-saving/--no-wifi-power-saving",
        "power_saving",
        default=None,
        help="Let the radio sleep: packets to the board may wait meanwhile [as before; no].",
    ),
    click.option(
        "--int-pin",
        type=_Pin(),
        default=_AS_BEFORE,
        help="Where a W5500's INT is wired to [as before; 21, as on WIZnet's board]; 'none': the"
        " board looks every 64 ms whether something has come.",
    ),
)


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command those options."""
    return reduce(lambda made, option: option(made), reversed(_CLICK), command)


def said(given: dict[str, Any]) -> LinkOptions:
    """What the command was given; UsageError: it does not go together."""
    address, gateway, dns = (given[name] for name in ("address", "gateway", "dns"))
    security = given["security"]
    fixed: tuple[str, ...] | None = None if address is None else ()
    if address:
        gateway = gateway or address.network.network_address + 1
        if gateway == address.ip or gateway not in address.network:
            raise click.UsageError(
                f"--gateway {gateway}, the network's first address unless given: another one in"
                f" {address.network} is needed"
            )
        fixed = tuple(map(str, (address.ip, address.netmask, gateway, dns or gateway)))
    elif gateway or dns:
        raise click.UsageError("--gateway and --dns go with --address")
    return LinkOptions(
        fixed,
        given["country"],
        None if security is None else _SECURITIES[security],
        given["power_saving"],
        given["int_pin"],
    )
