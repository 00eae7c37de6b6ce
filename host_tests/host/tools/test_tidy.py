"""The repository's own rules: violations are found, correct code is accepted."""

from pathlib import Path

import pytest

from slotmq_dev.tidy import __main__ as tidy
from slotmq_dev.tidy import columns, consts, imports, source, viper
from slotmq_dev.tidy.source import Source


def lib(module: str, text: str) -> Source:
    return Source(f"lib/slotmq/{module}.py", text)


# Imports: each text violates the rule in the module of that name.

OURS = [lib(name, "") for name in ("delivery/encode", "net/loop", "protocol/connect")]
UPWARDS = (("delivery", "journal.compaction", "a reason"),)
WRONG_IMPORTS = {
    "a table, a step": ("tables/messages", "from slotmq.delivery import encode"),
    "a table, its floor": ("tables/messages", "from slotmq.config.limits import Limits"),
    "a handler, the journal": ("protocol/publish", "from slotmq.journal.writer import Writer"),
    "a step, the loop": ("delivery/lifecycle", "from slotmq.net.loop import Loop"),
    "not at the top": ("delivery/lifecycle", "def f():\n    from slotmq.net.loop import Loop"),
    "by its whole name": ("delivery/lifecycle", "import slotmq.net.loop"),
    "the dictionary": ("delivery/encode", "from slotmq.protocol.connect import START"),
    "the broker": ("net/loop", "from slotmq.broker import Broker"),
    "what is exported": ("net/loop", "from slotmq import Broker"),
    "a file, its floor": ("broker", "from slotmq import control"),
    "the tools": ("app/start", "from slotmq_tools import boards"),
    "the tests": ("app/start", "import host_tests.broker.wire.client"),
    "a board": ("config/limits", "from slotmq_boards.HOST.limits import LIMITS"),
    "a board by its name": ("app/__init__", "__import__('slotmq_boards.%s' % x)"),
    "some name": ("app/start", "__import__(name)"),
    "what is not there": ("protocol/publish", "borrow('protocol.acks', 'handle_puback')"),
    "nor by its last name": ("app/start", "ondemand.take('connect', 0).handle()"),
    "a clock": ("tables/sessions", "import time"),
    "a socket": ("protocol/dispatch", "import socket"),
    "a socket in a function": ("protocol/dispatch", "def f():\n    from socket import socket"),
    "half of Python": ("broker", "import gc, json"),
    "what its twin may": ("fast/bytes_cpython", "import micropython"),
    "a relative name": ("delivery/routing", "from . import encode"),
    "a relative one upwards": ("delivery/routing", "from ..net import loop"),
    "the package": ("delivery/encode", "import slotmq"),
    "a load upwards": ("delivery/routing", "ondemand.take('protocol.connect', 0)"),
    "a load from the same floor": ("journal/restore", "borrow('protocol.connect', 'handle')"),
    "an allowed load of nothing": ("delivery/routing", "take('journal.compaction', 0)"),
    "a load of a variable": ("v5/dispatch", "control(conn, 'nowhere')"),
    "a variable outside of control": ("protocol/dispatch", "def f(m):\n    ondemand.take(m, 0)"),
    "no floor": ("uplink/start", ""),
    "no floor, no folder": ("uplink", "import time"),
}


@pytest.mark.parametrize(("module", "text"), WRONG_IMPORTS.values(), ids=WRONG_IMPORTS)
def test_a_wrong_import_is_found(module: str, text: str) -> None:
    (found,) = imports.check([*OURS, lib(module, text)], UPWARDS)
    assert found.place.startswith(f"lib/slotmq/{module}.py")


MORE = [
    lib(name, text)
    for name, text in {
        "config/mosquitto_conf": "",
        "tables/epoch": "",
        "journal/compaction": "",
        "delivery/quota": "ondemand.take('journal.compaction', 0)",
    }.items()
]
RIGHT_IMPORTS = {
    "tables/messages": "from slotmq.constants import NONE\nfrom slotmq.fast import copy",
    "tables/sessions": "from slotmq.tables import epoch\nimport slotmq.tables.insertion",
    "protocol/publish": "from slotmq.delivery import encode\nfrom slotmq.protocol import connect",
    "protocol/dispatch": "def control(module):\n    ondemand.take(module, 0)",
    "protocol/release": "def f():\n    from slotmq.protocol.acks import handle_puback",
    "delivery/routing": "ondemand.take('journal.compaction', 0)\ntake('tables.epoch')",
    "platform/runtime": "from micropython import heap_lock\nimport sys",
    "platform/ondemand": "import gc, sys\n__import__('slotmq.' + name)",
    "platform/sockets_cpython": "import socket",
    "platform/log": "from slotmq import __version__",
    "fast/__init__": "from slotmq.fast.bytes_viper import copy",
    "fast/routes_viper": "import micropython\nfrom array import array",
    "v5/dispatch": "control('protocol.connect', conn)",
    "broker": "from slotmq.v5.acks import handle\nimport gc",
    "__init__": "from slotmq.broker import Broker",
    "app/__init__": "import slotmq\nborrow('config.mosquitto_conf', 'load')",
    "app/start": "__import__('slotmq_boards.%s.limits' % board)",
    "recorder/files": "from slotmq import Broker\nimport binascii, json",
}


