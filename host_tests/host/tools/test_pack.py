"""The packed program does the same: small packages are packed and run on CPython."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from slotmq_tools.errors import ToolError
from slotmq_tools.pack import by_address, mpy, names, numbers, packed
from slotmq_tools.pack.mpy import sources
from slotmq_tools.pack.program import Program

PROGRAM = {
    "__init__": """
        '''What is exported keeps its name.'''
        from slotmq.broker import Broker
        __all__ = ("Broker",)
        __version__ = "1"
        """,
    "fast/bytes_viper": """
        import sys
        WORDS = sys.maxsize
        def doubled(number, by=2):
            return number * by
        """,
    "fast/__init__": """
        from slotmq.platform.runtime import MICROPYTHON
        if MICROPYTHON:
            from slotmq.fast.bytes_viper import doubled
        else:
            from slotmq.fast.nowhere_cpython import doubled
        """,
    "platform/__init__": """
        # platform: the first lines of a folder are for people.
        """,
    "platform/runtime": """
        import sys
        MICROPYTHON = sys.implementation.name == "micropython"
        """,
    "platform/ondemand": """
        import sys
        def take(name):
            __import__("slotmq." + name)
            return sys.modules["slotmq." + name]
        """,
    "constants": """
        TWICE, FREE = range(1, 3)
        """,
    "tables/rows": """
        from slotmq.constants import FREE, TWICE
        from slotmq.platform.runtime import MICROPYTHON
        _FREE = FREE << TWICE
        total = 0
        ended = None
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
            global total, ended
            if not MICROPYTHON:
                from slotmq.tables import nowhere
                return nowhere.count(more)
            elif MICROPYTHON:
                total += more
            try:
                return total.nothing
            except AttributeError as ended:
                return total + len(ended.args) - 1
        """,
    "broker": """
        from slotmq.fast import doubled as twice
        from slotmq.tables import rows
        _FREE = 7
        class Broker:
            def __init__(self, limits=None):
                self.limits = limits
                self.inner_table = rows.Table(rows=5)
                self._hidden = 1
            def publish(self, topic, *, retain=False):
                return topic, retain
            def everything(self):
                table = self.inner_table
                later = lambda one: one + self._hidden + _FREE
                rows.count(more=2)
                from slotmq.delivery import quota
                from slotmq.delivery.quota import reached
                return (later(1), table.largest, table.slots, table.rows_held, twice(4),
                        getattr(self, "named_by_text"), rows.total, quota.reached(),
                        reached(), [one for one in table.sort_of])
            def named_by_text(self):
                pass
        """,
    "app/__init__": """
        from slotmq.broker import Broker
        def main(argv):
            return Broker(limits=argv).everything()
        """,
    "delivery/quota": """
        from slotmq.tables.rows import count
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
    """The output of a script that imports the files."""
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


def test_on_32_bits_native_code_has_addresses_of_columns() -> None:
    source = "d = int(o) - o[3] + n - int(o)\n    return int(made) - int(column)\n"
    assert by_address(source) == "d = o[3] + n - int(o)\n    return int(column)\n"
    for name, text in mpy.read_all().items():
        columns = set(re.findall(r"int\((\w+)\) - \1\[([A-Z]\w+)\]", text.decode()))
        others = re.sub(r"int\((\w+)\) - \1\[[A-Z]\w+\]", "", text.decode())
        assert not [at for table, at in columns if f"{table}[{at}]" in others], name


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("NONE = 0xFFFF", {"NONE": 65535}),
        ("_A = B = -1", {"_A": -1, "B": -1}),
        ("GONE = 8 | 2 * KNOWN", {"GONE": 14}),
        ("A, B = range(KNOWN, 5)", {"A": 3, "B": 4}),
        ("A, B = 8, KNOWN", {"A": 8, "B": 3}),
        ("A, B = range(3)", {}),
        ("A, B = range(other)", {}),
        ("A = 1 if B else 2", {}),
        ("A = B + 1", {}),
        ("A = True", {}),
        ("A = 0.5", {}),
        ("lower = 1", {}),
        ("a.A = 1", {}),
        ("A += 1", {}),
    ],
)
def test_constants_are_names_in_capitals_with_a_number(text: str, found: dict[str, int]) -> None:
    assert numbers.defined(ast.parse(text).body[0], {"KNOWN": 3}) == found


def test_unpacked_modules_have_the_numbers_that_they_import() -> None:
    """Each line stays where it was, and texts, attributes and other names what they were."""
    home = "TYPE, NONE = range(2)\ndef look():\n    pass\n"
    user = """\
from slotmq.home import (NONE, TYPE,
    look)
_OWN, _NEXT = range(4, 6)
SHOWN = "é NONE"; _SUM = NONE + _OWN  # NONE

def f(x):
    return x.NONE + look(NONE, TYPE=TYPE) + _OWN
"""
    made = numbers.Numbers({"slotmq/home.py": home, "slotmq/user.py": user})
    wanted = """\
from slotmq.home import look; _NONE = const(1); _TYPE = const(0)

_OWN = const(4); _NEXT = const(5)
SHOWN = "é NONE"; _SUM = const(5)  # NONE

def f(x):
    return x.NONE + look(_NONE, TYPE=_TYPE) + _OWN
"""
    assert made.put_in("slotmq/user.py") == wanted
    wanted = home.replace("TYPE, NONE = range(2)", "TYPE = const(0); NONE = const(1)")
    assert made.put_in("slotmq/home.py") == wanted


