"""What a board says after a deploy, until the broker was tried: its first line, the network's,
and what it means where neither comes."""

import re
from collections.abc import Callable

from ..errors import ToolError
from . import mqtt_client
from .board_files import Network
from .repl import Repl

_TIMEOUT_S = 150  # for the first line, and for the network
_HEADLINE = re.compile(r"slotmq \S+ on MicroPython")
_PORT = re.compile(r"listening on \S+:(\d+)")
_ADDRESS = re.compile(r": up, (\d+\.\d+\.\d+\.\d+)$")
_PROMPT = 'Type "help()" for'  # the REPL's: the program has ended
_SAFE_MODE = "slotmq: safe mode: "  # it starts again later
_NO_HEAP = (
    "tables take",
    "MemoryError",
    "memory allocation",
    "code does not fit",
    "no heap is left",
)
_ADVICE = {
    "station": "check --wifi-ssid and the password, and whether the access point is in reach"
    " (2.4 GHz)",
    "access_point": "its own access point does not begin: switch it off and on, and see what"
    " `slotmq logs` shows",
    "ethernet": "check the cable, the pins, which are in the board's network.json if they are not"
    " those of WIZnet's board, and whether there is a DHCP server",
    "ppp": "check what is at the other end of the UART, its baud rate, and the pins in the board's"
    " network.json",
}


def watch(
    repl: Repl,
    network: Network,
    login: mqtt_client.Login,
    way: tuple[str, int] | None,
    say: Callable[[str], None],
) -> None:
    """Wait for the broker's first line and for the network, then try it; `way`: not there, but
    here."""
    heard: list[str] = []
    port, address = 0, ""
    for line in repl.lines(_TIMEOUT_S):
        heard.append(line)
        if line.startswith((_PROMPT, _SAFE_MODE)):
            raise ToolError("\n".join([_why_not(" ".join(heard)), *heard[-10:]]))
        if _HEADLINE.match(line):
            say(line)
            found = _PORT.search(line)
            port = int(found[1]) if found else 1883
        elif up := _ADDRESS.search(line):
            say(line)
            address = up[1]
        elif port and "; it is tried again" in line:
            say(line)
            if "wrong password" in line:
                raise ToolError(
                    "the access point refuses the password: deploy again with the"
                    " right one, by --wifi-password-file"
                )
        if port and address:
            if network.link == "access_point" and not way:
                say(_join_it(network.ssid, address, port))
                return
            where = way or (address, port)
            say(f"{where[0]}:{where[1]}: {_tried(where, login)}")
            return
    raise ToolError("\n".join([_silence(network.link, port), *heard[-10:]]))


def _tried(where: tuple[str, int], login: mqtt_client.Login) -> str:
    try:
        return mqtt_client.try_out(where, login)
    except mqtt_client.Unreachable as error:
        raise ToolError(
            f"{error} The broker runs; if this computer has another way to it, name that by"
            " --reach HOST:PORT"
        ) from None


def _join_it(ssid: str, address: str, port: int) -> str:
    return (
        f"the broker was not tried: this computer would have to be on the board's own network."
        f" Join {ssid}, then `slotmq status {address}:{port}` shows whether it answers"
    )


def _why_not(line: str) -> str:
    if "network.json" in line:
        return "the board cannot use its network configuration: deploy again"
    if any(words in line for words in _NO_HEAP):
        return "the tables do not fit: lower a limit in the configuration"
    if "app.py" in line:
        return (
            "the application beside the broker fails: deploy again with --app FILE, or without"
            " one after `mpremote fs rm :app.py`; this is what the board said:"
        )
    return "the broker did not start; this is what the board said:"


def _silence(link: str, port: int) -> str:
    if port:
        return f"the broker runs, and the network does not come up: {_ADVICE[link]}"
    return "the board says nothing of a broker: `slotmq logs` shows what it says"