@pytest.mark.parametrize(("module", "text"), RIGHT_IMPORTS.items(), ids=RIGHT_IMPORTS)
def test_an_allowed_import_is_accepted(module: str, text: str) -> None:
    assert list(imports.check([*OURS, *MORE, lib(module, text)], UPWARDS)) == []


def test_an_allowed_load_upwards_that_nobody_makes_is_found() -> None:
    upwards = (("delivery", "net.loop", "a reason"),)
    (found,) = imports.check([lib("net/loop", "")], upwards)
    assert "net.loop" in found.what


def test_the_design_shows_the_loads_upwards() -> None:
    _, _, rest = (tidy.ROOT / "lib/DESIGN.md").read_text().partition("| in | loads | why |\n")
    assert rest.partition("\n\n")[0].split("\n")[1:] == [
        f"| `{part}` | `{name}` | {reason} |" for part, name, reason in imports.UPWARDS
    ]
    assert {name for _, name, _ in imports.UPWARDS} <= set(map(imports.module, FAST.values()))


def test_a_board_imports_limits_only() -> None:
    text = "from slotmq import Limits\nfrom slotmq.net.loop import Loop\n"
    preset = Source("boards/HOST/limits.py", text)
    (found,) = imports.check([*OURS, preset], ())
    assert found.place == "boards/HOST/limits.py:slotmq.net.loop.Loop"


def test_tools_may_import_anything() -> None:
    text = "import slotmq.net.loop, subprocess"
    assert list(imports.check([Source("tools/cli.py", text)], ())) == []


# Viper

VIPER = "import micropython\n@micropython.viper\ndef f(b):\n    return ptr8(b)[0]\n"


@pytest.mark.parametrize(
    "path", ["lib/slotmq/net/loop.py", "lib/slotmq/fast/bytes_cpython.py", "boards/x.py"]
)
def test_viper_outside_of_its_files_is_found(path: str) -> None:
    found = [finding.place for finding in viper.check([Source(path, VIPER)])]
    assert found == [f"{path}:ptr8", f"{path}:viper"]


@pytest.mark.parametrize(
    "path", ["lib/slotmq/fast/bytes_viper.py", "lib/slotmq/fast/x_viper.py", "tools/relay.py"]
)
def test_viper_in_its_files_and_in_tools_is_accepted(path: str) -> None:
    assert list(viper.check([Source(path, VIPER)])) == []


CHOICE = """
if MICROPYTHON:
    from slotmq.fast.bytes_viper import copy, find
else:
    from slotmq.fast.bytes_cpython import copy, look as fetch
"""


@pytest.mark.parametrize(
    "module",
    ["fast/__init__", "fast/journal", "net/websocket", "recorder/writer",
     "platform/dial", "platform/sockets", "bridge/secure", "control"],
)  # fmt: skip
def test_a_name_that_only_one_runtime_gets_is_found(module: str) -> None:
    found = [finding.place for finding in viper.check([lib(module, CHOICE)])]
    assert found == [f"lib/slotmq/{module}.py:fetch", f"lib/slotmq/{module}.py:find"]


def test_twins_with_the_same_names_are_accepted() -> None:
    same = CHOICE.replace("look as fetch", "look as find")
    assert list(viper.check([lib("fast/__init__", same)])) == []


# Constants

CONSTANTS = lib("constants", "TYPE, FLAGS = range(2)\nNONE = 0xFFFF\n")


@pytest.mark.parametrize(
    ("texts", "place", "what"),
    [
        ({"a": "_NONE = 0xFFFF"}, "a.py:_NONE", "import NONE"),
        ({"fast/b_viper": "FLAGS = 2"}, "fast/b_viper.py:FLAGS", "import FLAGS"),
        ({"a": "_DIRTY = 1", "b": "DIRTY = 3 - 2"}, "b.py:DIRTY", "lib/slotmq/a.py has it too"),
        ({"a": "_A, _B = range(2)", "b": "_B = 1"}, "b.py:B", "move it to lib/slotmq/constants"),
    ],
)
def test_a_number_that_several_files_define_is_found(
    texts: dict[str, str], place: str, what: str
) -> None:
    files = [lib(name, text) for name, text in texts.items()]
    (found,) = consts.check([CONSTANTS, *files])
    assert found.place.replace("_", "") == f"lib/slotmq/{place}".replace("_", "")
    assert what in found.what


def test_imported_numbers_and_other_values_are_accepted() -> None:
    files = [
        lib("a", "from slotmq.constants import NONE\n_END = 2\n_TEXT = 'a'"),
        lib("b", "_END = 3\n_TEXT = 'a'\n_PAIR = (1, 2)\n_MANY = 1 if small else 2"),
    ]
    assert list(consts.check([CONSTANTS, *files])) == []


