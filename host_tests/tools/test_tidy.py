"""The rules of the repository: each planted violation is found, and what is right is not."""

import dataclasses
from pathlib import Path

import pytest

from slotmq_tools.tidy import __main__ as tidy
from slotmq_tools.tidy import consts, imports, known, sizes, source, unused, viper
from slotmq_tools.tidy.source import Finding, Source


def lib(module: str, text: str) -> Source:
    return Source(f"lib/slotmq/{module}.py", text)


def long_function(lines: int, name: str = "walk") -> str:
    return f"def {name}(\n" + "\n" * (lines - 2) + "): pass\n"


# Imports. Each text is wrong in the module of that name.

OURS = [lib(name, "") for name in ("deliver", "hot", "loop", "sessions", "handle_acks")]
WRONG_IMPORTS = {
    "a table, another": ("messages", "from slotmq.sessions import Sessions"),
    "a table, a step": ("messages", "from slotmq import deliver"),
    "a handler, another": ("handle_publish", "from slotmq.handle_acks import handle_puback"),
    "a step, the loop": ("lifecycle", "from slotmq.loop import Loop"),
    "not at the top": ("lifecycle", "def f():\n    from slotmq.loop import Loop"),
    "hot, past runtime": ("deliver", "from slotmq.hot import copy"),
    "the dictionary": ("deliver", "from slotmq.packet import _START"),
    "the tools": ("app", "from slotmq_tools import boards"),
    "the tests": ("app", "import host_tests.wire.client"),
    "a board": ("limits", "from slotmq_boards.HOST.limits import LIMITS"),
    "a board by its name": ("app", "__import__('slotmq_boards.%s' % x)"),
    "some name": ("app", "__import__(name)"),
    "a borrowed handler": ("app", "borrow('handle_acks', 'handle_puback')"),
    "a clock": ("broker", "import time"),
    "a socket": ("intake", "import socket"),
    "half of Python": ("broker", "import gc, json"),
    "a relative name": ("deliver", "from . import outbox"),
    "the package": ("encode", "import slotmq"),
    "no row": ("bridge", ""),
}


@pytest.mark.parametrize(("module", "text"), WRONG_IMPORTS.values(), ids=WRONG_IMPORTS)
def test_a_wrong_import_is_found(module: str, text: str) -> None:
    (found,) = imports.check([*OURS, lib(module, text)])
    assert found.place.startswith(f"lib/slotmq/{module}.py")


MORE = [lib(name, "") for name in ("arrays", "conf", "retain", "runtime")]
RIGHT_IMPORTS = {
    "messages": "from slotmq.arrays import u16\nfrom slotmq.runtime import const",
    "handle_publish": "from slotmq import deliver, retain",
    "runtime": "from slotmq.hot import copy\nimport sys",
    "hot_routes": "import micropython\nfrom array import array",
    "app": "borrow('conf', 'load')\n__import__('slotmq.' + module)",
    "start": "__import__('slotmq_boards.%s.limits' % board)",
    "net_cpython": "import socket",
}


@pytest.mark.parametrize(("module", "text"), RIGHT_IMPORTS.items(), ids=RIGHT_IMPORTS)
def test_a_right_import_is_not(module: str, text: str) -> None:
    assert list(imports.check([*OURS, *MORE, lib(module, text)])) == []


def test_a_board_imports_limits_only() -> None:
    text = "from slotmq import Limits\nfrom slotmq.loop import Loop\n"
    preset = Source("boards/HOST/limits.py", text)
    (found,) = imports.check([*OURS, preset])
    assert found.place == "boards/HOST/limits.py:slotmq.loop.Loop"


def test_the_host_side_imports_what_it_likes() -> None:
    text = "import slotmq.loop, subprocess"
    assert list(imports.check([Source("tools/cli.py", text)])) == []


# Viper

VIPER = "import micropython\n@micropython.viper\ndef f(b):\n    return ptr8(b)[0]\n"


