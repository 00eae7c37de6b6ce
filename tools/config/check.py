"""Whether the broker could start with a configuration."""

from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from slotmq.access import acl_file, mosquitto_cpython, users_file
from slotmq.access.rules_of_listeners_cpython import files_of
from slotmq.app.start import _OF_VERSION_5
from slotmq.bridge import options
from slotmq.config import budget, lower_limits, tls_listeners
from slotmq.config import mosquitto_conf as parser
from slotmq.config.settings import ConfError
from slotmq.fast.bytes_cpython import filter_ok
from slotmq.recorder import start as recorder

from .. import boards

# A board may have so many bytes more than its board.json says: what Wi-Fi takes is a plan.
_UNSURE = 40_000


def preset(board: str) -> Any:
    """The board's Limits, with as many connections as its stock firmware has sockets for."""
    return import_module(f"slotmq_boards.{board}.limits").LIMITS


def check(file: Path, board: str) -> tuple[list[str], list[str]]:
    """All errors and all warnings."""
    machine = True if board == "HOST" else parser.OF_BOARD
    reader: Any = parser.Reader(str(file), preset(board), is_foreign=machine)
    try:
        reader.open(str(file))
        settings = reader.finish()
        together(settings, reader.limits)
    except ConfError as error:
        return str(error).split("\n"), reader.warnings
    except (ValueError, OSError) as error:
        return [f"{file}: {error}"], reader.warnings
    if board == "HOST":
        reader.warnings += missing(settings)
        if errors := _of_bridges(settings):
            return errors, reader.warnings
    else:
        reader.warnings += _tls(board, settings, reader.limits)
        reader.warnings += _sockets(board, reader.limits)
        lacks, told = _heap(board, settings, reader.limits)
        if lacks > _UNSURE:
            return told, reader.warnings
        reader.warnings += told
    return _in_its_files(settings, reader.limits, board), reader.warnings


def tables(settings: Any, limits: Any) -> list[tuple[Any, ...]]:
    """Rows (name, bytes, ...) of what a start with these takes for tables."""
    rows: list[tuple[Any, ...]] = [
        row for row in limits.rows() if settings.mqtt_versions == 5 or row[0] not in _OF_VERSION_5
    ]
    if settings.persistence:
        rows.append(budget.journal(limits))
    rows += budget.access_rows(settings, limits)
    return rows


def way(settings: Any) -> str:
    """How the broker is started, as a key of `tables_bytes` in board.json."""
    ways = ("3", settings.mqtt_versions == 3), ("kept", settings.persistence)
    return " ".join(name for name, is_so in ways if is_so)


