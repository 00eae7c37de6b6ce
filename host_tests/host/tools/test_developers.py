"""What only developers run: `make clients`, `emulated` and `apps`, golden files, flash wear."""

import functools
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from slotmq_dev import clients, figures, golden
from slotmq_dev.apps import __main__ as command
from slotmq_dev.apps.applications import APPLICATIONS, Application
from slotmq_dev.emulator import __main__ as emulated
from slotmq_dev.wear.__main__ import Wear, markdown, measure
from slotmq_tools.errors import ToolError
from slotmq_tools.ports import free_port

from ...support.program import Start

# `make clients`: the linked mosquitto_pub and mosquitto_sub work.


def test_a_published_message_is_received(
    start: Start,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["clients", str(tmp_path)])
    assert clients.main() == 0
    publish, subscribe = capsys.readouterr().out.splitlines()
    port = free_port()
    run = start("-p", port)
    run.headline()
    own = ["-p", str(port), "-t", "room/1/a b"]
    subprocess.run([publish, *own, "-m", "21.5", "-r"], check=True)
    received = subprocess.check_output([subscribe, *own, "-v", "-C", "1", "-W", "20"], text=True)
    assert received == "room/1/a b 21.5\n"
    run.stop()


# `python -m slotmq_dev.emulator`: an emulated board, whose flash is in a folder.


def test_a_second_board_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    once, twice = emulated._alone(tmp_path), emulated._alone(tmp_path)
    with once, pytest.raises(ToolError, match="already"), twice:
        pass
    with emulated._alone(tmp_path):
        pass


# The broker writes the golden segments and journals in host_tests/support/golden.


def test_the_broker_writes_the_golden_files(tmp_path: Path) -> None:
    def run(*args: str) -> tuple[int, list[str]]:
        done = CliRunner().invoke(golden.main, [*args, str(tmp_path)])
        return done.exit_code, done.output.split("\n")

    assert CliRunner().invoke(golden.main, ["--check"]).exit_code == 0, (
        "python -m slotmq_dev.golden"
    )
    status, new = run("--check")
    assert status == 1 and len(new) > 16 and "version-3.file: new" in new
    assert run()[0] == 0
    assert run("--check")[0] == 0
    changed, older = (tmp_path / "journal" / f"version-{n}.file" for n in (2, 0))
    for path in (changed, older):  # an older version is not written again
        path.write_bytes(b"x")
    assert run("--check") == (1, ["version-2.file: differs", ""])
    assert changed.read_bytes() == b"x"
    assert run()[0] == 0
    assert run("--check")[0] == 0


def test_every_golden_journal_is_read_by_a_test() -> None:
    test = (golden.FOLDER.parents[1] / "broker/unit/journal/test_golden.py").read_text()
    names = [path.name for path in (golden.FOLDER / "journal").iterdir()]
    assert len(names) >= 2
    assert [name for name in names if f'"{name}"' not in test] == []


# Measures the flash wear of a message, and compares it with docs/reliability.md.


PAGE = Path(__file__).parents[3] / "docs/reliability.md"


@functools.cache
def found() -> dict[tuple[str, str], Wear]:
    return {(one.medium, one.traffic): one for one in measure()}


def test_qos_0_without_retain_writes_nothing() -> None:
    for medium in ("flash", "littlefs"):
        assert found()[medium, "QoS 0"][2:] == (0, 0)


def test_a_commit_programs_a_page_of_raw_flash() -> None:
    one = found()["flash", "QoS 1"]
    assert 256 <= one.programmed < 290
    assert abs(one.erased - one.programmed) < 20
    assert found()["flash", "QoS 2"].programmed < 2 * 290
    assert found()["flash", "QoS 1, 12 at once"].programmed < one.programmed * 0.6


def test_littlefs_wears_many_times_faster() -> None:
    for traffic in ("QoS 1", "QoS 2", "QoS 0, retained"):
        assert found()["littlefs", traffic].erased > 10 * found()["flash", traffic].erased


def test_the_document_has_the_measured_table() -> None:
    assert figures.get(PAGE.read_text(), "wear") == markdown(list(found().values())), (
        "python -m slotmq_dev.wear --write docs/reliability.md"
    )


# `make apps`: a round with an application that answers, and with one that says nothing.


ANSWERS = """
import sys
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion
client = Client(CallbackAPIVersion.VERSION2)
client.on_message = lambda c, _, m: c.publish("app/out", m.payload + b" 30")
client.on_connect = lambda c, *_: c.subscribe("app/in")
client.tls_set(sys.argv[2])
client.connect("localhost", int(sys.argv[1]))
client.loop_forever()
"""


def test_a_round_is_a_line_of_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    echo = Application(
        "echo",
        lambda place: ([sys.executable, "-c", ANSWERS, str(place.port), place.ca], {}),
        lambda: "1",
    )
    monkeypatch.setattr(command, "APPLICATIONS", (echo,))
    options = ["--transport", "tls", "--runtime", "cpython"]
    result = CliRunner().invoke(command.main, options)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1].endswith("| echo | 1 | tls | cpython | good |")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("print('no broker')", "failed: it ended with 0; no answer"),
        ("import time; time.sleep(60)", "failed in 1 s; no answer"),
    ],
)
def test_an_application_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, code: str, told: str
) -> None:
    dumb = Application(
        "dumb", lambda _: ([sys.executable, "-c", code], {}), lambda: "1", ("plain",), seconds=1
    )
    monkeypatch.setattr(command, "APPLICATIONS", (dumb,))
    result = CliRunner().invoke(command.main, ["--runtime", "cpython"])
    assert result.exit_code == 1
    assert told in result.stdout.splitlines()[-1]
    assert ("no broker" in result.stderr) == ("no broker" in code)


def test_each_application_has_its_files() -> None:
    """Those that are scripts or lists of packages lie beside applications.py."""
    folder = Path(command.__file__).parent
    names = (folder / "applications.py").read_text()
    assert all(file.name in names for file in folder.glob("*.*js*")), names
    assert len({one.name for one in APPLICATIONS}) == len(APPLICATIONS) > 3