@pytest.mark.parametrize(
    "path", ["lib/slotmq/loop.py", "lib/slotmq/hot_cpython.py", "boards/x.py"]
)
def test_viper_outside_of_hot_is_found(path: str) -> None:
    found = [finding.place for finding in viper.check([Source(path, VIPER)])]
    assert found == [f"{path}:ptr8", f"{path}:viper"]


@pytest.mark.parametrize("path", ["lib/slotmq/hot.py", "lib/slotmq/hot_x.py", "tools/relay.py"])
def test_viper_in_hot_and_on_the_host_is_not(path: str) -> None:
    assert list(viper.check([Source(path, VIPER)])) == []


def test_a_name_that_only_one_runtime_gets_is_found() -> None:
    micropython = "if MICROPYTHON:\n from slotmq.hot import copy, find\n"
    cpython = "else:\n from slotmq.hot_cpython import copy, look as fetch\n"
    found = [finding.place for finding in viper.check([lib("runtime", micropython + cpython)])]
    assert found == ["lib/slotmq/runtime.py:fetch", "lib/slotmq/runtime.py:find"]


# Constants

DICTIONARY = lib("packet", "_TYPE = const(0)\n_END = const(4)\nNONE = const(0xFFFF)\n")


@pytest.mark.parametrize(
    ("module", "text", "name"),
    [
        ("loop", "_END = const(5)", "_END"),
        ("loop", "_NONE = const(0xFFFE)", "_NONE"),
        ("loop", "_END = const(1 | 8)", "_END"),
        ("loop", "_TWO = const(2)\n_END = const(_TWO + 1)", "_END"),
        ("hot_cpython", "_END = 5", "_END"),
    ],
)
def test_a_value_that_is_not_the_dictionarys_is_found(module: str, text: str, name: str) -> None:
    (found,) = consts.check([DICTIONARY, lib(module, text)])
    assert found.place == f"lib/slotmq/{module}.py:{name}"


def test_without_the_dictionary_most_files_are_right() -> None:
    files = [lib(name, f"_DIRTY = const({n})") for name, n in (("a", 2), ("b", 1), ("c", 1))]
    (found,) = consts.check(files)
    assert found.place == "lib/slotmq/a.py:_DIRTY"
    assert "0x1 in lib/slotmq/b.py" in found.what


def test_what_agrees_or_is_no_constant_is_not_found() -> None:
    right = lib("loop", "_END = const(2 + 2)\n_NONE = const(0xFFFF)\n_OWN = const(9)\n_TYPE = 7\n")
    assert list(consts.check([DICTIONARY, right])) == []


# Sizes


def test_a_long_function_and_a_long_file_are_found() -> None:
    text = long_function(61) + long_function(60, "other") + "class A:\n" + "    x = 1\n" * 480
    found = sorted(sizes.check([lib("loop", text)]), key=lambda finding: finding.size)
    assert [(f.rule, f.place, f.size) for f in found] == [
        ("function", "lib/slotmq/loop.py:walk", 61),
        ("file", "lib/slotmq/loop.py", 602),
    ]


def test_methods_and_inner_functions_are_counted_by_their_names() -> None:
    text = "class A:\n    def f(self):\n        def g():\n            pass\n        return g\n"
    assert sorted(source.functions(lib("a", text))) == [("A.f", 4), ("A.f.g", 2)]


def test_the_report_has_the_median_and_the_rest() -> None:
    text = "".join(long_function(lines) for lines in range(2, 12))
    head, row = sizes.report([lib("a", text), lib("b", "x = 1\n")])
    assert head.split() == ["files", "lines", *SPREAD, "functions", *SPREAD]
    assert row.split() == ["lib/", "2", "66", "1", "65", "65", "10", "6", "10", "11"]


SPREAD = ["median", "p90", "max"]


def test_the_report_of_each_file() -> None:
    files = [lib("a", "x = 1\n"), lib("b", "x = 1\n")]
    rows = list(sizes.report(files, each=True))[1:]
    assert [row.split()[0] for row in rows] == ["lib/slotmq/a.py", "lib/slotmq/b.py"]