def test_modules_that_are_loaded_together_are_one_file() -> None:
    files = packed(texts(PROGRAM))
    assert sorted(name.removeprefix("slotmq/") for name in files) == [
        "__init__.py",
        "app.py",
        "core.py",
        "ondemand.py",
        "quota.py",
        "viper.py",
    ]


def test_exported_names_and_their_attributes_stay(tmp_path: Path) -> None:
    script = """
import slotmq
broker = slotmq.Broker(limits=3)
assert broker.limits == 3 and broker.publish("a", retain=True) == ("a", True)
assert slotmq.__version__ == "1"
"""
    run(tmp_path, packed(texts(PROGRAM)), script)


ON_DEMAND = {
    "app/__init__": """
        from slotmq.platform.ondemand import take
        class Conn:
            def __init__(self):
                self.subscribe = 1
                self.unsubscribe = 2
                self.rare = 3
        def main():
            conn = Conn()
            names = ("protocol.unsubscribe", "protocol.subscribe again")
            return (take("protocol.subscribe").handle(conn.subscribe), conn.unsubscribe,
                    take("v5.subscribe").handle(), take("v5.rare").handle(conn.rare), names)
        """,
    "protocol/__init__": "        # protocol: what a packet does",
    "protocol/subscribe": """
        def handle(conn):
            return conn + 1
        """,
    "v5/subscribe": """
        def handle():
            return 5
        """,
    "v5/rare": """
        def handle(conn):
            return conn + 7
        """,
}


def test_take_gets_the_name_of_the_packed_file(tmp_path: Path) -> None:
    """The file of a module of v5 has its folder in its name if another module has the same."""
    files = packed(texts(PROGRAM | ON_DEMAND))
    for name in ("subscribe", "v5_subscribe", "rare"):
        assert f"slotmq/{name}.py" in files
        assert f"('{name}').handle(" in files["slotmq/app.py"]
    said = run(tmp_path, files, "from slotmq import app; print(app.main())")
    assert said == "(2, 2, 5, 10, ('protocol.unsubscribe', 'protocol.subscribe again'))\n"


def test_other_strings_stay_and_names_like_them_become_short(tmp_path: Path) -> None:
    """The strings are names of an attribute, a function and a module."""
    app = """
        _ORDERS = {"r": "rare"}
        class Conn:
            def __init__(self):
                self.inbox = 1
                self.rare = 3
        def obey(conn):
            return conn.inbox, getattr(conn, _ORDERS["r"])
        def main():
            return obey(Conn()), "inbox", "obey", "v5.subscribe", "tables.rows", "the rare"
        """
    files = packed(texts(PROGRAM | ON_DEMAND | {"app/__init__": app}))
    assert ".inbox =" not in files["slotmq/app.py"]
    assert ".rare =" in files["slotmq/app.py"]  # app's _ORDERS are declared as names
    said = run(tmp_path, files, "from slotmq import app; print(app.main())")
    assert said == "((1, 3), 'inbox', 'obey', 'v5.subscribe', 'tables.rows', 'the rare')\n"


def test_every_lookup_of_a_variable_is_declared_and_every_source_exists() -> None:
    """Otherwise the names in it would be renamed, and lookups would fail."""
    texts = {n: source.read_text() for n, source in sources("slotmq").items()}
    program = Program(texts)
    assert names.dynamic_lookups(program).keys() == names.SOURCES.keys()
    for function, declared in names.SOURCES.items():
        for source in declared.split():
            module, _, name = f"{function.rpartition('.')[0]}.{source}".rpartition(".")
            if name.endswith("()"):
                every = "".join(texts.values())
                assert every.count(name[:-1]) > every.count(f"def {name[:-1]}"), source
            else:
                module = source.rpartition(".")[0] or module
                lines = [ast.unparse(line) for line in program.modules[module].body]
                assert any(f"{name} = " in line for line in lines), source


def test_code_for_cpython_only_is_left_out() -> None:
    assert not any("nowhere" in text for text in packed(texts(PROGRAM)).values())


def test_micropython_makes_no_tuple_for_two_values() -> None:
    """It would for `a, b = (x, y)`, as ast.unparse() writes it; in places the heap is locked."""
    modules = {name: source.read_text() for name, source in sources("slotmq").items()}
    for text in packed(modules).values():
        assert re.findall(r"^ *[\w.]+, [\w.]+ = \(.*, .*\)$", text, re.MULTILINE) == []


