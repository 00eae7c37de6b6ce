"""The packed program is the same program: small packages, packed and run on CPython."""

import subprocess
import sys
from pathlib import Path

import pytest

from slotmq_tools.errors import ToolError
from slotmq_tools.mpy import sources
from slotmq_tools.pack import packed

PROGRAM = {
    "__init__": """
        '''What is exported keeps its name.'''
        from slotmq.broker import Broker
        __all__ = ("Broker",)
        __version__ = "1"
        """,
    "hot": """
        import sys
        WORDS = sys.maxsize
        def doubled(number, by=2):
            return number * by
        """,
    "runtime": """
        import sys
        MICROPYTHON = sys.implementation.name == "micropython"
        if MICROPYTHON:
            from slotmq.hot import doubled
            const = int
        else:
            from slotmq.nowhere import doubled
        """,
    "tables": """
        from slotmq.runtime import MICROPYTHON, const
        _FREE = const(4)
        total = 0
        class Table:
            '''A docstring is no text of the program.'''
            slots = 3
            def __init__(self, rows):
                self.rows_held = rows
                self.sort_of = [_FREE, 2]
                self.sort_of.append(1)
                self.sort_of.sort()
            @property
            def largest(self):
                return self.sort_of[-1]
        def count(more=1):
            global total
            if not MICROPYTHON:
                from slotmq import nowhere
                return nowhere.count(more)
            elif MICROPYTHON:
                total += more
            return total
        """,
    "broker": """
        from slotmq import tables
        from slotmq.runtime import const, doubled as twice
        _FREE = const(7)
        class Broker:
            def __init__(self, limits=None):
                self.limits = limits
                self.inner_table = tables.Table(rows=5)
                self._hidden = 1
            def publish(self, topic, *, retain=False):
                return topic, retain
            def everything(self):
                table = self.inner_table
                later = lambda one: one + self._hidden + _FREE
                tables.count(more=2)
                from slotmq import extra
                from slotmq.extra import reached
                return (later(1), table.largest, table.slots, table.rows_held, twice(4),
                        getattr(self, "named_by_text"), tables.total, extra.reached(),
                        reached(), [one for one in table.sort_of])
            def named_by_text(self):
                pass
        """,
    "app": """
        from slotmq.broker import Broker
        def main(argv):
            return Broker(limits=argv).everything()
        """,
    "extra": """
        from slotmq.tables import count
        def reached():
            return count()
        """,
}


def texts(program: dict[str, str]) -> dict[str, str]:
    return {
        f"slotmq/{name}.py": "\n".join(line[8:] for line in text.splitlines())
        for name, text in program.items()
    }


def run(folder: Path, files: dict[str, str], script: str) -> str:
    """What a script prints that imports the files."""
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout


def test_the_packed_program_does_the_same(tmp_path: Path) -> None:
    said = run(tmp_path, packed(texts(PROGRAM)), "from slotmq import app; print(app.main(1))")
    head, tail = said.split(", <bound method")
    assert head == "(9, 4, 3, 5, 8"
    assert tail.split("> ")[-1].strip().endswith(">>, 2, 3, 4, [1, 2, 4])")


def test_modules_that_are_loaded_together_are_one_file() -> None:
    files = packed(texts(PROGRAM))
    assert sorted(name.removeprefix("slotmq/") for name in files) == [
        "__init__.py",
        "app.py",
        "core.py",
        "extra.py",
        "hot.py",
    ]


def test_what_the_world_knows_keeps_its_name(tmp_path: Path) -> None:
    script = """
import slotmq
broker = slotmq.Broker(limits=3)
assert broker.limits == 3 and broker.publish("a", retain=True) == ("a", True)
assert slotmq.__version__ == "1"
"""
    run(tmp_path, packed(texts(PROGRAM)), script)


def test_what_only_a_computer_does_is_left_out() -> None:
    assert not any("nowhere" in text for text in packed(texts(PROGRAM)).values())


def test_nobody_elses_names_are_short_now() -> None:
    core = packed(texts(PROGRAM))["slotmq/core.py"]
    for name in ("Table", "inner_table", "_hidden", "rows_held", "largest", "_FREE", "docstring"):
        assert name not in core
    for name in ("Broker", "named_by_text", "append", "limits"):
        assert name in core


PACKED = """
__init__ app auth budget capacities columns conf core epoch five hooks hot hot_journal hot_record
hot_record_words idf inside joining joining5 journal journal_control journal_disk journal_file
journal_flash journal_ring keeping local lwip lwip_layout places policies reason record
record_control record_disk record_remote recorder refusals restore retrying scram seldom5 serving
start steering subscribing subscribing5 sysinfo systopics telling tree
"""


def test_the_real_program_is_packed_whole() -> None:
    """Each function of the modules is in one of the files, under whatever name."""
    modules = {name: source.read_text() for name, source in sources("slotmq").items()}
    files = packed(modules)
    assert sorted(files) == [f"slotmq/{name}.py" for name in PACKED.split()]
    theirs = [text.partition("\nelse:")[0] for text in modules.values()]  # no CPython's
    assert sum(text.count("def ") for text in theirs) == "".join(files.values()).count("def ")


@pytest.mark.parametrize(
    ("module", "text", "complaint"),
    [
        (
            "broker",
            "from slotmq import hot\nprint(hot)",
            "line 2: the module hot is used as a value",
        ),
        ("broker", "from slotmq import hot\nhot.x()", "line 2: hot does not define x"),
        ("broker", "from slotmq.hot import x", "slotmq.hot has no x"),
        (
            "broker",
            "from slotmq import hot_two\ndef f(hot):\n  return hot_two.two()",
            "line 3: hot, hot_two's file, has another meaning",
        ),
        ("broker", "a, b = 1, 2", "broker, line 1: more than a name is assigned"),
        ("broker", "x = 1\nif x:\n  y = 2", "line 2: cannot tell which branch is taken"),
    ],
)
def test_what_cannot_be_told_is_refused(module: str, text: str, complaint: str) -> None:
    program = PROGRAM | {"app": "        x = 1", "hot_two": "        def two(): return 2"}
    files = texts(program) | {f"slotmq/{module}.py": text}
    files["slotmq/__init__.py"] = ""
    with pytest.raises(ValueError, match=complaint):
        packed(files)


def test_a_syntax_error_has_its_place() -> None:
    with pytest.raises(SyntaxError) as refused:
        packed({"slotmq/broker.py": "good = 1\nbad = = 2\n"})
    assert (refused.value.filename, refused.value.lineno) == ("slotmq/broker.py", 2)
    assert not isinstance(refused.value, ToolError)