@pytest.mark.parametrize(("part", "value"), [(0.5, 5), (0.9, 9), (1, 10), (0, 1)])
def test_quantiles(part: float, value: int) -> None:
    assert sizes.quantile(range(10, 0, -1), part) == value


# Unused files


def unreached(tmp_path: Path, *sources: Source) -> list[str]:
    (tmp_path / "Makefile").write_text("run:\n\tpython -m slotmq_tools.cli\n")
    return [finding.place for finding in unused.check(list(sources), tmp_path)]


CLI = Source("tools/cli.py", "from . import launcher\n")


def test_a_file_that_nothing_leads_to_is_found(tmp_path: Path) -> None:
    files = [CLI, Source("tools/launcher.py", ""), Source("tools/old.py", "")]
    assert unreached(tmp_path, *files) == ["tools/old.py"]


def test_two_that_lead_only_to_each_other_are_found(tmp_path: Path) -> None:
    one = Source("tools/one.py", "from . import other\n")
    other = Source("tools/other.py", "from . import one\n")
    assert unreached(tmp_path, CLI, Source("tools/launcher.py", ""), one, other) == [
        "tools/one.py",
        "tools/other.py",
    ]


def test_a_file_is_reached_by_its_name_as_well(tmp_path: Path) -> None:
    launcher = Source("tools/launcher.py", 'BOOT = "boot.py"\nRUN = "slotmq_tools.bench"\n')
    files = [Source("tools/boot.py", "'it.json'"), Source("tools/bench/__main__.py", "")]
    assert unreached(tmp_path, CLI, launcher, *files, Source("tools/peers/it.json", "")) == []


def test_data_needs_its_whole_name(tmp_path: Path) -> None:
    files = [CLI, Source("tools/launcher.py", ""), Source("tools/launcher.json", "")]
    assert unreached(tmp_path, *files) == ["tools/launcher.json"]


# Known exceptions

FINDING = Finding("function", "lib/slotmq/hot.py:send", "89 lines", 89)


def remaining(row: str, *findings: Finding) -> list[str]:
    return [finding.rule for finding in known.apply(list(findings), f"# why\n{row}\n")]


def test_a_known_exception_is_no_finding() -> None:
    assert remaining("function\tlib/slotmq/hot.py:send\t89", FINDING) == []


def test_it_may_not_grow() -> None:
    longer = dataclasses.replace(FINDING, size=90)
    assert remaining("function\tlib/slotmq/hot.py:send\t89", longer) == ["function"]


def test_it_must_get_lower_with_what_it_allows() -> None:
    assert remaining("function\tlib/slotmq/hot.py:send\t90", FINDING) == ["known"]


def test_it_must_go_when_it_is_not_needed() -> None:
    assert remaining("function\tlib/slotmq/hot.py:send\t90") == ["known"]


def test_it_is_for_one_rule_and_one_place() -> None:
    assert remaining("file\tlib/slotmq/hot.py:send\t89", FINDING) == ["function", "known"]


# The command


def plant(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_the_command_fails_and_names_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(known, "FILE", tmp_path / "known.tsv")
    known.FILE.write_text("")
    plant(tmp_path, "host_tests/test_all.py", "import slotmq.encode\n")
    plant(tmp_path, "lib/slotmq/encode.py", "")
    assert tidy.main((), tmp_path) == 0
    plant(tmp_path, "lib/slotmq/encode.py", "import socket\n")
    assert tidy.main((), tmp_path) == 1
    printed = capsys.readouterr()
    assert printed.err == "lib/slotmq/encode.py:socket: must not import socket (import)\n"
    assert "host_tests/" in printed.out


def test_what_is_not_ours_is_not_read(tmp_path: Path) -> None:
    plant(tmp_path, "tools/__pycache__/x.py", "")
    plant(tmp_path, "tools/peers/node_modules/x.js", "")
    plant(tmp_path, "tools/x.py", "")
    assert [file.path for file in source.read(tmp_path)] == ["tools/x.py"]
