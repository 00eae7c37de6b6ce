"""After a deploy: wait until the board reports its broker and its network, then test the broker.

A start that fails becomes a ToolError with advice."""

import re
from collections.abc import Callable

from ..errors import ToolError
from . import mqtt_client
from .network import Network
from .repl import Repl

_TIMEOUT_S = 150  # for the lines of the broker and of the network
_HEADLINE = re.compile(r"slotmq \S+ on MicroPython")
_PORT = re.compile(r"listening on \S+:(\d+)")
_ADDRESS = re.compile(r": up, (\d+\.\d+\.\d+\.\d+)$")
_REPL_PROMPT = 'Type "help()" for'  # the program has ended
_SAFE_MODE = "slotmq: safe mode: "
_NO_HEAP = (
    "tables take",
    "MemoryError",
    "memory allocation",
    "code does not fit",
    "no heap is left",
)
_NO_TEST = (
    "the broker was not tested: its first listener speaks TLS, and requires a certificate of each"
    " client, or --cafile FILE did not name the CA to trust"
)
_ADVICE = {
    "station": "check --wifi-ssid and the password, and whether the access point is in range"
    " (2.4 GHz)",
    "access_point": "its own access point does not start: switch the board off and on, and see"
    " what `slotmq logs` shows",
    "ethernet": "check the cable, the DHCP server, and the pins: those of WIZnet's board, unless"
    " the board's network.json has others",
    "ppp": "check what is connected to the UART, its baud rate, and the pins in the board's"
    " network.json",
}


def wait_for_broker(
    repl: Repl,
    network: Network,
    login: mqtt_client.Login | None,
    address: tuple[str, int] | None,
    say: Callable[[str], None],
) -> None:
    """Wait for the board's lines about broker and network, then test the broker.

    `address`: where this computer reaches the broker, if not where the board says. `login`: None:
    it is not tested, as it needs a certificate. ToolError:
    the broker or the network does not start, or the test fails."""
    lines: list[str] = []
    port, ip = 0, ""
    for line in repl.lines(_TIMEOUT_S):
        lines.append(line)
        if line.startswith((_REPL_PROMPT, _SAFE_MODE)):
            raise ToolError("\n".join([_advice(" ".join(lines)), *lines[-10:]]))
        if _HEADLINE.match(line):
            say(line)
            found = _PORT.search(line)
            port = int(found[1]) if found else 1883
        elif up := _ADDRESS.search(line):
            say(line)
            ip = up[1]
        elif port and "; it is tried again" in line:
            say(line)
            if "wrong password" in line:
                raise ToolError(
                    "the access point rejects the password: deploy again with the right one in"
                    " --wifi-password-file"
                )
        if port and ip:
            if network.link == "access_point" and not address:
                say(_how_to_test(network.ssid, ip, port))
                return
            if login is None:
                say(_NO_TEST)
                return
            host, port = address or (ip, port)
            say(f"{host}:{port}: {_tested((host, port), login)}")
            return
    raise ToolError("\n".join([_what_is_missing(network.link, port), *lines[-10:]]))


def _tested(address: tuple[str, int], login: mqtt_client.Login) -> str:
    try:
        return mqtt_client.try_out(address, login)
    except mqtt_client.Unreachable as error:
        raise ToolError(
            f"{error} The broker runs; if this computer reaches it at another address, give"
            " --reach HOST:PORT"
        ) from None


def _how_to_test(ssid: str, ip: str, port: int) -> str:
    return (
        "the broker was not tested, since this computer is not on the board's own network:"
        f" join {ssid}, then `slotmq status {ip}:{port}` shows whether the broker answers"
    )


def _advice(text: str) -> str:
    # Why there is no broker, by all that the board has printed
    if "network.json" in text:
        return "the board cannot use its network.json: deploy again"
    if any(words in text for words in _NO_HEAP):
        return "the tables do not fit: lower a limit in the configuration"
    if "app.py" in text:
        return (
            "the application beside the broker fails: deploy again with --app FILE, or without"
            " an application after `mpremote fs rm :app.py`; the board printed:"
        )
    return "the broker did not start; the board printed:"


def _what_is_missing(link: str, port: int) -> str:
    if port:
        return f"the broker runs, but the network does not come up: {_ADVICE[link]}"
    return "the board does not report a broker: `slotmq logs` shows what it prints"