# Columns: each change to the real file gives a wrong position or an unknown name.

FAST = {s.path: s for s in source.read(tidy.ROOT) if s.is_library}
WRONG_COLUMNS = [
    ("constants", "R_LEN, R_TEXT,", "R_TEXT, R_LEN,"),
    ("constants", " D_PREV, D_NEXT,", " D_NEXT,"),
    ("fast/deliveries_cpython", "d, s, m, c = columns", "d, m, s, c = columns"),
    ("fast/messages_cpython", "_, _, _, c = columns", "_, _, c, _ = columns"),
    ("fast/messages_cpython", "_, _, _, c = columns", "c = columns[2]"),
    ("fast/path_cpython", "tx, dirty, counts = ", "dirty, tx, counts = "),
    ("fast/routes_cpython", "_, _, out, _, _, _, dirty", "_, out, _, _, _, _, dirty"),
    ("fast/turn_cpython", "entries, conn_of, _, _", "conn_of, entries, _, _"),
    ("fast/columns", "m.slots, s.received", "m.slots, m.slots"),
    # names that are not declared, and bare numbers
    ("fast/deliveries_viper", "o[D_PREV])[entry] = tail", "o[D_PRV])[entry] = tail"),
    ("fast/deliveries_viper", "o[S_INFLIGHT if states[entry]", "o[25 if states[entry]"),
    (
        "fast/path_viper",
        "p = ptr32(int(o) - o[PKT])\n    stats",
        "p = ptr32(int(o) - o[43])\n    stats",
    ),
    ("fast/path_viper", "if not o[S_MOST]", "if not o[NONE]"),
    ("fast/deliveries_viper", "    return c[LAST]", "    return c[59]"),
    ("fast/deliveries_viper", "o = ptr32(c)\n    cursors", "t = ptr32(c)\n    cursors"),
    # rows
    ("fast/deliveries_viper", "nexts[count[LAST_FREE]]", "nexts[count[3]]"),
    ("fast/path_viper", "high[IDS_UNSAVED] = 1", "high[1] = 1"),
    ("fast/path_viper", "o[C_REASSEMBLY])[FAST_READ]", "o[C_REASSEMBLY])[3]"),
    ("fast/bytes_viper", "pkt[END] = stop", "pkt[4] = stop"),
    ("fast/path_cpython", "pkt[END] - pkt[PAYLOAD]", "pkt[4] - pkt[PAYLOAD]"),
    ("fast/path_cpython", "broker.clock[NOW]", "broker.clock[0]"),
    ("fast/turn_cpython", "broker.pkt[FAST_MAX]", "broker.pkt[10]"),
    ("delivery/quota", "deliveries.count[IN_USE] - 1", "deliveries.count[0] - 1"),
    ("v5/connack", "broker.pkt[PACKET_MAX]", "broker.pkt[10]"),
    ("net/timers", "broker.stats[LOGGED_REFUSALS]", "broker.stats[7]"),
]


@pytest.mark.parametrize(("module", "right", "wrong"), WRONG_COLUMNS)
def test_a_wrong_position_of_a_column_is_found(module: str, right: str, wrong: str) -> None:
    path = f"lib/slotmq/{module}.py"
    assert FAST[path].text.count(right) == 1
    changed = FAST | {path: Source(path, FAST[path].text.replace(right, wrong))}
    found = list(columns.check(list(changed.values())))
    assert found
    assert {finding.place.partition(":")[0] for finding in found} >= {path}


@pytest.mark.parametrize(
    ("right", "wrong", "names"),
    [
        ("c.out, c.tx_end", "c.tx_end, c.out", {"C_OUT", "C_TX_END"}),
        ("d.prev, d.next", "d.next, d.prev", {"D_PREV", "D_NEXT"}),
        ("last, one", "one, last", {"LAST", "ONE"}),
        ("broker.stats, broker.clock", "broker.clock, broker.stats", {"STATS", "CLOCK"}),
    ],
)
def test_swapped_columns_are_found(right: str, wrong: str, names: set[str]) -> None:
    path = columns.HOME
    assert FAST[path].text.count(right) == 1
    changed = Source(path, FAST[path].text.replace(right, wrong))
    found = columns.check(list((FAST | {path: changed}).values()))
    assert {finding.place for finding in found} == {f"{consts.HOME}:{name}" for name in names}


# The command


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_the_command_fails_and_names_the_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "host_tests/test_all.py", "import slotmq.delivery.encode\n")
    write(tmp_path, "lib/slotmq/delivery/encode.py", "")
    assert tidy.main(tmp_path) == 0
    write(tmp_path, "lib/slotmq/delivery/encode.py", "import socket\n")
    assert tidy.main(tmp_path) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith("lib/slotmq/delivery/encode.py:socket: ")
    assert printed.err.count("\n") == 1


def test_the_repository_violates_no_rule(capsys: pytest.CaptureFixture[str]) -> None:
    tidy.main()
    assert capsys.readouterr().err == ""