def tls_most(board: str, settings: Any, limits: Any) -> int:
    """How many connections over TLS the board's heap bears beside the other tables."""
    used = sum(row[1] for row in tables(settings, limits) if row[0] != "tls_connections")
    left = boards.load(board).tables_bytes[way(settings)] - used
    none, one = (budget.tls_row(n)[1] for n in (0, 1))
    return int(min(limits.connections, max(0, (left - none) // (one - none))))


def _tls(board: str, settings: Any, limits: Any) -> list[str]:
    # A warning: a firmware of one's own may have more heap
    asked, most = limits.tls_connections, tls_most(board, settings, limits)
    text = f"limit tls_connections {asked}: with its stock firmware {board} has heap for {most}"
    return [f"{text} beside the other tables, see `slotmq budget`"] if asked > most else []


def _sockets(board: str, limits: Any) -> list[str]:
    asked, most = limits.connections, preset(board).connections
    text = f"limit connections {asked}: with its stock firmware {board} has sockets for {most}"
    return [f"{text}: more clients get no answer"] if asked > most else []


def _heap(board: str, settings: Any, limits: Any) -> tuple[int, list[str]]:
    # How many bytes are too few, and a text
    rows, left = tables(settings, limits), boards.load(board).tables_bytes[way(settings)]
    need = sum(row[1] for row in rows if row[0] != "tls_connections")  # these have a warning
    if need <= left:
        return 0, []
    lower = lower_limits.report(rows, need - left, limits, preset(board), settings)
    text = f"the tables take {need:,} bytes, and {board} has {left:,} left for them with its stock"
    return need - left, [f"{text} firmware; {lower}"]


def _of_bridges(settings: Any) -> list[str]:
    # The errors in keys of TLS of each bridge, if its files are on this computer
    found: list[str] = []
    for each in settings.connections:
        try:
            if all(Path(file).exists() for file in _files(each)):
                options.load(each)
        except ValueError as error:
            found.append(f"{each.place}: connection: expected {error}, for {each.name}")
    return found


def _files(bridge: Any) -> list[str]:
    names = "bridge_cafile", "bridge_capath", "bridge_certfile", "bridge_keyfile"
    return [getattr(bridge, name) for name in names if getattr(bridge, name)]


def _in_its_files(settings: Any, limits: Any, board: str) -> list[str]:
    # The errors in its password_file and its acl_files, as far as these are on this computer
    found: list[str] = []
    usable = mosquitto_cpython.usable if board == "HOST" else None
    try:
        if settings.password_file and _is_here(settings.password_file):
            users_file.read(settings.password_file, limits.users, usable, limits.client_id_bytes)
    except ValueError as error:
        found.append(str(error))
    except OSError as error:
        found.append(f"{settings.password_file}: expected a file that can be read ({error})")
    try:
        check_rules([file for file in files_of(settings) if _is_here(file)], limits)
    except ConfError as error:
        found += str(error).split("\n")
    return found


def _is_here(file: str) -> bool:
    # Can it be read without waiting? A folder cannot be read at all, which is an error.
    return Path(file).is_file() or Path(file).is_dir()


def check_rules(files: list[str], limits: Any) -> None:
    """ConfError, with file and line of all errors: a broker that starts could not read these
    acl_files."""
    sessions = SimpleNamespace(used=lambda _: False)
    broker = SimpleNamespace(limits=limits, sessions=sessions)
    owners = SimpleNamespace(most=limits.client_id_bytes)
    acl = SimpleNamespace(broker=broker, owners=owners, slots=limits.acl_rules, files=files)
    acl_file.check(acl, [acl_file._Rules(acl, file) for file in files])


def missing(settings: Any) -> list[str]:
    """What the start needs and this computer does not have: a file, and folders of others."""
    users = [settings.password_file] if settings.password_file else []
    needed = [Path(each) for each in users + files_of(settings)]
    needed += [
        Path(path) for each in settings.listeners for path in tls_listeners.missing(each[3])
    ]
    folders = [each[3].get("http_dir") for each in settings.listeners if each[3]]
    needed += [Path(folder) for folder in folders if folder]
    needed += [Path(file) for each in settings.connections for file in _files(each)]
    files = [dest[5:].strip() for dest in settings.log_dest if dest[:5] == "file "]
    needed += [Path(file).parent for file in [*files, settings.pid_file] if file]
    if settings.persistence:
        needed.append(Path(getattr(settings, "persistence_location", "") or "."))
    here = [path for path in dict.fromkeys(needed) if not path.exists()]
    return [f"{path}: not on this computer; the start needs it" for path in here]


def together(settings: Any, limits: Any) -> None:
    """ValueError: settings and limits contradict each other, which the start would notice."""
    settings.check(limits)
    if not hasattr(settings, "record"):
        return
    size, most = recorder._sizes(SimpleNamespace(limits=limits), settings)
    if not all(filter_ok(text, 0, len(text)) for text in settings.record):
        raise ValueError("record: expected a topic filter")
    if size % 256:
        raise ValueError("record_segment_size: expected a multiple of 256")
    if most < 2 * size:
        raise ValueError("record_budget: expected at least two times record_segment_size")