def test_internal_names_become_short() -> None:
    core = packed(texts(PROGRAM))["slotmq/core.py"]
    for name in ("Table", "inner_table", "_hidden", "rows_held", "largest", "_FREE", "docstring"):
        assert name not in core
    for name in ("Broker", "named_by_text", "append", "limits"):
        assert name in core


def test_no_two_attributes_get_one_name_and_no_definition_that_of_an_argument() -> None:
    """`id` is both in flash and of two letters. An argument hides a definition of its name."""
    modules = {name: source.read_text() for name, source in sources("slotmq").items()}
    given = names.Names(Program(modules))
    assert len({*given.attributes.values()}) == len(given.attributes)
    assert [name for name in given.definitions.values() if len(name) == 1] == []


PACKED = """
__init__ acl acl_file app ask_the_hooks asyncio_task auth bridge_configuration
bridge_handshake bridge_mqtt5 bridge_options bridge_prefixes bridge_probing bridge_session
bridge_start bridge_tls bridges
budget capacities certificate client_id columns connect control core denials
epoch esp32_memory expired_slots filters flush frames_viper hooks http_files http_upgrade
in_process interceptors journal journal_compaction journal_start journal_viper large_messages
lifetime listener_protocols location log_defects log_destinations log_full_tables
log_of_bridges log_outgoing log_packets log_reasons log_text log_topics login lower_limits lwip
lwip_layout medium_file medium_file_start medium_flash medium_flash_start mosquitto_conf
name_server_query other_keys own_messages own_publishing packets plugins policies poller
publishers quota rare_kinds recheck_sessions
record record_viper recorder refusing_bound reload remote restore retry said
scram scram_steps secure_websocket segments senders_viper session_owners shared_session_end
start subscribe sys_bridges sys_state sys_topics tls tls_context
tls_listeners tree_text users users_file v5 v5_connect v5_subscribe viper
websocket x509
"""


def test_the_whole_broker_is_packed() -> None:
    """The packed files have as many functions as the modules."""
    modules = {name: source.read_text() for name, source in sources("slotmq").items()}
    files = packed(modules)
    assert sorted(files) == [f"slotmq/{name}.py" for name in PACKED.split()]
    theirs = [re.sub(r"\nelse:(\n    .*|\n)+", "\n", text) for text in modules.values()]
    # Without what only CPython has
    counts = [len(re.findall(r"^ *(?:async )?def ", text, re.MULTILINE)) for text in theirs]
    made = re.findall(r"^ *(?:async )?def ", "\n".join(files.values()), re.MULTILINE)
    assert sum(counts) == len(made)
    # One letter is the name of an argument.
    assert not re.findall(r"^(?:def|class) \w\b", "\n".join(files.values()), re.MULTILINE)


@pytest.mark.parametrize(
    ("module", "text", "complaint"),
    [
        (
            "broker",
            "from slotmq.fast import bytes_viper\nprint(bytes_viper)",
            "line 2: .*bytes_viper",
        ),
        (
            "broker",
            "from slotmq.fast import bytes_viper\nbytes_viper.x()",
            "line 2: fast.bytes_viper .*x",
        ),
        ("broker", "from slotmq.fast.bytes_viper import x", "slotmq.fast.bytes_viper .*x"),
        (
            "broker",
            "from slotmq.fast import two_viper\ndef f(viper):\n  return two_viper.two()",
            "line 3: viper, .*local",
        ),
        ("broker", "def f(a, b): return getattr(a, b)", "broker.f, line 1: .*names"),
        ("broker", "def f(a, b): return a.__dict__.get(b)", "broker.f, line 1: .*names"),
        (
            "broker",
            "class A:\n  def f(self, b): hasattr(self, 'a' if b else b)",
            "broker.f, line 2",
        ),
        # A module with a declared lookup may have no other one.
        ("app/__init__", "def main(a, b): return setattr(a, b, 0)", "app.main, line 1: .*names"),
        ("broker", "def f(module): return module.TWICE", "line 1: TWICE is a constant"),
        ("broker", "a, b = 1, 2", "broker, line 1: .*assigned"),
        ("broker", "x = 1\nif x:\n  y = 2", "line 2: .*condition"),
    ],
)
def test_what_is_only_known_at_run_time_is_refused(module: str, text: str, complaint: str) -> None:
    own = {"app/__init__": "        x = 1", "fast/two_viper": "        def two(): return 2"}
    program = PROGRAM | own
    files = texts(program) | {f"slotmq/{module}.py": text}
    files["slotmq/__init__.py"] = ""
    with pytest.raises(ValueError, match=complaint):
        packed(files)


def test_a_syntax_error_names_file_and_line() -> None:
    with pytest.raises(SyntaxError) as refused:
        packed({"slotmq/broker.py": "good = 1\nbad = = 2\n"})
    assert (refused.value.filename, refused.value.lineno) == ("slotmq/broker.py", 2)
    assert not isinstance(refused.value, ToolError)
