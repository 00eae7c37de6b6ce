"""`make apps`: a round with an application that answers, and with one that says nothing."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from slotmq_dev.apps import __main__ as command
from slotmq_dev.apps.applications import APPLICATIONS, Application

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
