"""The documents fit the code: their examples run, and what they name exists.

Names of tests, files, settings, policies, make targets and options are looked up.
"""

import ast
import importlib.util
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from slotmq.config.policies import WHEN_FULL, rows
from slotmq.status import log_full_tables
from slotmq_dev import figures
from slotmq_tools import cli, micropython
from slotmq_tools.errors import ToolError
from slotmq_tools.pack import mpy
from slotmq_tools.ports import free_port

from ..broker.wire import codec
from ..broker.wire.client import Client
from ..broker.wire.process import Program

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
DESIGN = (ROOT / "lib/DESIGN.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
SECURITY = (ROOT / "SECURITY.md").read_text()
PAGES = {path.name: path.read_text() for path in sorted((ROOT / "docs").glob("*.md"))}
DECISIONS = {
    f"docs/decisions/{path.name}": path.read_text()
    for path in sorted((ROOT / "docs/decisions").glob("*.md"))
}
DOCUMENTS = {
    "README.md": README,
    "lib/DESIGN.md": DESIGN,
    "CONTRIBUTING.md": CONTRIBUTING,
    "SECURITY.md": SECURITY,
    **{f"docs/{name}": text for name, text in PAGES.items()},
    **DECISIONS,
    **{
        f"telemetry/{path.name}": path.read_text()
        for path in sorted((ROOT / "telemetry").glob("*.md"))
    },
}
LINKING = [
    str(path.relative_to(ROOT))
    for pattern in ("*.md", "docs/**/*.md", "lib/*.md", "boards/*/*.md", "telemetry/*.md")
    for path in sorted(ROOT.glob(pattern))
]
LONGEST = {  # lines
    "README.md": 200,
    "lib/DESIGN.md": 600,
    "CONTRIBUTING.md": 165,
    "docs/glossary.md": 60,
    **dict.fromkeys(DECISIONS, 60),
}
PAIR = "<!-- a:begin -->old<!-- a:end -->"
MAKEFILE = (ROOT / "Makefile").read_text()
HEAP_KB = 160  # a Pico W's
LOG_TYPES = ("error", "warning", "notice", "information")
# Other programs that the documents name; their options are not checked.
CLIENTS = {"mosquitto_pub", "mosquitto_sub"}
OTHERS = {
    *CLIENTS,
    *(f".venv/bin/{name}" for name in CLIENTS),
    *("mpremote", "pre-commit", ".venv/bin/python", ".venv/bin/pip", "pip", "export", "aws"),
}


def blocks(text: str, language: str) -> list[str]:
    """The code blocks in that language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def lines(language: str) -> list[list[str]]:
    """The words of each command line, without its comment."""
    found = [line for text in DOCUMENTS.values() for block in blocks(text, language)
             for line in block.replace("\\\n", " ").splitlines()]  # fmt: skip
    words = [shlex.split(line, comments=True) for line in found]
    # `make -C` is for MicroPython's makefiles.
    return [each for each in words if each and each[:2] != ["make", "-C"]]


def cells(line: str) -> list[str]:
    return [cell.strip(" `") for cell in line.split("|")[1:-1]]


# Code


@pytest.fixture
def start(tmp_path: Path, runtime: str):
    """Start a script as a process, on either runtime."""

    def run(text: str) -> Program:
        script = tmp_path / "main.py"
        script.write_text(text)
        if runtime == "cpython":
            return Program([sys.executable, str(script)], tmp_path)
        imports = mpy.build_for(micropython.find(32))
        command = micropython.command(32, HEAP_KB, script)
        return Program(command, tmp_path, micropython.environment(imports))

    return run


def test_the_quick_start_serves_clients(start):
    code, *_ = blocks(README, "python")
    assert 0 < len(code.splitlines()) <= 10
    port = free_port()
    program = start(code.replace("1883", str(port)))
    program.wait_for(lambda: _answers(port), "the quick start to listen")
    client = Client(("127.0.0.1", port))
    client.connect(codec.connect("reader"))
    client.subscribe("greeting")
    client.receive("greeting", b"hello", retain=True)
    client.sock.close()
    program.signal(signal.SIGINT)
    program.finish()


def _answers(port: int) -> bool:
    try:
        Client(("127.0.0.1", port)).sock.close()
    except ConnectionError:
        return False
    return True


# A stand-in for machine.Pin
PINS = """\
import sys
from slotmq import Broker, Limits

class Pin:
    OUT = 1
    shown = []

    def __init__(self, *_):
        pass

    def value(self, on):
        Pin.shown.append(on)

class machine:
    pass

machine.Pin = Pin
sys.modules["machine"] = machine
"""
LAMP = """
broker = Broker(Limits(connections=5))
start(broker)
for word in ("on", "off"):
    broker.publish("lamp/set", word)
    broker.turn(0)
    broker.turn(0)
assert Pin.shown == [True, False], Pin.shown
"""


def test_the_application_for_a_board_switches_the_lamp(start):
    _, code = blocks(README, "python")
    assert len([line for line in code.splitlines() if line]) <= 10
    start(PINS + code + LAMP).finish()


def as_a_library() -> list[str]:
    return blocks(PAGES["embed.md"].partition("\n## As a library")[2], "python")[:3]


@pytest.mark.parametrize("number", range(3))
def test_the_code_of_the_page_about_a_library_runs(start, number: int):
    start(as_a_library()[number].replace("1883", str(free_port()))).finish()


@pytest.mark.parametrize("name", LONGEST)
def test_a_document_stays_short(name: str):
    assert len(DOCUMENTS[name].splitlines()) <= LONGEST[name]


# Commands


def test_make_has_the_targets_and_variables_in_the_documents():
    rules = re.findall(r"^([\w -]+):", MAKEFILE, re.MULTILINE)
    targets = {name for rule in rules for name in rule.split()}
    variables = set(re.findall(r"^(\w+) \?=", MAKEFILE, re.MULTILINE))
    called = [words[1:] for words in lines("sh") if words[0] == "make"]
    called += [
        [name] for text in DOCUMENTS.values() for name in re.findall(r"`make ([\w-]+)", text)
    ]
    assert ["run"] in called
    assert ["test"] in called
    for words in called:
        for word in words:
            name, equals, _ = word.partition("=")
            assert name in (variables if equals else targets), word


@pytest.mark.parametrize(
    "words", [words for words in lines("sh") if words[0] == "slotmq"], ids=" ".join
)
def test_slotmq_has_the_commands_and_options_in_the_documents(words: list[str]):
    _, *arguments = words  # all options are parsed before --help
    done = CliRunner().invoke(cli.main, [*arguments, "--help"])
    assert done.exit_code == 0, done.output


def test_operate_md_lists_every_option_of_run():
    run = cli.main.commands["run"]
    options = {
        option for each in run.params for option in each.opts if isinstance(each, click.Option)
    }
    table = PAGES["operate.md"].partition("| option | |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(-+\w+)", table, re.MULTILINE)) == options - {"--help"}


def test_other_commands_are_of_known_programs():
    assert {words[0] for words in lines("sh")} <= {"make", "slotmq", *OTHERS}


def test_the_readme_shows_this_version():
    done = subprocess.run(
        [sys.executable, "-m", "slotmq_tools.cli", "--version"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert f"    {done.stdout.strip()} on MicroPython" in README


# Tables


def test_the_table_of_full_tables_has_every_policy_the_default_first():
    _, _, text = DESIGN.partition("\n### Tables that clients fill")
    assert policies(text.partition("\n### ")[0]) == {
        name: chosen for name, *chosen in rows(WHEN_FULL)
    }


# Functions of interceptors.py by the column of the table, from the left
INTERCEPTORS = (
    ("recorder", "record_events"),
    ("hooks",),
    ("publishers",),
    ("in_process",),
    ("bridges",),
    ("log_topics",),
)
REPLACED = {"handle_fast", "publish", "end", "poller", "close", "goodbye"}


def replaced(function: ast.FunctionDef) -> set[str]:
    """What it replaces: functions, packet types of handlers, WILL."""
    found = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            found |= REPLACED & {node.targets[0].attr}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "_at_end":
                found.add("finish_turn")
            elif node.func.id == "_with":
                names = [ast.unparse(each) for each in node.args[2:]]
                found |= {re.sub("^(OF_)?|_TYPE$", "", name) for name in names}
    return found


def test_the_table_of_interceptors_is_what_they_replace():
    source = ast.parse((ROOT / "lib/slotmq/interceptors.py").read_text())
    functions = {each.name: each for each in source.body if isinstance(each, ast.FunctionDef)}
    wanted = [set().union(*(replaced(functions[n]) for n in names)) for names in INTERCEPTORS]
    assert {name for name in functions if name[0] != "_"} == set(sum(INTERCEPTORS, ()))
    found: list[set[str]] = [set() for _ in INTERCEPTORS]
    text = DESIGN.partition("\n## Interceptors")[2].partition("\n## ")[0]
    for line in re.findall(r"^\|.*\|$", text, re.MULTILINE)[2:]:
        what, *columns = cells(line)
        names = set(re.findall(r"[A-Z]{4,}", what.replace("a will", "WILL")))
        if function := re.match(r"\w+\.(\w+)", what):
            names = {function[1]}
        assert names, what
        for column, cell in zip(found, columns, strict=True):
            column |= names if cell else set()
    assert found == wanted


def test_the_tables_that_the_log_warns_about():
    names = [line.split(" ")[1].strip(",") for line in log_full_tables._TABLES.split("\n")]
    shown = ", ".join(names[:-1]) + " and outgoing buffers whose counter grows"
    assert names[-1] == "tx_bytes"
    assert f"The log warns about {shown}" in " ".join(DESIGN.split())


def policies(text: str) -> dict[str, list[str]]:
    """The policies of each table, in order; a row without a name belongs to the last table."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in re.findall(r"^\|.*\|$", text, re.MULTILINE)[2:]:
        what, policy, *_ = cells(line)
        name = what.partition(",")[0] or name
        if policy:
            found.setdefault(name, []).append(policy)
    return found


# Names and links


@pytest.mark.parametrize("name", LINKING)
def test_links_lead_to_files_and_headings(name: str):
    page = ROOT / name
    for target in re.findall(r"\]\(\s*([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        there = page.parent / path if path else page
        assert there.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", there.read_text(), re.MULTILINE)
            assert anchor in [slug(heading) for heading in headings], target


def slug(heading: str) -> str:
    """GitHub's anchor of a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_files_that_are_named_exist(name: str):
    folders = ("lib", "firmware", "examples", "tools", "dev", "telemetry", "boards", "host_tests")
    there = {path.name for folder in folders for path in (ROOT / folder).rglob("*.py")}
    named = {each for each in re.findall(r"[\w*]+\.py\b", DOCUMENTS[name]) if "*" not in each}
    # A user's file, and MicroPython's
    assert named - there <= {"main.py", "_boot.py", "makemanifest.py"}


def test_the_recipes_name_paths_modules_and_names_that_exist():
    folders = [ROOT / "lib", ROOT / "tools", ROOT / "host_tests"]
    files = [ROOT / "conftest.py", *(path for each in folders for path in each.rglob("*.py"))]
    code = "\n".join(path.read_text() for path in files)
    paths = re.findall(
        r"(?:^|[` ])((?:lib|dev|tools|boards|host_tests|docs)/[\w/.]*\w)", CONTRIBUTING
    )
    assert len(paths) > 20
    assert [path for path in paths if not (ROOT / path).exists()] == []
    modules = set(re.findall(r"-m ((?:slotmq_dev|host_tests)[\w.]*)", CONTRIBUTING))
    assert len(modules) > 4
    assert [name for name in modules if importlib.util.find_spec(name) is None] == []
    names = re.findall(r"`(_?[A-Z]+_[A-Z_]+|_?[a-z]\w+\(\)|[A-Z]{5,})", CONTRIBUTING)
    assert len(names) > 20
    for name in {each.removesuffix("()") for each in names} - {"_NAME", "_LAST"}:
        assert re.search(rf"\b{name}\b", code), name


def test_the_files_of_the_glossary_are_where_it_says():
    rows = [cells(line) for line in PAGES["glossary.md"].splitlines() if line[:2] == "| "][1:]
    assert [row[0].lower() for row in rows] == sorted(row[0].lower() for row in rows)
    named = [path for row in rows for path in re.findall(r"\b\w+/\w+\.py", row[-1])]
    there = {f"{path.parent.name}/{path.name}" for path in ROOT.glob("*/**/*.py")}
    assert [path for path in named if path not in there] == []


def test_each_defence_names_tests_that_exist():
    named = re.findall(r"`((?:broker|host|sim)/[^`]*)`", SECURITY)
    assert len(named) > 12
    assert [each for each in named if not (ROOT / "host_tests" / each).exists()] == []


def test_the_design_links_each_decision():
    assert set(re.findall(r"\(\.\./(docs/decisions/[\w-]+\.md)\)", DESIGN)) == set(DECISIONS)


@pytest.mark.parametrize("name", DECISIONS)
def test_a_decision_says_what_why_and_what_was_given_up(name: str):
    found = re.findall(r"\*\*(Decided|Why|Given up)\b", DECISIONS[name])
    assert {*found} == {"Decided", "Why", "Given up"}


def test_tests_that_are_named_exist():
    text = "\n".join(path.read_text() for path in (ROOT / "host_tests").rglob("*.py"))
    for name in re.findall(r"`((?:test_|Test)\w+)`", "\n".join([DESIGN, *DECISIONS.values()])):
        assert re.search(rf"^\s*(?:def|class) {name}\b", text, re.MULTILINE), name


# What tools write


@pytest.mark.parametrize("name", figures.made())
def test_tables_and_figures_are_those_of_the_sources(name: str) -> None:
    """`python -m slotmq_dev.figures` writes them."""
    text = (ROOT / name).read_text()
    for marker, body in figures.made()[name].items():
        assert figures.get(text, marker) == body


def test_each_text_between_markers_is_of_a_tool() -> None:
    of_tools = {"heap", "wear", "cycles", "sim"}  # each has a test beside that of its tool
    made = {marker for bodies in figures.made().values() for marker in bodies}
    found = re.findall(r"<!-- ([\w-]+):begin -->", "".join(DOCUMENTS.values()))
    assert sorted(found) == sorted(made | of_tools)


@pytest.mark.parametrize(
    "text", ["", "<!-- a:begin -->", "<!-- a:end --><!-- a:begin -->", 2 * PAIR, PAIR + PAIR[-14:]]
)
def test_markers_stand_around_a_text_once(text: str) -> None:
    with pytest.raises(ToolError, match="a:begin"):
        figures.put(text, "a", "x")
    changed = figures.put(f"before {PAIR} after", "a", "| new |")
    assert changed == "before <!-- a:begin -->\n| new |\n<!-- a:end --> after"
    assert figures.get(changed, "a") == "| new |"
